-- caught: SUM(quantity) => COUNT(quantity)
SCRIPT 'top_products.sql';

TEST 'the two products of which most pieces were sold, each hour';
GIVEN sales
| product | quantity | ts                  |
| pen     | 1        | 2024-01-01 10:00:00 |
| pen     | 1        | 2024-01-01 10:10:00 |
| book    | 7        | 2024-01-01 10:20:00 |
| lamp    | 3        | 2024-01-01 10:30:00 |
| pen     | 4        | 2024-01-01 11:00:00 |
EXPECT top_products
| window_start            | place | product | sold |
| 2024-01-01 10:00:00.000 | 1     | book    | 7    |
| 2024-01-01 10:00:00.000 | 2     | lamp    | 3    |
| 2024-01-01 11:00:00.000 | 1     | pen     | 4    |
