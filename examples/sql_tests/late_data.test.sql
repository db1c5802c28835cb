-- caught: ts - INTERVAL '30' SECOND => ts
SCRIPT 'late_data.sql';

TEST 'payments may come half a minute late, and later ones are dropped';
GIVEN payments
| account | amount | ts                  |
| a       | 10     | 2024-01-01 10:00:10 |
| a       | 20     | 2024-01-01 10:01:20 |
| a       | 1      | 2024-01-01 10:00:55 |
| a       | 30     | 2024-01-01 10:01:31 |
| a       | 2      | 2024-01-01 10:00:59 |
EXPECT by_minute
| window_start            | total |
| 2024-01-01 10:00:00.000 | 11    |
| 2024-01-01 10:01:00.000 | 50    |

TEST 'a day of minutes in one go';
GIVEN payments
| account | amount | ts                  |
| a       | 1      | 2024-01-01 00:00:00 |
ADVANCE WATERMARK FOR payments TO TIMESTAMP '2024-01-01 12:00:00';
GIVEN payments
| account | amount | ts                  |
| a       | 2      | 2024-01-01 12:00:00 |
| a       | 3      | 2024-01-01 23:59:59 |
ADVANCE WATERMARK FOR payments TO TIMESTAMP '2024-01-02 00:00:00';
EXPECT by_minute
| window_start            | total |
| 2024-01-01 00:00:00.000 | 1     |
| 2024-01-01 12:00:00.000 | 2     |
| 2024-01-01 23:59:00.000 | 3     |
