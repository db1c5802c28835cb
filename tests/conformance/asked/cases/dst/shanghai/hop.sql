SET 'table.local-time-zone'='Asia/Shanghai';
CREATE TABLE t (id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ('connector'='filesystem','path'='${DATA}/dst_shanghai.csv','format'='csv');
SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end, window_time;
SELECT id, window_start, window_time FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '90' MINUTE));
SELECT HOP_START(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR), HOP_ROWTIME(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR), COUNT(*) FROM t GROUP BY HOP(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR);
SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '3' HOUR)) GROUP BY window_start, window_end, window_time;
SELECT id, window_start, window_end, window_time FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '2' HOUR));
