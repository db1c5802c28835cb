-- batch
SET 'execution.batch.engine' = 'local';
SET 'table.exec.disabled-operators'='HashJoin,SortMergeJoin,BroadcastHashJoin,ShuffleHashJoin';
CREATE TABLE n (d DOUBLE, f FLOAT, k INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector'='filesystem','path'='${DATA}/keys_zeros.csv','format'='csv','csv.null-literal'='');
SELECT a.k, b.k FROM (SELECT d AS x, k, ts, p FROM n) a JOIN (SELECT d AS x, k, ts, p FROM n WHERE k <= 5) b ON a.x = b.x;
SELECT a.k, b.k FROM (SELECT d AS x, k, ts, p FROM n) a LEFT JOIN (SELECT d AS x, k, ts, p FROM n WHERE k <= 5) b ON a.x = b.x AND b.k > 1;
SELECT k FROM (SELECT d AS x, k, ts, p FROM n) WHERE x IN (SELECT x FROM (SELECT d AS x, k, ts, p FROM n) WHERE k = 2);
SELECT k FROM (SELECT d AS x, k, ts, p FROM n) WHERE x NOT IN (SELECT x FROM (SELECT d AS x, k, ts, p FROM n) WHERE k = 2);
SELECT x FROM (SELECT d AS x, k, ts, p FROM n) INTERSECT SELECT x FROM (SELECT d AS x, k, ts, p FROM n) WHERE k IN (2, 3, 4);
SELECT x FROM (SELECT d AS x, k, ts, p FROM n) EXCEPT SELECT x FROM (SELECT d AS x, k, ts, p FROM n) WHERE k IN (2, 4);
