WITH nineties AS (
    SELECT DISTINCT title, authors
    FROM books
    WHERE title IS NOT NULL AND year_of(published_date) BETWEEN 1990 AND 1999
)
SELECT title, avg(review_score) AS mean_score
FROM ratings
JOIN nineties USING (title)
GROUP BY title, authors
HAVING count(*) >= 500 AND avg(review_score) IS NOT NULL
ORDER BY mean_score DESC, title
LIMIT 10
