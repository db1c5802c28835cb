SELECT FROM_UNIXTIME(0, p) FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
