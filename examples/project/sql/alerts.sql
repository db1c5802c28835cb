CREATE TABLE alerts (
    sensor STRING,
    ts TIMESTAMP(3),
    celsius DOUBLE
) WITH (
    'connector' = 'filesystem',
    'path' = '${out}/alerts',
    'format' = 'json'
);

INSERT INTO alerts
SELECT sensor, ts, celsius
FROM readings
WHERE celsius > CAST('${too_warm}' AS DOUBLE);
