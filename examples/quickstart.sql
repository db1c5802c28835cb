-- A year of departures from New York's three airports (336,776 flights), read as a stream.
-- `make demo` lays the files out in build/demo-data and runs this script.

CREATE TABLE flights (
  `year` STRING, `month` STRING, `day` STRING,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, `hour` STRING, `minute` STRING, time_hour STRING,
  -- The scheduled departure, local time.
  departs AS TO_TIMESTAMP(
    `year` || '-' || LPAD(`month`, 2, '0') || '-' || LPAD(`day`, 2, '0') || ' '
    || LPAD(`hour`, 2, '0') || ':' || LPAD(`minute`, 2, '0') || ':00'),
  WATERMARK FOR departs AS departs - INTERVAL '1' HOUR
) WITH (
  'connector' = 'filesystem',
  'path' = 'build/demo-data/flights.csv',
  'format' = 'csv',
  'csv.header' = 'true',
  'csv.null-literal' = 'NA'
);

CREATE TABLE airlines (
  carrier STRING,
  name STRING
) WITH (
  'connector' = 'filesystem',
  'path' = 'build/demo-data/airlines.csv',
  'format' = 'csv',
  'csv.header' = 'true'
);

-- Daily windows per airport and airline: a flight without a departure time was cancelled.
CREATE VIEW daily AS
SELECT
  window_start,
  origin,
  carrier,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled,
  AVG(CAST(dep_delay AS DOUBLE)) AS mean_delay
FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(departs), INTERVAL '1' DAY))
GROUP BY window_start, window_end, origin, carrier;

-- The year's worst days: who cancelled at least 45 flights at one airport?
SELECT
  CAST(d.window_start AS DATE) AS `day`,
  d.origin,
  a.name AS airline,
  d.flights,
  d.cancelled,
  CAST(d.mean_delay AS DECIMAL(6, 1)) AS mean_delay
FROM daily AS d
JOIN airlines AS a ON d.carrier = a.carrier
WHERE d.cancelled >= 45;
