-- The 5 Indie games with most positive reviews (tie: smallest AppID).
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
      AND genres ILIKE '%indie%'
)
SELECT name, count(*) AS positive_reviews
FROM reviews
JOIN game USING (app_id)
WHERE review_text IS NOT NULL AND review_score = 1
GROUP BY app_id, name
ORDER BY positive_reviews DESC, app_id
LIMIT 5
