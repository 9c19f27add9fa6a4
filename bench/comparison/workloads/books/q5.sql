-- q5 without sentiment: of the titles in category Fiction with at least one review that has text, those whose mean score
-- over such reviews is at or above the 90th percentile.
WITH fiction AS (
    SELECT DISTINCT title
    FROM books
    WHERE title IS NOT NULL AND array_has(python_list(categories), 'Fiction')
),
felt AS (
    SELECT title, avg(review_score) AS mean_score
    FROM ratings
    JOIN fiction USING (title)
    WHERE review_text IS NOT NULL AND review_score IS NOT NULL
    GROUP BY title
),
ranked AS (
    SELECT title, mean_score, exact_percentile(mean_score, 0.9) OVER () AS cut
    FROM felt
)
SELECT title, mean_score
FROM ranked
WHERE mean_score >= cut
ORDER BY title
