-- Without sentiment: by mean score.
WITH fiction AS (
    SELECT DISTINCT title
    FROM books
    WHERE title IS NOT NULL AND list_contains(python_list(categories), 'Fiction')
),
felt AS MATERIALIZED (
    SELECT title, avg(review_score) AS mean_score
    FROM ratings
    JOIN fiction USING (title)
    WHERE has_text AND review_score IS NOT NULL
    GROUP BY title
),
-- The value at place floor(9n/10), from 0, in ascending order.
cut AS (
    SELECT mean_score AS least
    FROM felt
    QUALIFY row_number() OVER (ORDER BY mean_score) = count(*) OVER () * 9 // 10 + 1
)
SELECT title, mean_score
FROM felt, cut
WHERE mean_score >= least
ORDER BY title
