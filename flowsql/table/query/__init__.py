"""What the methods of Table make of queries: projections, groups, sorted queries, functions of whole rows."""
