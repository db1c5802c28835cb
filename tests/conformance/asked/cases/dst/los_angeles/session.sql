SET 'table.local-time-zone'='America/Los_Angeles';
CREATE TABLE t (id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ('connector'='filesystem','path'='${DATA}/dst_los_angeles.csv','format'='csv');
SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, window_time;
SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '40' MINUTE)) GROUP BY window_start, window_end, window_time;
SELECT SESSION_START(ts, INTERVAL '10' MINUTE), SESSION_END(ts, INTERVAL '10' MINUTE), SESSION_ROWTIME(ts, INTERVAL '10' MINUTE), COUNT(*) FROM t GROUP BY SESSION(ts, INTERVAL '10' MINUTE);
SELECT id, window_start, window_end, window_time FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' MINUTE));
