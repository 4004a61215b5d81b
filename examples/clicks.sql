-- Counts clicks by the hour: of a folder of JSON into a folder of Parquet.
--
--     penstock sql examples/clicks.sql
--
-- It reads examples/data/clicks, and files that you add there while it runs. An hour is written when the watermark has
-- passed its end. Ctrl-C stops the job; the same command continues it, and each click counts once. Delete the folder
-- hourly_clicks to begin again. To read the files once and end, add --mode=batch.

SET checkpoint = 'hourly_clicks/checkpoint';
SET parallelism = 2;

CREATE TABLE clicks (
  user STRING,
  page STRING,
  at TIMESTAMP,
  -- A click may come up to ten minutes after later ones.
  WATERMARK FOR at AS at - INTERVAL '10' MINUTES
) WITH (format = 'json', path = 'examples/data/clicks', rejects = 'hourly_clicks/rejects');

CREATE TABLE hours (hour TIMESTAMP, page STRING, clicks BIGINT, users BIGINT)
WITH (format = 'parquet', path = 'hourly_clicks/hours');

INSERT INTO hours
SELECT window_start AS hour, page, COUNT(*) AS clicks, COUNT(DISTINCT user) AS users
FROM TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' HOUR)
GROUP BY window_start, window_end, page
EMIT AFTER WATERMARK;
