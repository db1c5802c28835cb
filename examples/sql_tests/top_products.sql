CREATE TABLE sales (
  product STRING,
  quantity INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'sales', 'format' = 'json');

CREATE VIEW top_products AS
SELECT window_start, place, product, sold
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY sold DESC, product) AS place
  FROM (
    SELECT window_start, window_end, product, SUM(quantity) AS sold
    FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(ts), INTERVAL '1' HOUR))
    GROUP BY window_start, window_end, product
  )
)
WHERE place <= 2;
