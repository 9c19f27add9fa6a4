-- Single authors with titles in at least 10 different decades. An author is sent as soon as the tenth decade is seen.
WITH written AS (
    SELECT unnest(python_list(authors)) AS author, year_of(published_date) / 10 AS decade
    FROM books
    WHERE authors IS NOT NULL AND year_of(published_date) IS NOT NULL
)
SELECT author
FROM written
WHERE author IS NOT NULL
GROUP BY author
HAVING distinct_count(decade) >= 10
