CREATE VIEW known_orders AS SELECT * FROM orders WHERE customer IS NOT NULL;

CREATE TABLE customers
WITH ('connector' = 'filesystem', 'path' = 'out/customers', 'format' = 'json')
AS SELECT customer, COUNT(*) AS orders, SUM(price) AS spent FROM known_orders GROUP BY customer;
