-- batch
CREATE TABLE t (k STRING, ts TIMESTAMP(3), x INT, s STRING, b BOOLEAN, d DOUBLE, m DECIMAL(6, 2), dt DATE, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '${DATA}/gaps.csv', 'format' = 'csv', 'csv.null-literal' = 'NULL');
SELECT x, LAG(x, 3000000000) OVER (PARTITION BY k ORDER BY ts) FROM t;
