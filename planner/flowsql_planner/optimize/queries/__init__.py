"""Queries inside of queries: subqueries become joins, INTERSECT and EXCEPT joins or counts."""
