CREATE TABLE readings (
  sensor STRING,
  celsius DOUBLE,
  measured TIMESTAMP(3),
  WATERMARK FOR measured AS measured
) WITH ('connector' = 'kafka', 'topic' = 'readings', 'format' = 'json');

CREATE TABLE alerts (sensor STRING, window_end TIMESTAMP(3), average DOUBLE)
  WITH ('connector' = 'kafka', 'topic' = 'alerts', 'format' = 'json');

INSERT INTO alerts
SELECT sensor, window_end, AVG(celsius)
FROM TABLE(HOP(TABLE readings, DESCRIPTOR(measured), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, sensor
HAVING AVG(celsius) > ${limit};
