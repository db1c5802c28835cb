CREATE TABLE visits (
    started TIMESTAMP(3),
    who STRING,
    clicks BIGINT
) WITH (
    'connector' = 'filesystem',
    'path' = '${out}/visits',
    'format' = 'json'
);

INSERT INTO visits
SELECT window_start, who, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, who;
