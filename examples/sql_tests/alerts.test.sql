-- caught: HAVING AVG(celsius) => HAVING MAX(celsius)
SCRIPT 'alerts.sql' WITH ('limit' = '80');

TEST 'one hot reading is no alert, five minutes of heat are';
GIVEN readings
| sensor | celsius | measured            |
| a      | 95      | 2024-01-01 10:00:30 |
| b      | 81      | 2024-01-01 10:00:40 |
| a      | 20      | 2024-01-01 10:00:50 |
| b      | 83      | 2024-01-01 10:03:00 |
ADVANCE WATERMARK FOR readings TO TIMESTAMP '2024-01-01 10:05:00';
EXPECT alerts
| sensor | window_end              | average |
| b      | 2024-01-01 10:01:00.000 | 81.0    |
| b      | 2024-01-01 10:02:00.000 | 81.0    |
| b      | 2024-01-01 10:03:00.000 | 81.0    |
| b      | 2024-01-01 10:04:00.000 | 82.0    |
| b      | 2024-01-01 10:05:00.000 | 82.0    |
