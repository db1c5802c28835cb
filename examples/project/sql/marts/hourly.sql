CREATE VIEW hours AS
SELECT sensor, window_start, window_end, MAX(celsius) AS warmest
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY sensor, window_start, window_end;

CREATE TABLE hourly (
    sensor STRING,
    started TIMESTAMP(3),
    warmest DOUBLE
) WITH (
    'connector' = 'filesystem',
    'path' = '${out}/hourly',
    'format' = 'json'
);

INSERT INTO hourly
SELECT sensor, window_start, warmest FROM hours;
