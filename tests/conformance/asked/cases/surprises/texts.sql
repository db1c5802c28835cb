SELECT REGEXP_REPLACE('ab', '(a)', '$1x') AS literal, REGEXP('a', '') AS empty_pattern;
SELECT CAST('a' AS CHAR(3)) AS padded, CAST(TRUE AS STRING) AS upper_case;
SELECT CARDINALITY(SPLIT('', ',')) AS parts;
SELECT PRINTF('%.2f', CAST(1.5 AS DECIMAL(3, 1))) AS formatted;
SELECT OVERLAY('abcdef' PLACING 'X' FROM 3 FOR 0) AS lost;
