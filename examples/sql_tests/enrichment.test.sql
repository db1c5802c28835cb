-- caught: LEFT JOIN rates => JOIN rates
SCRIPT 'enrichment.sql';

TEST 'an order takes the rate of its moment, and stays without one';
GIVEN rates
| op | currency | rate   | since               |
| +I | USD      | 0.9    | 2024-01-01 00:00:00 |
| +U | USD      | 0.95   | 2024-01-01 12:00:00 |
GIVEN orders
| id | currency | amount | ts                  |
| 1  | USD      | 100    | 2024-01-01 11:59:59 |
| 2  | USD      | 100    | 2024-01-01 12:00:00 |
| 3  | SEK      | 100    | 2024-01-01 12:30:00 |
EXPECT euros
| id | eur   |
| 1  | 90.00 |
| 2  | 95.00 |
| 3  | NULL  |
