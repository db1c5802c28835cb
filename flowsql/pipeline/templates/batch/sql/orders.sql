CREATE TABLE orders (
    id BIGINT,
    customer STRING,
    price DECIMAL(10, 2),
    CONSTRAINT positive_price CHECK (price > 0) ON VIOLATION DROP
) WITH (
    'connector' = 'filesystem',
    'path' = '${out}/orders',
    'format' = 'parquet'
);

INSERT INTO orders
SELECT id, customer, price FROM raw_orders;
