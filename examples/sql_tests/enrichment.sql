CREATE TABLE orders (
  id BIGINT,
  currency STRING,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE rates (
  currency STRING,
  rate DECIMAL(10, 4),
  since TIMESTAMP(3),
  WATERMARK FOR since AS since,
  PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'key.format' = 'json', 'value.format' = 'json');

CREATE VIEW euros AS
SELECT o.id, CAST(o.amount * r.rate AS DECIMAL(10, 2)) AS eur
FROM orders AS o
LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
