-- batch
SELECT k, id, point FROM (SELECT k, COLLECT(r) AS s FROM (VALUES (1, ROW(12, 'a')), (1, ROW(12, 'a')), (2, ROW(13, 'b'))) AS t(k, r) GROUP BY k) CROSS JOIN UNNEST(s) AS A(id, point);
