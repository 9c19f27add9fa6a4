-- Transactions of 2024 and 2025, time of day from 06:00:00 to 23:00:00 (both ends in), of at least 75.
SELECT transaction_id, final_amount
FROM transactions
WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00'
  AND created_at < TIMESTAMP '2026-01-01 00:00:00'
  AND CAST(created_at AS TIME) BETWEEN TIME '06:00:00' AND TIME '23:00:00'
  AND final_amount >= 75
