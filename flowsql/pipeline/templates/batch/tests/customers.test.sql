SCRIPT PROJECT;

TEST 'customers are summed up, without orders that cost nothing';
GIVEN raw_orders
| id | customer | price |
| 1  | ann      | 10.00 |
| 2  | ann      | 2.50  |
| 3  | bob      | 0.00  |
EXPECT customers
| customer | orders | spent |
| ann      | 2      | 12.50 |
