SELECT strftime(month, '%Y-%m') AS year_month_created_at, item_name, profit_sum
FROM (
    SELECT date_trunc('month', created_at) AS month, item_id, sum(subtotal) AS profit_sum
    FROM transaction_items
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
      AND item_id IS NOT NULL AND subtotal IS NOT NULL
    GROUP BY month, item_id
    QUALIFY row_number() OVER (PARTITION BY month ORDER BY profit_sum DESC, item_id) = 1
)
JOIN menu_items USING (item_id)
ORDER BY year_month_created_at
