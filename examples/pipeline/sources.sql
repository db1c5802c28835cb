-- What comes from outside: no statement of the project writes it.
CREATE TABLE raw_orders (id BIGINT, customer STRING, ordered STRING, price DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'data/orders.csv', 'format' = 'csv', 'csv.null-literal' = '');
