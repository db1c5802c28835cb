SCRIPT PROJECT;

TEST 'whoever is warmer than the profile allows is told of at once';
GIVEN readings
| sensor | ts                  | celsius |
| a      | 2024-01-01 10:00:00 | 20.0    |
| b      | 2024-01-01 10:00:00 | 20.5    |
EXPECT alerts
| sensor | celsius |
| b      | 20.5    |

TEST 'an hour is told once the watermark has passed it';
GIVEN readings
| sensor | ts                  | celsius |
| a      | 2024-01-01 10:00:00 | 19.0    |
| a      | 2024-01-01 10:59:59 | 18.0    |
ADVANCE WATERMARK FOR readings TO TIMESTAMP '2024-01-01 10:59:59';
EXPECT hourly NOTHING;
ADVANCE WATERMARK FOR readings TO TIMESTAMP '2024-01-01 11:00:00';
EXPECT hourly
| sensor | started             | warmest |
| a      | 2024-01-01 10:00:00 | 19.0    |
