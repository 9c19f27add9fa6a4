-- Per store, the 3 users with most transactions in 2024 and 2025 (tie: smallest user_id).
WITH purchases AS (
    SELECT store_id, user_id, count(*) AS purchases_qty
    FROM transactions
    WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00'
      AND created_at < TIMESTAMP '2026-01-01 00:00:00'
      AND store_id IS NOT NULL
      AND user_id IS NOT NULL
    GROUP BY store_id, user_id
),
ranked AS (
    SELECT
        store_id,
        user_id,
        purchases_qty,
        row_number() OVER (PARTITION BY store_id ORDER BY purchases_qty DESC, user_id) AS place
    FROM purchases
)
SELECT store_name, birthdate, purchases_qty
FROM ranked
JOIN stores USING (store_id)
JOIN users USING (user_id)
WHERE place <= 3
ORDER BY store_name, purchases_qty DESC, user_id
