-- take 2
-- With a watermark behind each row, a row behind that of its own partition is not late while another partition is further behind.
CREATE TABLE t (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
  'connector' = 'kafka',
  'topic' = '${TOPIC_PREFIX}t',
  'properties.bootstrap.servers' = '${KAFKA}',
  'scan.startup.mode' = 'earliest-offset',
  'scan.watermark.emit.strategy' = 'on-event',
  'format' = 'json'
);
SELECT window_start, COUNT(*) AS n, SUM(v) AS s
FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
