-- Totals of goals in two tables: for each minute, and for each team so far.
--
--     GOALS=/tmp/goals penstock sql examples/goals.sql --checkpoint=/tmp/goals/checkpoint
--
-- Write files such as /tmp/goals/in/1.csv, with the columns team, points and at, while it runs. Ctrl-C stops it; the
-- same command continues it.

SET parallelism = 4;

CREATE TABLE goals (
  team STRING,
  points BIGINT,
  at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '5' SECONDS
) WITH (format = 'csv', path = '${GOALS}/in', header = 'true', rejects = '${GOALS}/rejects');

CREATE TABLE minutes (start TIMESTAMP, team STRING, total BIGINT)
WITH (format = 'parquet', path = '${GOALS}/minutes');

CREATE TABLE totals (team STRING, total BIGINT, PRIMARY KEY (team) NOT ENFORCED)
WITH (connector = 'database', url = 'sqlite:///${GOALS}/game.db', 'table' = 'totals', create = true);

CREATE VIEW known AS SELECT * FROM goals WHERE team IS NOT NULL;

-- A window is written once, when the watermark has passed its end.
INSERT INTO minutes
SELECT window_start AS start, team, SUM(points) AS total
FROM TUMBLE(TABLE known, DESCRIPTOR(at), INTERVAL '1' MINUTE)
GROUP BY window_start, window_end, team
EMIT AFTER WATERMARK;

-- A total changes with each goal: the row with its key is replaced.
INSERT INTO totals SELECT team, SUM(points) AS total FROM known GROUP BY team;
