CREATE TABLE a (id INT, k STRING, v BIGINT, d DECIMAL(8, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = '/nowhere/a.csv', 'format' = 'csv');
CREATE TABLE b (id INT NOT NULL, k STRING, w BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '/nowhere/b.csv', 'format' = 'csv');
CREATE TABLE p (id INT, k STRING, x BIGINT) WITH ('connector' = 'filesystem', 'path' = '/nowhere/p.csv', 'format' = 'csv');
CREATE TABLE gen (id INT, k STRING, x BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE m (id INT, d DOUBLE, e DOUBLE, n DOUBLE NOT NULL, f FLOAT) WITH ('connector' = 'filesystem', 'path' = '/nowhere/m.csv', 'format' = 'csv');
