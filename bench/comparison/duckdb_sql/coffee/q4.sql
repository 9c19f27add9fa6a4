SELECT store_name, birthdate, purchases_qty
FROM (
    SELECT store_id, user_id, count(*) AS purchases_qty
    FROM transactions
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
      AND store_id IS NOT NULL AND user_id IS NOT NULL
    GROUP BY store_id, user_id
    QUALIFY row_number() OVER (PARTITION BY store_id ORDER BY purchases_qty DESC, user_id) <= 3
)
JOIN stores USING (store_id)
JOIN users USING (user_id)
ORDER BY store_name, purchases_qty DESC, user_id
