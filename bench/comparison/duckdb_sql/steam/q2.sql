SELECT name, average_playtime_forever
FROM complete_games
WHERE genres ILIKE '%indie%'
  AND TRY_CAST(regexp_extract(release_date, '\d{4}') AS INTEGER) BETWEEN 2010 AND 2019
ORDER BY average_playtime_forever DESC, app_id
LIMIT 10
