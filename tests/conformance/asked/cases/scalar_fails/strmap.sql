SELECT STR_TO_MAP('a=1,b=2', p, '='), STR_TO_MAP('a=1,b=2', '[', '=') FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
