CREATE TABLE m (k INT NOT NULL, v INT, ts TIMESTAMP(3), b AS CAST(k AS BIGINT), s AS CAST('x' AS STRING), pk AS k + 0, WATERMARK FOR ts AS ts) WITH ('connector'='filesystem','path'='${DATA}/five_times.csv','format'='csv','csv.null-literal'='');
SELECT k, LAG(k, 1, CAST(0 AS BIGINT)) OVER (ORDER BY ts), TYPEOF(LAG(k, 1, CAST(0 AS BIGINT)) OVER (ORDER BY ts)) FROM m;
