SET 'table.local-time-zone'='America/Los_Angeles';
CREATE TABLE t (id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ('connector'='filesystem','path'='${DATA}/dst_los_angeles.csv','format'='csv');
SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, window_time;
SELECT id, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE));
SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), TUMBLE_END(ts, INTERVAL '1' HOUR), TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR), COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);
SELECT TUMBLE_START(ts, INTERVAL '1' DAY), TUMBLE_ROWTIME(ts, INTERVAL '1' DAY), COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
SELECT window_start, window_time, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '15' MINUTE)) GROUP BY window_start, window_end, window_time;
