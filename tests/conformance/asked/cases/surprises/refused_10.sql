SELECT one FROM (VALUES (1)) AS t(one);
