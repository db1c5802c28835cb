-- caught: ORDER BY ts ASC => ORDER BY ts DESC
SCRIPT 'dedup.sql';

TEST 'of an order that is sent again the first version stays';
GIVEN orders
| id | amount | ts                  |
| 1  | 10.00  | 2024-01-01 10:00:00 |
| 2  | 5      | 2024-01-01 10:00:01 |
| 1  | 99.00  | 2024-01-01 10:00:30 |
EXPECT first_orders
| id | amount | ts                      |
| 1  | 10.00  | 2024-01-01 10:00:00.000 |
| 2  | 5.00   | 2024-01-01 10:00:01.000 |

TEST 'a version that comes late but was made earlier wins';
GIVEN orders
| id | amount | ts                  |
| 1  | 10.00  | 2024-01-01 10:00:05 |
| 1  | 7.50   | 2024-01-01 10:00:00 |
EXPECT first_orders
| id | amount |
| 1  | 7.50   |
