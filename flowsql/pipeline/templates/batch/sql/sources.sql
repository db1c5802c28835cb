-- What comes from outside: no statement of the project writes it.
CREATE TABLE raw_orders (
    id BIGINT,
    customer STRING,
    price DECIMAL(10, 2)
) WITH (
    'connector' = 'filesystem',
    'path' = 'data/orders.csv',
    'format' = 'csv'
);
