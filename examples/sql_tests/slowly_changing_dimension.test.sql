-- caught: LEFT JOIN names => JOIN names
SCRIPT 'slowly_changing_dimension.sql';

TEST 'a changed price replaces the old one';
GIVEN products_cdc
| op | id | price | changed             |
| +I | 1  | 9.99  | 2024-01-01 00:00:00 |
| -U | 1  | 9.99  | 2024-01-01 00:00:00 |
| +U | 1  | 7.50  | 2024-02-01 00:00:00 |
EXPECT current_prices
| id | price |
| 1  | 7.50  |
EXPECT CHANGES OF current_prices
| op | id | price |
| +I | 1  | 9.99  |
| -U | 1  | 9.99  |
| +U | 1  | 7.50  |

TEST 'a sale takes the name that is known when it comes';
GIVEN names VALUES (1, 'pen');
GIVEN sales VALUES (1, 10), (2, 5);
GIVEN names VALUES (2, 'book');
GIVEN sales VALUES (2, 6);
EXPECT named_sales
| id | name | pieces |
| 1  | pen  | 10     |
| 2  | NULL | 5      |
| 2  | book | 6      |
