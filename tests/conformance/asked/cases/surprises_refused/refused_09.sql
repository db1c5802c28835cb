SELECT prev FROM (VALUES (1)) AS t(prev);
