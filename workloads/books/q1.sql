-- Category Computers (an element equal to it), published 2000 to 2023, "distributed" in the title (any case).
SELECT title, authors, publisher
FROM books
WHERE title ILIKE '%distributed%'
  AND array_has(python_list(categories), 'Computers')
  AND year_of(published_date) BETWEEN 2000 AND 2023
ORDER BY title
