-- Games supported on each platform. A game counts only when none of its ten key columns is null.
WITH game AS (
    SELECT windows, linux, mac
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
)
SELECT
    count(*) FILTER (WHERE windows) AS windows,
    count(*) FILTER (WHERE linux) AS linux,
    count(*) FILTER (WHERE mac) AS mac
FROM game
