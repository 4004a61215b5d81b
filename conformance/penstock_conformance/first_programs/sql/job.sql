-- The revenue of each day, from files of orders into files of JSON.
--
--     penstock sql job.sql

CREATE TABLE orders (day DATE, product STRING, price DECIMAL(10, 2), quantity INT)
WITH (format = 'csv', path = 'data', header = 'true');

CREATE VIEW sales AS
SELECT day, product, CAST(price * quantity AS DECIMAL(10, 2)) AS revenue FROM orders;

CREATE TABLE days (day DATE, orders BIGINT, revenue DECIMAL(20, 2))
WITH (format = 'json', path = 'revenue');

-- OVERWRITE replaces what an earlier run has written.
INSERT OVERWRITE days
SELECT day, COUNT(*) AS orders, SUM(revenue) AS revenue FROM sales GROUP BY day;

SELECT * FROM days ORDER BY day;

SELECT product, SUM(revenue) AS revenue FROM sales GROUP BY product ORDER BY revenue DESC LIMIT 2;
