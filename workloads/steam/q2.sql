-- The 10 Indie games released in the 2010s with the highest average playtime forever (tie: smallest AppID).
WITH game AS (
    SELECT app_id, name, release_date, average_playtime_forever
    FROM games
    WHERE app_id IS NOT NULL
      AND name IS NOT NULL
      AND release_date IS NOT NULL
      AND windows IS NOT NULL
      AND mac IS NOT NULL
      AND linux IS NOT NULL
      AND genres IS NOT NULL
      AND average_playtime_forever IS NOT NULL
      AND positive IS NOT NULL
      AND negative IS NOT NULL
      AND genres ILIKE '%indie%'
)
SELECT name, average_playtime_forever
FROM game
WHERE year_of(release_date) BETWEEN 2010 AND 2019
ORDER BY average_playtime_forever DESC, app_id
LIMIT 10
