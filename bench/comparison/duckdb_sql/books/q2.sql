WITH written AS (
    SELECT unnest(python_list(authors)) AS author, year_of(published_date) // 10 AS decade
    FROM books
    WHERE authors IS NOT NULL AND year_of(published_date) IS NOT NULL
)
SELECT author
FROM written
GROUP BY author
HAVING count(DISTINCT decade) >= 10
