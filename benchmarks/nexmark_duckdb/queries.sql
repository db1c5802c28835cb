-- The Nexmark queries for DuckDB: each gives the rows that stand at the end of the streaming query of the same name.
-- Sections begin with a line "-- qN"; what stands before the first one is the schema. ${DATA} is the folder of the events.
CREATE VIEW events AS
SELECT * FROM read_csv('${DATA}/events/*.csv', auto_detect = false, header = false, delim = ',', quote = '"', nullstr = '',
    columns = {
        'event_type': 'INTEGER', 'dateTime': 'TIMESTAMP_MS', 'extra': 'VARCHAR',
        'p_id': 'BIGINT', 'p_name': 'VARCHAR', 'p_emailAddress': 'VARCHAR', 'p_creditCard': 'VARCHAR',
        'p_city': 'VARCHAR', 'p_state': 'VARCHAR',
        'a_id': 'BIGINT', 'a_itemName': 'VARCHAR', 'a_description': 'VARCHAR', 'a_initialBid': 'BIGINT',
        'a_reserve': 'BIGINT', 'a_expires': 'TIMESTAMP_MS', 'a_seller': 'BIGINT', 'a_category': 'BIGINT',
        'b_auction': 'BIGINT', 'b_bidder': 'BIGINT', 'b_price': 'BIGINT', 'b_channel': 'VARCHAR', 'b_url': 'VARCHAR'});
CREATE VIEW person AS
SELECT p_id AS id, p_name AS name, p_emailAddress AS emailAddress, p_creditCard AS creditCard, p_city AS city,
       p_state AS state, dateTime, extra
FROM events WHERE event_type = 0;
CREATE VIEW auction AS
SELECT a_id AS id, a_itemName AS itemName, a_description AS description, a_initialBid AS initialBid, a_reserve AS reserve,
       dateTime, a_expires AS expires, a_seller AS seller, a_category AS category, extra
FROM events WHERE event_type = 1;
CREATE VIEW bid AS
SELECT b_auction AS auction, b_bidder AS bidder, b_price AS price, b_channel AS channel, b_url AS url, dateTime, extra
FROM events WHERE event_type = 2;

-- q0
SELECT auction, bidder, price, dateTime, extra FROM bid;

-- q1
SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price, dateTime, extra FROM bid;

-- q2
SELECT auction, price FROM bid WHERE auction % 123 = 0;

-- q3
SELECT p.name, p.city, p.state, a.id
FROM auction AS a JOIN person AS p ON p.id = a.seller
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');

-- q4
SELECT category, (SUM(best) // COUNT(best))::BIGINT
FROM (
    SELECT a.id, a.category, MAX(b.price) AS best
    FROM auction AS a JOIN bid AS b ON b.auction = a.id
    WHERE b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.category)
GROUP BY category;

-- q5
-- Bids are counted in slices of 2 seconds first, so that five windows share them.
WITH slices AS (
    SELECT auction, time_bucket(INTERVAL '2 seconds', dateTime) AS slice, COUNT(*) AS num FROM bid GROUP BY ALL),
windows AS (
    SELECT auction, slice - k * INTERVAL '2 seconds' AS window_start, SUM(num)::BIGINT AS num
    FROM slices, (SELECT UNNEST(range(5)) AS k) GROUP BY ALL)
SELECT auction, num FROM windows
QUALIFY num = MAX(num) OVER (PARTITION BY window_start);

-- q6
SELECT seller, (SUM(best) // COUNT(best))::BIGINT
FROM (
    SELECT seller, best
    FROM (
        SELECT a.id, a.seller, a.expires, MAX(b.price) AS best
        FROM auction AS a JOIN bid AS b ON b.auction = a.id
        WHERE b.dateTime BETWEEN a.dateTime AND a.expires
        GROUP BY a.id, a.seller, a.expires)
    QUALIFY ROW_NUMBER() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) <= 10)
GROUP BY seller;

-- q7
SELECT b.auction, b.bidder, b.price, b.dateTime, b.extra
FROM bid AS b
JOIN (SELECT MAX(price) AS top, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start FROM bid GROUP BY ALL) AS w
ON b.price = w.top AND time_bucket(INTERVAL '10 seconds', b.dateTime) = w.window_start;

-- q8
SELECT p.id, p.name, p.window_start
FROM (SELECT id, name, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start FROM person GROUP BY ALL) AS p
JOIN (SELECT seller, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start FROM auction GROUP BY ALL) AS a
ON p.id = a.seller AND p.window_start = a.window_start;

-- q9
SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra,
       auction, bidder, price, bid_dateTime, bid_extra
FROM (
    SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra
    FROM auction AS a JOIN bid AS b ON b.auction = a.id
    WHERE b.dateTime BETWEEN a.dateTime AND a.expires)
QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY price DESC, bid_dateTime ASC) <= 1;

-- q10
COPY (
    SELECT auction, bidder, price, strftime(dateTime, '%Y-%m-%d %H:%M:%S.%g') AS dateTime, extra,
           strftime(dateTime, '%Y-%m-%d') AS dt, strftime(dateTime, '%H:%M') AS hm
    FROM bid)
TO '${OUT}/q10' (FORMAT csv, HEADER false, PARTITION_BY (dt, hm));

-- q11
WITH marked AS (
    SELECT bidder, dateTime,
           CASE WHEN dateTime - LAG(dateTime) OVER w <= INTERVAL '10 seconds' THEN 0 ELSE 1 END AS opens
    FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)),
numbered AS (
    SELECT bidder, dateTime,
           SUM(opens) OVER (PARTITION BY bidder ORDER BY dateTime ROWS UNBOUNDED PRECEDING) AS session
    FROM marked)
SELECT bidder, COUNT(*) AS bid_count, MIN(dateTime) AS starttime, MAX(dateTime) + INTERVAL '10 seconds' AS endtime
FROM numbered GROUP BY bidder, session;

-- q12
-- Windows of the clock have no meaning for a batch: the bids of each bidder in all.
SELECT bidder, COUNT(*) AS bid_count FROM bid GROUP BY bidder;

-- q13
-- Each key has one version, so that an equi-join gives the rows of the temporal join; an ASOF JOIN takes ten times as long.
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM (SELECT *, auction % 10000 AS k FROM bid) AS b
JOIN read_csv('${DATA}/side_input/*.csv', auto_detect = false, header = false, delim = ',',
    columns = {'key': 'BIGINT', 'value': 'VARCHAR', 'valid_from': 'TIMESTAMP_MS'}) AS s
ON s.key = b.k AND b.dateTime >= s.valid_from;

-- q14
SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price,
       CASE WHEN HOUR(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
            WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS bidTimeType,
       dateTime, extra, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

-- q15
SELECT strftime(dateTime, '%Y-%m-%d') AS day,
       COUNT(*) AS total_bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       COUNT(DISTINCT bidder) AS total_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
       COUNT(DISTINCT auction) AS total_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY day;

-- q16
SELECT channel, strftime(dateTime, '%Y-%m-%d') AS day, MAX(strftime(dateTime, '%H:%M')) AS minute,
       COUNT(*) AS total_bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       COUNT(DISTINCT bidder) AS total_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
       COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
       COUNT(DISTINCT auction) AS total_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
       COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY channel, day;

-- q17
SELECT auction, strftime(dateTime, '%Y-%m-%d') AS day,
       COUNT(*) AS total_bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       MIN(price) AS min_price, MAX(price) AS max_price,
       (SUM(price) // COUNT(price))::BIGINT AS avg_price, SUM(price)::BIGINT AS sum_price
FROM bid GROUP BY auction, day;

-- q18
-- Of bids at the same time any one stays, as the order of arrival is no column.
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM bid
QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) <= 1;

-- q19
SELECT auction, bidder, price, channel, url, dateTime, extra,
       ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
FROM bid
QUALIFY rank_number <= 10;

-- q20
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
       a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS auction_dateTime, a.expires, a.seller,
       a.category, a.extra AS auction_extra
FROM bid AS b JOIN auction AS a ON a.id = b.auction
WHERE a.category = 10;

-- q21
SELECT auction, bidder, price, channel,
       CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
FROM bid
WHERE LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
   OR REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) <> '';

-- q22
SELECT auction, bidder, price, channel,
       SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2, SPLIT_PART(url, '/', 6) AS dir3
FROM bid;

-- q23
SELECT b.bidder, b.price, b.channel, b.url, b.extra AS bid_extra,
       p.id AS person_id, p.name, p.emailAddress, p.creditCard, p.city, p.state, p.extra AS person_extra,
       a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS auction_dateTime, a.expires, a.seller,
       a.category, a.extra AS auction_extra
FROM bid AS b JOIN person AS p ON p.id = b.bidder JOIN auction AS a ON a.seller = b.bidder;
