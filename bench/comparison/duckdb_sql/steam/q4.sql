-- Without language detection.
SELECT app_id, name
FROM complete_reviews
JOIN complete_games USING (app_id)
WHERE genres ILIKE '%action%' AND review_score = -1
GROUP BY app_id, name
HAVING count(*) > 5000
