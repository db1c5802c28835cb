-- caught: PARTITION BY who, DESCRIPTOR => , DESCRIPTOR
SCRIPT 'sessions.sql';

TEST 'a pause of more than half an hour ends a session, of one user alone';
GIVEN clicks
| who | page  | ts                  |
| ann | home  | 2024-01-01 10:00:00 |
| bob | home  | 2024-01-01 10:10:00 |
| ann | cart  | 2024-01-01 10:29:00 |
| bob | cart  | 2024-01-01 10:30:00 |
| ann | again | 2024-01-01 11:00:00 |
EXPECT sessions
| who | started                 | pages |
| ann | 2024-01-01 10:00:00.000 | 2     |
| bob | 2024-01-01 10:10:00.000 | 2     |
| ann | 2024-01-01 11:00:00.000 | 1     |

TEST 'a session is told once the watermark has passed its end';
GIVEN clicks VALUES ('ann', 'home', TIMESTAMP '2024-01-01 10:00:00');
ADVANCE WATERMARK FOR clicks TO TIMESTAMP '2024-01-01 10:29:59.998';
EXPECT sessions NOTHING;
ADVANCE WATERMARK FOR clicks TO TIMESTAMP '2024-01-01 10:30:00';
EXPECT CHANGES OF sessions
| op | who | started                 | pages |
| +I | ann | 2024-01-01 10:00:00.000 | 1     |
