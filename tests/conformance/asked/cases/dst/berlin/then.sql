SET 'table.local-time-zone'='Europe/Berlin';
CREATE TABLE t (id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ('connector'='filesystem','path'='${DATA}/dst_berlin.csv','format'='csv');
SELECT window_start, COUNT(*), SUM(c) FROM TABLE(TUMBLE((SELECT window_time AS wt, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE)) GROUP BY window_start, window_end, window_time), DESCRIPTOR(wt), INTERVAL '2' HOUR)) GROUP BY window_start, window_end;
SELECT TUMBLE_START(rt, INTERVAL '2' HOUR), COUNT(*), SUM(c) FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '30' MINUTE) AS rt, COUNT(*) AS c FROM t GROUP BY TUMBLE(ts, INTERVAL '30' MINUTE)) GROUP BY TUMBLE(rt, INTERVAL '2' HOUR);
SELECT wt, c, SUM(c) OVER (ORDER BY wt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT window_time AS wt, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE)) GROUP BY window_start, window_end, window_time);
SELECT id, ts, COUNT(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) FROM t;
SELECT window_time, id, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) AS rn FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))) WHERE rn <= 1;
SELECT a.id, b.id, a.window_time FROM (SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))) a JOIN (SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))) b ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.id < b.id;
