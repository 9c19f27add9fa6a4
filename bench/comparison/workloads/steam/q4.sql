-- q4 without language detection: Action games with more than 5,000 negative reviews.
WITH game AS (
    SELECT app_id, name
    FROM games
    WHERE app_id IS NOT NULL
      AND name IS NOT NULL
      AND release_date IS NOT NULL
      AND windows IS NOT NULL
      AND mac IS NOT NULL
      AND linux IS NOT NULL
      AND genres IS NOT NULL
      AND average_playtime_forever IS NOT NULL
      AND positive IS NOT NULL
      AND negative IS NOT NULL
      AND genres ILIKE '%action%'
)
SELECT app_id, name
FROM reviews
JOIN game USING (app_id)
WHERE review_text IS NOT NULL AND review_score = -1
GROUP BY app_id, name
HAVING count(*) > 5000
