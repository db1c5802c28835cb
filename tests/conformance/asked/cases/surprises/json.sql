SELECT JSON_OBJECT('b' VALUE 1, 'a' VALUE 2) AS sorted, JSON_QUOTE('ä') AS escaped;
SELECT JSON_EXISTS('{"a": null}', '$.a') AS of_null, CAST(NULL AS STRING) IS JSON AS null_is_json, '{}x' IS JSON AS garbage;
SELECT JSON_VALUE('{"a": 1e3}', '$.a') AS rendered;
SELECT JSON_VALUE('{}', '$.a' DEFAULT 'x' ON EMPTY) AS strict, JSON_VALUE('{}', 'lax $.a' DEFAULT 'x' ON EMPTY) AS lax;
SELECT JSON_OBJECT('a' VALUE CAST(0.1 AS FLOAT)) AS digits;
SELECT JSON_OBJECTAGG(KEY k VALUE v) AS typed FROM (VALUES ('b', 1), ('a', 2)) AS t(k, v);
