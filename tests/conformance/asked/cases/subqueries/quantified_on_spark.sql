-- batch
SET 'execution.batch.engine' = 'spark';
CREATE TABLE l (a INT, b DECIMAL(2,1)) WITH ('connector'='filesystem','path'='${DATA}/quantified_left.csv','format'='csv','csv.null-literal'='');
CREATE TABLE r (c INT, d DECIMAL(2,1)) WITH ('connector'='filesystem','path'='${DATA}/quantified_right.csv','format'='csv','csv.null-literal'='');
SELECT * FROM l WHERE a = ANY (SELECT c FROM r WHERE r.d = l.b);
SELECT * FROM l WHERE a > ALL (SELECT c FROM r WHERE r.d = l.b);
SELECT * FROM l WHERE a <> ALL (SELECT c FROM r WHERE r.d = l.b);
SELECT a, a < SOME (SELECT c FROM r WHERE r.d = l.b) FROM l;
SELECT * FROM l WHERE a <> ANY (SELECT l.a + c FROM r);
SELECT * FROM l WHERE a IN (SELECT c FROM r WHERE r.d = l.b);
SELECT a, a = ANY (SELECT c FROM r WHERE r.d = l.b) FROM l;
SELECT a, a <> ALL (SELECT c FROM r WHERE r.d = l.b) FROM l;
SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.d = l.b AND c >= ANY (SELECT a FROM l));
SELECT * FROM l WHERE a >= ANY (SELECT c FROM r);
SELECT a, a <> ANY (SELECT c FROM r) AS q FROM l;
