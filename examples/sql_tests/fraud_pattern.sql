CREATE TABLE transactions (
  account STRING,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'transactions', 'format' = 'json');

CREATE TABLE suspicious (account STRING, tested TIMESTAMP(3), taken DECIMAL(10, 2))
  WITH ('connector' = 'kafka', 'topic' = 'suspicious', 'format' = 'json');

INSERT INTO suspicious
SELECT account, tested, taken
FROM transactions
MATCH_RECOGNIZE (
  PARTITION BY account
  ORDER BY ts
  MEASURES FIRST(SMALL.ts) AS tested, BIG.amount AS taken
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (SMALL{2,} BIG) WITHIN INTERVAL '10' MINUTE
  DEFINE SMALL AS SMALL.amount < 1, BIG AS BIG.amount > 500
);
