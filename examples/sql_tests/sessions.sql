CREATE TABLE clicks (
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json');

CREATE TABLE sessions (who STRING, started TIMESTAMP(3), pages BIGINT)
  WITH ('connector' = 'kafka', 'topic' = 'sessions', 'format' = 'json');

INSERT INTO sessions
SELECT who, window_start, COUNT(*)
FROM TABLE(SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '30' MINUTE))
GROUP BY window_start, window_end, who;
