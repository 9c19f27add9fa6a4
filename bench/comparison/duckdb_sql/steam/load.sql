-- What the queries need, read once: texts are only tested for being there, so they are not kept.
CREATE TABLE complete_games AS FROM files.complete_games;
CREATE TABLE complete_reviews AS FROM files.complete_reviews;
