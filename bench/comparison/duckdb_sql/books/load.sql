-- What the queries need, read once: texts are only tested for being there, so they are not kept.
CREATE TABLE books AS SELECT title, authors, publisher, published_date, categories FROM files.books;
CREATE TABLE ratings AS FROM files.ratings WHERE title IS NOT NULL;
