-- Views over the files; columns go by position, because headers such as review/score are awkward names.
CREATE VIEW files.books AS
FROM read_csv('$DATA/books_data.csv', auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',
    columns = {
        'title': 'VARCHAR', 'description': 'VARCHAR', 'authors': 'VARCHAR', 'image': 'VARCHAR',
        'preview_link': 'VARCHAR', 'publisher': 'VARCHAR', 'published_date': 'VARCHAR', 'info_link': 'VARCHAR',
        'categories': 'VARCHAR', 'ratings_count': 'VARCHAR'
    });

CREATE VIEW files.ratings_file AS
FROM read_csv('$DATA/Books_rating.csv', auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',
    columns = {
        'id': 'VARCHAR', 'title': 'VARCHAR', 'price': 'VARCHAR', 'user_id': 'VARCHAR', 'profile_name': 'VARCHAR',
        'review_helpfulness': 'VARCHAR', 'review_score': 'DOUBLE', 'review_time': 'VARCHAR',
        'review_summary': 'VARCHAR', 'review_text': 'VARCHAR'
    });

CREATE VIEW files.ratings AS
SELECT title, review_score, review_text IS NOT NULL AS has_text FROM files.ratings_file;

-- The elements of a Python list text: quoted by ' or ", in which a backslash protects the next character.
CREATE MACRO main.python_list(list) AS list_transform(
    regexp_extract_all(list, '''(?:[^''\\]|\\.)*''|"(?:[^"\\]|\\.)*"'),
    lambda element: regexp_replace(element[2:-2], '\\(.)', '\1', 'g')
);

CREATE MACRO main.year_of(date) AS TRY_CAST(regexp_extract(date, '\d{4}') AS INTEGER);
