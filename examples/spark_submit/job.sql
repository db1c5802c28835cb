CREATE TEMPORARY VIEW orders AS SELECT * FROM (VALUES ('web', 12.50), ('shop', 3.00), ('web', 7.25)) AS t(channel, price);
SELECT channel, SUM(price) AS total FROM orders GROUP BY channel ORDER BY channel;
