SELECT year || '-H' || half AS year_half_created_at, store_name, tpv
FROM (
    SELECT
        year(created_at) AS year,
        CASE WHEN month(created_at) <= 6 THEN 1 ELSE 2 END AS half,
        store_id,
        sum(final_amount) AS tpv
    FROM transactions
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
      AND created_at::TIME BETWEEN TIME '06:00:00' AND TIME '23:00:00'
      AND final_amount IS NOT NULL
    GROUP BY year, half, store_id
)
JOIN stores USING (store_id)
ORDER BY year_half_created_at, store_name
