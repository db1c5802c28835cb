-- batch
CREATE TABLE t (k STRING, ts TIMESTAMP(3), x INT, s STRING, b BOOLEAN, d DOUBLE, m DECIMAL(6, 2), dt DATE, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '${DATA}/gaps.csv', 'format' = 'csv', 'csv.null-literal' = 'NULL');
SELECT x, LAG(x, 1, 100) OVER w, LAG(s, 1, 'none') OVER w, LAG(b, 1, TRUE) OVER w, LAG(dt, 1, DATE '2000-01-01') OVER w, LEAD(x, 1, 100) OVER w, LEAD(s, 1, 'none') OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts);
SELECT k, LAG(x, 1, x) OVER w, LEAD(x, 2, x) OVER w, LAG(s, 1, k) OVER w, LEAD(k, 1, s) OVER w, LAG(1) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts);
SELECT AVG(1.5) OVER w, AVG(7) OVER w, COUNT(*) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts);
