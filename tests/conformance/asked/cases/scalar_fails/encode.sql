SELECT ENCODE('a', p) FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
