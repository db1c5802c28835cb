CREATE TABLE orders (
  id BIGINT,
  customer STRING,
  ordered DATE,
  price DOUBLE,
  CONSTRAINT positive_price CHECK (price > 0) ON VIOLATION DROP,
  CONSTRAINT known_customer CHECK (customer IS NOT NULL) ON VIOLATION WARN
) WITH ('connector' = 'filesystem', 'path' = 'out/orders', 'format' = 'parquet');

INSERT INTO orders
SELECT id, customer, CAST(ordered AS DATE), price FROM raw_orders;
