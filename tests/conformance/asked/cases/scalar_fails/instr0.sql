SELECT INSTR('abcab', 'ab', 1, n - 1) FROM (VALUES ('bogus', 'nowhere', 1), ('yyyy-MM-dd', 'UTC', 3)) AS t(p, z, n);
