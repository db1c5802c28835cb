-- caught: SMALL{2,} BIG => SMALL BIG
SCRIPT 'fraud_pattern.sql';

TEST 'two tiny amounts and then a large one within ten minutes';
GIVEN transactions
| account | amount | ts                  |
| a       | 0.50   | 2024-01-01 10:00:00 |
| b       | 0.50   | 2024-01-01 10:00:30 |
| a       | 0.10   | 2024-01-01 10:01:00 |
| b       | 900    | 2024-01-01 10:01:30 |
| a       | 700    | 2024-01-01 10:02:00 |
EXPECT suspicious
| account | tested                  | taken  |
| a       | 2024-01-01 10:00:00.000 | 700.00 |
