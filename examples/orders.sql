-- Adds the names of countries to orders, keeps each order once, and totals them by region.
--
--     penstock sql examples/orders.sql
--
-- Lines of examples/data/orders that do not fit the columns, and orders of unknown countries, go to folders of their
-- own. `existing_only` makes the job read what is there and end; without it, the job waits for more files.

CREATE TABLE orders (
  id BIGINT NOT NULL,
  country STRING,
  amount DECIMAL(10, 2),
  at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '1' MINUTE
) WITH (format = 'csv', path = 'examples/data/orders', header = 'true', existing_only = 'true', rejects = 'lines_rejected');

CREATE TABLE lines_rejected (record STRING, reason STRING) WITH (format = 'json', path = 'orders_out/lines');

CREATE TABLE countries (code STRING, name STRING, region STRING)
WITH (format = 'csv', path = 'examples/data/countries.csv', header = 'true');

CREATE TABLE placed (id BIGINT, country STRING, region STRING, amount DECIMAL(10, 2), at TIMESTAMP)
WITH (format = 'parquet', path = 'orders_out/placed');

CREATE TABLE lost (id BIGINT, country STRING) WITH (format = 'json', path = 'orders_out/lost');

-- The first order of an id counts; it is known when the watermark has passed its time.
CREATE VIEW once AS
SELECT id, country, amount, at FROM orders
QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY at) = 1
EMIT WHEN WATERMARK PAST at;

-- An order without a country is one as well, when no country can come any more.
CREATE MATERIALIZED VIEW named AS
SELECT o.id, o.country AS code, c.name AS country, c.region, o.amount, o.at AS at
FROM once AS o LEFT JOIN countries AS c ON c.code = o.country
EMIT WHEN WATERMARK PAST at;

INSERT INTO placed SELECT id, country, region, amount, at FROM named WHERE country IS NOT NULL;

INSERT INTO lost SELECT id, code AS country FROM named WHERE country IS NULL;

SELECT region, COUNT(*) AS orders, SUM(amount) AS amount FROM placed GROUP BY region ORDER BY region;
