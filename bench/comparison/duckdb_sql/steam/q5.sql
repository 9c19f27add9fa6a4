WITH negative AS MATERIALIZED (
    SELECT app_id, name, count(*) AS negative_reviews
    FROM complete_reviews
    JOIN complete_games USING (app_id)
    WHERE genres ILIKE '%action%' AND review_score = -1
    GROUP BY app_id, name
),
-- The value at place floor(9n/10), from 0, in ascending order.
cut AS (
    SELECT negative_reviews AS least
    FROM negative
    QUALIFY row_number() OVER (ORDER BY negative_reviews) = count(*) OVER () * 9 // 10 + 1
)
SELECT app_id, name, negative_reviews
FROM negative, cut
WHERE negative_reviews >= least
ORDER BY app_id
