-- batch
CREATE TABLE t (k STRING, id INT, ts TIMESTAMP(3), xd52 DECIMAL(5,2), nd52 DECIMAL(5,2) NOT NULL, pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '${DATA}/aggregates.json', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL');
SELECT id, SUM(xd52) OVER w, AVG(xd52) OVER w, VAR_POP(xd52) OVER w, VAR_SAMP(xd52) OVER w, STDDEV_POP(xd52) OVER w, STDDEV_SAMP(xd52) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);
DROP TABLE t;
CREATE TABLE t (k STRING, id INT, ts TIMESTAMP(3), xd3810 DECIMAL(38,10), nd3810 DECIMAL(38,10) NOT NULL, pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '${DATA}/aggregates.json', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL');
SELECT id, SUM(xd3810) OVER w, AVG(xd3810) OVER w, VAR_POP(xd3810) OVER w, VAR_SAMP(xd3810) OVER w, STDDEV_POP(xd3810) OVER w, STDDEV_SAMP(xd3810) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);
DROP TABLE t;
CREATE TABLE t (k STRING, id INT, ts TIMESTAMP(3), xi INT, ni INT NOT NULL, pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '${DATA}/aggregates.json', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL');
SELECT id, SUM(xi) OVER w, AVG(xi) OVER w, VAR_POP(xi) OVER w, VAR_SAMP(xi) OVER w, STDDEV_POP(xi) OVER w, STDDEV_SAMP(xi) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);
DROP TABLE t;
