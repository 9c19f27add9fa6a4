SELECT name, count(*) AS positive_reviews
FROM complete_reviews
JOIN complete_games USING (app_id)
WHERE genres ILIKE '%indie%' AND review_score = 1
GROUP BY app_id, name
ORDER BY positive_reviews DESC, app_id
LIMIT 5
