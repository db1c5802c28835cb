-- What comes from outside: no statement of the project writes it.
CREATE TABLE readings (
    sensor STRING,
    ts TIMESTAMP(3),
    celsius DOUBLE,
    WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH (
    'connector' = 'filesystem',
    'path' = 'data/readings.csv',
    'format' = 'csv'
);
