CREATE TABLE customers_cdc (
  id INT,
  name STRING,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 'dbserver.customers', 'format' = 'debezium-json');

CREATE TABLE customers_by_city (
  city STRING,
  customers BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'by-city', 'key.format' = 'json', 'value.format' = 'json');

INSERT INTO customers_by_city
SELECT city, COUNT(*) FROM customers_cdc WHERE city IS NOT NULL GROUP BY city;
