-- Sum of final_amount per half year (2024-H1 = months 1 to 6) of 2024 and 2025 and store, 06:00:00 to 23:00:00.
WITH halves AS (
    SELECT
        date_part('year', created_at) AS year,
        CASE WHEN date_part('month', created_at) <= 6 THEN 1 ELSE 2 END AS half,
        store_id,
        sum(final_amount) AS tpv
    FROM transactions
    WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00'
      AND created_at < TIMESTAMP '2026-01-01 00:00:00'
      AND CAST(created_at AS TIME) BETWEEN TIME '06:00:00' AND TIME '23:00:00'
      AND final_amount IS NOT NULL
    GROUP BY year, half, store_id
)
SELECT concat(year, '-H', half) AS year_half_created_at, store_name, tpv
FROM halves
JOIN stores USING (store_id)
ORDER BY year_half_created_at, store_name
