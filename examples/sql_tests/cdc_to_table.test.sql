-- caught: COUNT(*) => COUNT(DISTINCT name)
SCRIPT 'cdc_to_table.sql';

TEST 'who moves leaves the old city, and who is deleted is counted no more';
GIVEN customers_cdc
| op | id | name | city   |
| +I | 1  | Ann  | Berlin |
| +I | 2  | Bob  | Berlin |
| +I | 3  | Ann  | Berlin |
| -U | 2  | Bob  | Berlin |
| +U | 2  | Bob  | Paris  |
EXPECT customers_by_city
| city   | customers |
| Berlin | 2         |
| Paris  | 1         |

TEST 'a city without customers goes';
GIVEN customers_cdc
| op | id | name | city   |
| +I | 1  | Ann  | Berlin |
| -D | 1  | Ann  | Berlin |
EXPECT customers_by_city NOTHING;
