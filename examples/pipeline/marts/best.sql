CREATE TABLE best (customer STRING, spent DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'out/best', 'format' = 'json');

INSERT INTO best SELECT customer, spent FROM customers ORDER BY spent DESC LIMIT 2;
