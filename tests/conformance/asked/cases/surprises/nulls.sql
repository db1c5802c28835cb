SELECT m['x'] AS missing, m['x'] IS NULL AS is_null, m['x'] + 1 AS plus_one, COALESCE(m['x'], 9) AS coalesced FROM (SELECT CAST(MAP['a', 1] AS MAP<STRING NOT NULL, INT NOT NULL>) AS m);
SELECT x FROM (VALUES (1), (CAST(NULL AS INT))) AS t(x) WHERE x IN (1, NULL);
