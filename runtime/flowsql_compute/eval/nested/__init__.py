"""Arrays, maps, rows and bitmaps over whole columns."""
