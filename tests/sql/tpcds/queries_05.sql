-- q81
WITH customer_total_return AS (
  SELECT cr_returning_customer_sk AS ctr_customer_sk, ca_state AS ctr_state,
    SUM(cr_return_amt_inc_tax) AS ctr_total_return
  FROM catalog_returns, date_dim, customer_address
  WHERE cr_returned_date_sk = d_date_sk AND d_year = 2000 AND cr_returning_addr_sk = ca_address_sk
  GROUP BY cr_returning_customer_sk, ca_state)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name, ca_street_type,
  ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset, ca_location_type,
  ctr_total_return
FROM customer_total_return ctr1, customer_address, customer
WHERE ctr1.ctr_total_return > (
    SELECT AVG(ctr_total_return) * 1.2 FROM customer_total_return ctr2 WHERE ctr1.ctr_state = ctr2.ctr_state)
  AND ca_address_sk = c_current_addr_sk AND ca_state = 'GA' AND ctr1.ctr_customer_sk = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name, ca_street_type,
  ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_country, ca_gmt_offset, ca_location_type,
  ctr_total_return LIMIT 100;
-- q82
SELECT i_item_id, i_item_desc, i_current_price
FROM item, inventory, date_dim, store_sales
WHERE i_current_price BETWEEN 62 AND 62 + 30 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk
  AND d_date BETWEEN DATE '2000-05-25' AND DATE '2000-05-25' + INTERVAL '60' DAY
  AND i_manufact_id IN (129, 270, 821, 423) AND inv_quantity_on_hand BETWEEN 100 AND 500 AND ss_item_sk = i_item_sk
GROUP BY i_item_id, i_item_desc, i_current_price
ORDER BY i_item_id, i_item_desc, i_current_price LIMIT 100;
-- q83
WITH sr_items AS (
  SELECT i_item_id AS item_id, SUM(sr_return_quantity) AS sr_item_qty FROM store_returns, item, date_dim
  WHERE sr_item_sk = i_item_sk AND d_date IN (
      SELECT d_date FROM date_dim WHERE d_week_seq IN (
        SELECT d_week_seq FROM date_dim
        WHERE d_date IN (DATE '2000-06-30', DATE '2000-09-27', DATE '2000-11-17')))
    AND sr_returned_date_sk = d_date_sk
  GROUP BY i_item_id),
cr_items AS (
  SELECT i_item_id AS item_id, SUM(cr_return_quantity) AS cr_item_qty FROM catalog_returns, item, date_dim
  WHERE cr_item_sk = i_item_sk AND d_date IN (
      SELECT d_date FROM date_dim WHERE d_week_seq IN (
        SELECT d_week_seq FROM date_dim
        WHERE d_date IN (DATE '2000-06-30', DATE '2000-09-27', DATE '2000-11-17')))
    AND cr_returned_date_sk = d_date_sk
  GROUP BY i_item_id),
wr_items AS (
  SELECT i_item_id AS item_id, SUM(wr_return_quantity) AS wr_item_qty FROM web_returns, item, date_dim
  WHERE wr_item_sk = i_item_sk AND d_date IN (
      SELECT d_date FROM date_dim WHERE d_week_seq IN (
        SELECT d_week_seq FROM date_dim
        WHERE d_date IN (DATE '2000-06-30', DATE '2000-09-27', DATE '2000-11-17')))
    AND wr_returned_date_sk = d_date_sk
  GROUP BY i_item_id)
SELECT sr_items.item_id, sr_item_qty,
  sr_item_qty * 1.0 / (sr_item_qty + cr_item_qty + wr_item_qty) / 3.0 * 100 AS sr_dev, cr_item_qty,
  cr_item_qty * 1.0 / (sr_item_qty + cr_item_qty + wr_item_qty) / 3.0 * 100 AS cr_dev, wr_item_qty,
  wr_item_qty * 1.0 / (sr_item_qty + cr_item_qty + wr_item_qty) / 3.0 * 100 AS wr_dev,
  (sr_item_qty + cr_item_qty + wr_item_qty) / 3.0 AS average
FROM sr_items, cr_items, wr_items
WHERE sr_items.item_id = cr_items.item_id AND sr_items.item_id = wr_items.item_id
ORDER BY sr_items.item_id, sr_item_qty LIMIT 100;
-- q84
SELECT c_customer_id AS customer_id,
  COALESCE(c_last_name, '') || ', ' || COALESCE(c_first_name, '') AS customername
FROM customer, customer_address, customer_demographics, household_demographics, income_band, store_returns
WHERE ca_city = 'Edgewood' AND c_current_addr_sk = ca_address_sk AND ib_lower_bound >= 38128
  AND ib_upper_bound <= 38128 + 50000 AND ib_income_band_sk = hd_income_band_sk AND cd_demo_sk = c_current_cdemo_sk
  AND hd_demo_sk = c_current_hdemo_sk AND sr_cdemo_sk = cd_demo_sk
ORDER BY c_customer_id LIMIT 100;
-- q85
SELECT SUBSTR(r_reason_desc, 1, 20) AS reason, AVG(CAST(ws_quantity AS DOUBLE)) AS avg_quantity,
  AVG(wr_refunded_cash) AS avg_cash, AVG(wr_fee) AS avg_fee
FROM web_sales, web_returns, web_page, customer_demographics cd1, customer_demographics cd2, customer_address,
  date_dim, reason
WHERE ws_web_page_sk = wp_web_page_sk AND ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number
  AND ws_sold_date_sk = d_date_sk AND d_year = 2000 AND cd1.cd_demo_sk = wr_refunded_cdemo_sk
  AND cd2.cd_demo_sk = wr_returning_cdemo_sk AND ca_address_sk = wr_refunded_addr_sk AND r_reason_sk = wr_reason_sk
  AND ((cd1.cd_marital_status = 'M' AND cd1.cd_marital_status = cd2.cd_marital_status
      AND cd1.cd_education_status = 'Advanced Degree' AND cd1.cd_education_status = cd2.cd_education_status
      AND ws_sales_price BETWEEN 100.00 AND 150.00)
    OR (cd1.cd_marital_status = 'S' AND cd1.cd_marital_status = cd2.cd_marital_status
      AND cd1.cd_education_status = 'College' AND cd1.cd_education_status = cd2.cd_education_status
      AND ws_sales_price BETWEEN 50.00 AND 100.00)
    OR (cd1.cd_marital_status = 'W' AND cd1.cd_marital_status = cd2.cd_marital_status
      AND cd1.cd_education_status = '2 yr Degree' AND cd1.cd_education_status = cd2.cd_education_status
      AND ws_sales_price BETWEEN 150.00 AND 200.00))
  AND ((ca_country = 'United States' AND ca_state IN ('IN', 'OH', 'NJ') AND ws_net_profit BETWEEN 100 AND 200)
    OR (ca_country = 'United States' AND ca_state IN ('WI', 'CT', 'KY') AND ws_net_profit BETWEEN 150 AND 300)
    OR (ca_country = 'United States' AND ca_state IN ('LA', 'IA', 'AR') AND ws_net_profit BETWEEN 50 AND 250))
GROUP BY r_reason_desc
ORDER BY reason, avg_quantity, avg_cash, avg_fee LIMIT 100;
-- q86
SELECT SUM(ws_net_paid) AS total_sum, i_category, i_class, GROUPING(i_category) + GROUPING(i_class) AS lochierarchy,
  RANK() OVER (
    PARTITION BY GROUPING(i_category) + GROUPING(i_class), CASE WHEN GROUPING(i_class) = 0 THEN i_category END
    ORDER BY SUM(ws_net_paid) DESC) AS rank_within_parent
FROM web_sales, date_dim d1, item
WHERE d1.d_month_seq BETWEEN 1200 AND 1200 + 11 AND d1.d_date_sk = ws_sold_date_sk AND i_item_sk = ws_item_sk
GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, CASE WHEN lochierarchy = 0 THEN i_category END, rank_within_parent, i_category, i_class
LIMIT 100;
-- q87
SELECT COUNT(*) AS cnt FROM (
  SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer
  WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_month_seq BETWEEN 1200 AND 1200 + 11
  EXCEPT
  SELECT DISTINCT c_last_name, c_first_name, d_date FROM catalog_sales, date_dim, customer
  WHERE cs_sold_date_sk = d_date_sk AND cs_bill_customer_sk = c_customer_sk
    AND d_month_seq BETWEEN 1200 AND 1200 + 11
  EXCEPT
  SELECT DISTINCT c_last_name, c_first_name, d_date FROM web_sales, date_dim, customer
  WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk
    AND d_month_seq BETWEEN 1200 AND 1200 + 11) cool_cust;
-- q88
SELECT * FROM (
  SELECT COUNT(*) AS h8_30_to_9 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 8
    AND t_minute >= 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s1, (
  SELECT COUNT(*) AS h9_to_9_30 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 9
    AND t_minute < 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s2, (
  SELECT COUNT(*) AS h9_30_to_10 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 9
    AND t_minute >= 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s3, (
  SELECT COUNT(*) AS h10_to_10_30 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 10
    AND t_minute < 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s4, (
  SELECT COUNT(*) AS h10_30_to_11 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 10
    AND t_minute >= 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s5, (
  SELECT COUNT(*) AS h11_to_11_30 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 11
    AND t_minute < 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s6, (
  SELECT COUNT(*) AS h11_30_to_12 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 11
    AND t_minute >= 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s7, (
  SELECT COUNT(*) AS h12_to_12_30 FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 12
    AND t_minute < 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
      OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2) OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese') s8;
-- q89
SELECT * FROM (
  SELECT i_category, i_class, i_brand, s_store_name, s_company_name, d_moy, SUM(ss_sales_price) AS sum_sales,
    AVG(SUM(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name)
      AS avg_monthly_sales
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year IN (1999)
    AND ((i_category IN ('Books', 'Electronics', 'Sports') AND i_class IN ('computers', 'stereo', 'football'))
      OR (i_category IN ('Men', 'Jewelry', 'Women') AND i_class IN ('shirts', 'birdal', 'dresses')))
  GROUP BY i_category, i_class, i_brand, s_store_name, s_company_name, d_moy) tmp1
WHERE CASE WHEN avg_monthly_sales <> 0 THEN ABS(sum_sales - avg_monthly_sales) / avg_monthly_sales END > 0.1
ORDER BY sum_sales - avg_monthly_sales, s_store_name, i_category, i_class, i_brand, s_company_name, d_moy LIMIT 100;
-- q90
SELECT CAST(amc AS DECIMAL(15, 4)) / CAST(pmc AS DECIMAL(15, 4)) AS am_pm_ratio
FROM (
  SELECT COUNT(*) AS amc FROM web_sales, household_demographics, time_dim, web_page
  WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 8 AND 8 + 1 AND hd_dep_count = 6 AND wp_char_count BETWEEN 5000 AND 5200) am_count, (
  SELECT COUNT(*) AS pmc FROM web_sales, household_demographics, time_dim, web_page
  WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 19 AND 19 + 1 AND hd_dep_count = 6 AND wp_char_count BETWEEN 5000 AND 5200) pm_count
ORDER BY am_pm_ratio LIMIT 100;
-- q91
SELECT cc_call_center_id, cc_name, cc_manager, SUM(cr_net_loss) AS returns_loss
FROM call_center, catalog_returns, date_dim, customer, customer_address, customer_demographics,
  household_demographics
WHERE cr_call_center_sk = cc_call_center_sk AND cr_returned_date_sk = d_date_sk
  AND cr_returning_customer_sk = c_customer_sk AND cd_demo_sk = c_current_cdemo_sk
  AND hd_demo_sk = c_current_hdemo_sk AND ca_address_sk = c_current_addr_sk AND d_year = 1998 AND d_moy = 11
  AND ((cd_marital_status = 'M' AND cd_education_status = 'Unknown')
    OR (cd_marital_status = 'W' AND cd_education_status = 'Advanced Degree'))
  AND hd_buy_potential LIKE 'Unknown%' AND ca_gmt_offset = -7
GROUP BY cc_call_center_id, cc_name, cc_manager, cd_marital_status, cd_education_status
ORDER BY returns_loss DESC, cc_call_center_id;
-- q92
SELECT SUM(ws_ext_discount_amt) AS excess_discount_amount
FROM web_sales, item, date_dim
WHERE i_manufact_id = 350 AND i_item_sk = ws_item_sk
  AND d_date BETWEEN DATE '2000-01-27' AND DATE '2000-01-27' + INTERVAL '90' DAY AND d_date_sk = ws_sold_date_sk
  AND ws_ext_discount_amt > (
    SELECT 1.3 * AVG(ws_ext_discount_amt) FROM web_sales, date_dim
    WHERE ws_item_sk = i_item_sk AND d_date BETWEEN DATE '2000-01-27' AND DATE '2000-01-27' + INTERVAL '90' DAY
      AND d_date_sk = ws_sold_date_sk)
ORDER BY excess_discount_amount LIMIT 100;
-- q93
SELECT ss_customer_sk, SUM(act_sales) AS sumsales FROM (
  SELECT ss_item_sk, ss_ticket_number, ss_customer_sk,
    CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price
      ELSE ss_quantity * ss_sales_price END AS act_sales
  FROM store_sales LEFT OUTER JOIN store_returns
    ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason
  WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = 'reason 28') t
GROUP BY ss_customer_sk ORDER BY sumsales, ss_customer_sk LIMIT 100;
-- q94
SELECT COUNT(DISTINCT ws_order_number) AS order_count, SUM(ws_ext_ship_cost) AS total_shipping_cost,
  SUM(ws_net_profit) AS total_net_profit
FROM web_sales ws1, date_dim, customer_address, web_site
WHERE d_date BETWEEN DATE '1999-02-01' AND DATE '1999-02-01' + INTERVAL '60' DAY
  AND ws1.ws_ship_date_sk = d_date_sk AND ws1.ws_ship_addr_sk = ca_address_sk AND ca_state = 'IL'
  AND ws1.ws_web_site_sk = web_site_sk AND web_company_name = 'pri'
  AND EXISTS (
    SELECT * FROM web_sales ws2
    WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM web_returns wr1 WHERE ws1.ws_order_number = wr1.wr_order_number)
ORDER BY order_count LIMIT 100;
-- q95
WITH ws_wh AS (
  SELECT ws1.ws_order_number, ws1.ws_warehouse_sk AS wh1, ws2.ws_warehouse_sk AS wh2
  FROM web_sales ws1, web_sales ws2
  WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
SELECT COUNT(DISTINCT ws_order_number) AS order_count, SUM(ws_ext_ship_cost) AS total_shipping_cost,
  SUM(ws_net_profit) AS total_net_profit
FROM web_sales ws1, date_dim, customer_address, web_site
WHERE d_date BETWEEN DATE '1999-02-01' AND DATE '1999-02-01' + INTERVAL '60' DAY
  AND ws1.ws_ship_date_sk = d_date_sk AND ws1.ws_ship_addr_sk = ca_address_sk AND ca_state = 'IL'
  AND ws1.ws_web_site_sk = web_site_sk AND web_company_name = 'pri'
  AND ws1.ws_order_number IN (SELECT ws_order_number FROM ws_wh)
  AND ws1.ws_order_number IN (
    SELECT wr_order_number FROM web_returns, ws_wh WHERE wr_order_number = ws_wh.ws_order_number)
ORDER BY order_count LIMIT 100;
-- q96
SELECT COUNT(*) AS cnt
FROM store_sales, household_demographics, time_dim, store
WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 20
  AND t_minute >= 30 AND hd_dep_count = 7 AND s_store_name = 'ese'
ORDER BY cnt LIMIT 100;
-- q97
WITH ssci AS (
  SELECT ss_customer_sk AS customer_sk, ss_item_sk AS item_sk FROM store_sales, date_dim
  WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1200 AND 1200 + 11
  GROUP BY ss_customer_sk, ss_item_sk),
csci AS (
  SELECT cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk FROM catalog_sales, date_dim
  WHERE cs_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1200 AND 1200 + 11
  GROUP BY cs_bill_customer_sk, cs_item_sk)
SELECT SUM(CASE WHEN ssci.customer_sk IS NOT NULL AND csci.customer_sk IS NULL THEN 1 ELSE 0 END) AS store_only,
  SUM(CASE WHEN ssci.customer_sk IS NULL AND csci.customer_sk IS NOT NULL THEN 1 ELSE 0 END) AS catalog_only,
  SUM(CASE WHEN ssci.customer_sk IS NOT NULL AND csci.customer_sk IS NOT NULL THEN 1 ELSE 0 END) AS store_and_catalog
FROM ssci FULL OUTER JOIN csci ON ssci.customer_sk = csci.customer_sk AND ssci.item_sk = csci.item_sk
LIMIT 100;
-- q98
SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, SUM(ss_ext_sales_price) AS itemrevenue,
  SUM(ss_ext_sales_price) * 100 / SUM(SUM(ss_ext_sales_price)) OVER (PARTITION BY i_class) AS revenueratio
FROM store_sales, item, date_dim
WHERE ss_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home') AND ss_sold_date_sk = d_date_sk
  AND d_date BETWEEN DATE '1999-02-22' AND DATE '1999-02-22' + INTERVAL '30' DAY
GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price
ORDER BY i_category, i_class, i_item_id, i_item_desc, revenueratio, i_current_price;
-- q99
SELECT SUBSTR(w_warehouse_name, 1, 20) AS warehouse_name, sm_type, cc_name,
  SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS days_30,
  SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 30 AND cs_ship_date_sk - cs_sold_date_sk <= 60
    THEN 1 ELSE 0 END) AS days_60,
  SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 60 AND cs_ship_date_sk - cs_sold_date_sk <= 90
    THEN 1 ELSE 0 END) AS days_90,
  SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 90 AND cs_ship_date_sk - cs_sold_date_sk <= 120
    THEN 1 ELSE 0 END) AS days_120,
  SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 120 THEN 1 ELSE 0 END) AS days_more
FROM catalog_sales, warehouse, ship_mode, call_center, date_dim
WHERE d_month_seq BETWEEN 1200 AND 1200 + 11 AND cs_ship_date_sk = d_date_sk AND cs_warehouse_sk = w_warehouse_sk
  AND cs_ship_mode_sk = sm_ship_mode_sk AND cs_call_center_sk = cc_call_center_sk
GROUP BY SUBSTR(w_warehouse_name, 1, 20), sm_type, cc_name
ORDER BY warehouse_name, sm_type, cc_name LIMIT 100;
