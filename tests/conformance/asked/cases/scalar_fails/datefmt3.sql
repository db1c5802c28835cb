SELECT DATE_FORMAT(CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP_LTZ(3)), p) FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
