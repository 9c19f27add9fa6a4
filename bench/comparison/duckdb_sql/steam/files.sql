-- Views over the files. The header of games.csv is wrong (39 names for 40 fields): it is skipped, columns go by position.
CREATE VIEW files.games AS
FROM read_csv('$DATA/games.csv', auto_detect = false, header = false, skip = 1, delim = ',', quote = '"', escape = '"',
    columns = {
        'app_id': 'INTEGER', 'name': 'VARCHAR', 'release_date': 'VARCHAR', 'estimated_owners': 'VARCHAR', 'peak_ccu':
        'VARCHAR', 'required_age': 'VARCHAR', 'price': 'VARCHAR', 'discount': 'VARCHAR', 'dlc_count': 'VARCHAR',
        'about_the_game': 'VARCHAR', 'supported_languages': 'VARCHAR', 'full_audio_languages': 'VARCHAR', 'reviews':
        'VARCHAR', 'header_image': 'VARCHAR', 'website': 'VARCHAR', 'support_url': 'VARCHAR', 'support_email': 'VARCHAR',
        'windows': 'BOOLEAN', 'mac': 'BOOLEAN', 'linux': 'BOOLEAN', 'metacritic_score': 'VARCHAR', 'metacritic_url':
        'VARCHAR', 'user_score': 'VARCHAR', 'positive': 'INTEGER', 'negative': 'INTEGER', 'score_rank': 'VARCHAR',
        'achievements': 'VARCHAR', 'recommendations': 'VARCHAR', 'notes': 'VARCHAR', 'average_playtime_forever': 'INTEGER',
        'average_playtime_two_weeks': 'VARCHAR', 'median_playtime_forever': 'VARCHAR', 'median_playtime_two_weeks':
        'VARCHAR', 'developers': 'VARCHAR', 'publishers': 'VARCHAR', 'categories': 'VARCHAR', 'genres': 'VARCHAR', 'tags':
        'VARCHAR', 'screenshots': 'VARCHAR', 'movies': 'VARCHAR'
    });

CREATE VIEW files.reviews AS
FROM read_csv('$DATA/reviews.csv', auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',
    columns = {
        'app_id': 'INTEGER', 'app_name': 'VARCHAR', 'review_text': 'VARCHAR', 'review_score': 'TINYINT',
        'review_votes': 'VARCHAR'
    });

-- A game counts only when none of these is null.
CREATE VIEW files.complete_games AS
SELECT app_id, name, release_date, windows, mac, linux, genres, average_playtime_forever
FROM files.games
WHERE app_id IS NOT NULL AND name IS NOT NULL AND release_date IS NOT NULL AND windows IS NOT NULL AND mac IS NOT NULL
  AND linux IS NOT NULL AND genres IS NOT NULL AND average_playtime_forever IS NOT NULL AND positive IS NOT NULL
  AND negative IS NOT NULL;

CREATE VIEW files.complete_reviews AS
SELECT app_id, review_score
FROM files.reviews
WHERE app_id IS NOT NULL AND review_text IS NOT NULL AND review_score IS NOT NULL;
