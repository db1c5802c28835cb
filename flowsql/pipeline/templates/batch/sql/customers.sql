CREATE TABLE customers (
    customer STRING,
    orders BIGINT,
    spent DECIMAL(38, 2)
) WITH (
    'connector' = 'filesystem',
    'path' = '${out}/customers',
    'format' = 'json'
);

INSERT INTO customers
SELECT customer, COUNT(*), SUM(price)
FROM orders
GROUP BY customer;
