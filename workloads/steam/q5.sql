-- Action games at or above the 90th percentile of negative reviews, among Action games with at least one.
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
),
negative AS (
    SELECT app_id, name, count(*) AS negative_reviews
    FROM reviews
    JOIN game USING (app_id)
    WHERE review_text IS NOT NULL AND review_score = -1
    GROUP BY app_id, name
),
ranked AS (
    SELECT app_id, name, negative_reviews, exact_percentile(negative_reviews, 0.9) OVER () AS cut
    FROM negative
)
SELECT app_id, name, negative_reviews
FROM ranked
WHERE negative_reviews >= cut
ORDER BY app_id
