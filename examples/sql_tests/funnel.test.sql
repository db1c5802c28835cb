-- caught: PATTERN (V C B) => PATTERN (V C? B)
SCRIPT 'funnel.sql';

TEST 'only who goes from the product over the cart to the payment counts';
GIVEN clicks
| who | page    | ts                  |
| ann | product | 2024-01-01 10:00:00 |
| bob | product | 2024-01-01 10:00:10 |
| ann | cart    | 2024-01-01 10:01:00 |
| bob | paid    | 2024-01-01 10:02:00 |
| ann | paid    | 2024-01-01 10:03:00 |
EXPECT purchases
| who | seen                    | bought                  |
| ann | 2024-01-01 10:00:00.000 | 2024-01-01 10:03:00.000 |

TEST 'a purchase that takes more than an hour is none of this funnel';
GIVEN clicks
| who | page    | ts                  |
| ann | product | 2024-01-01 10:00:00 |
| ann | cart    | 2024-01-01 10:30:00 |
| ann | paid    | 2024-01-01 11:00:01 |
EXPECT purchases NOTHING;
