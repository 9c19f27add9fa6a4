WITH nineties AS (
    SELECT DISTINCT title, authors
    FROM books
    WHERE title IS NOT NULL AND year_of(published_date) BETWEEN 1990 AND 1999
)
SELECT title, authors
FROM ratings
JOIN nineties USING (title)
GROUP BY title, authors
HAVING count(*) >= 500
ORDER BY title
