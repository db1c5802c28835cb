SELECT UNIX_TIMESTAMP('2020-01-01', p) FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
