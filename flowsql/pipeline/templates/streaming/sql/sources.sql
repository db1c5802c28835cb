-- What comes from outside: no statement of the project writes it.
CREATE TABLE clicks (
    who STRING,
    ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'filesystem',
    'path' = 'data/clicks',
    'format' = 'csv'
);
