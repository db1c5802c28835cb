CREATE TABLE clicks (
  user_id STRING, page STRING, n INT, big BIGINT, price DOUBLE, code CHAR(3), flag BOOLEAN, seen TIMESTAMP(3),
  ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3), pt AS PROCTIME(), id AS UUID(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'datagen');
CREATE TABLE orders (
  id STRING, user_id STRING, n INT, seen TIMESTAMP(3), ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = '/nowhere/orders', 'format' = 'json', 'source.monitor-interval' = '1 s');
CREATE TABLE users (id STRING, name STRING, code CHAR(5), born DATE, n INT NOT NULL)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/users', 'format' = 'csv');
CREATE TABLE plays (who STRING, n INT, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts)
WITH ('connector' = 'datagen', 'number-of-rows' = '10');
CREATE TABLE keyed (k STRING, c BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'print');
CREATE TABLE by_day (d DATE, c BIGINT, PRIMARY KEY (d) NOT ENFORCED) WITH ('connector' = 'print');
CREATE TABLE pages (page STRING, n INT) WITH ('connector' = 'blackhole');
