CREATE TABLE clicks (
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json');

CREATE VIEW purchases AS
SELECT who, seen, bought
FROM clicks
MATCH_RECOGNIZE (
  PARTITION BY who
  ORDER BY ts
  MEASURES V.ts AS seen, B.ts AS bought
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (V C B) WITHIN INTERVAL '1' HOUR
  DEFINE V AS V.page = 'product', C AS C.page = 'cart', B AS B.page = 'paid'
);
