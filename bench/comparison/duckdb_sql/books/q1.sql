SELECT title, authors, publisher
FROM books
WHERE title ILIKE '%distributed%'
  AND list_contains(python_list(categories), 'Computers')
  AND year_of(published_date) BETWEEN 2000 AND 2023
ORDER BY title, authors, publisher
