CREATE TABLE products_cdc (
  id INT,
  price DECIMAL(10, 2),
  changed TIMESTAMP(3),
  WATERMARK FOR changed AS changed,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 'dbserver.products', 'format' = 'debezium-json');

CREATE TABLE sales (id INT, pieces INT, proc AS PROCTIME())
  WITH ('connector' = 'kafka', 'topic' = 'sales', 'format' = 'json');

CREATE TABLE names (id INT, name STRING)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'names');

CREATE VIEW current_prices AS
SELECT id, MAX(price) AS price FROM products_cdc GROUP BY id;

CREATE VIEW named_sales AS
SELECT s.id, n.name, s.pieces
FROM sales AS s
LEFT JOIN names FOR SYSTEM_TIME AS OF s.proc AS n ON s.id = n.id;
