-- Of the titles in category Fiction (an element equal to it) with at least one review that has text, those whose mean
-- sentiment is at or above the 90th percentile.
WITH fiction AS (
    SELECT DISTINCT title
    FROM books
    WHERE title IS NOT NULL AND array_has(python_list(categories), 'Fiction')
),
felt AS (
    SELECT title, avg(sentiment(review_text)) AS mean_sentiment
    FROM ratings
    JOIN fiction USING (title)
    WHERE review_text IS NOT NULL
    GROUP BY title
),
ranked AS (
    SELECT title, mean_sentiment, exact_percentile(mean_sentiment, 0.9) OVER () AS cut
    FROM felt
)
SELECT title, mean_sentiment
FROM ranked
WHERE mean_sentiment >= cut
ORDER BY title
