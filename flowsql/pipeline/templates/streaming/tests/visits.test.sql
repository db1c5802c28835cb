SCRIPT NODE visits;

TEST 'a minute is told once the watermark has passed its end';
GIVEN clicks VALUES ('ann', TIMESTAMP '2024-01-01 10:00:00');
ADVANCE WATERMARK FOR clicks TO TIMESTAMP '2024-01-01 10:00:59';
EXPECT visits NOTHING;
ADVANCE WATERMARK FOR clicks TO TIMESTAMP '2024-01-01 10:01:00';
EXPECT visits
| started             | who | clicks |
| 2024-01-01 10:00:00 | ann | 1      |
