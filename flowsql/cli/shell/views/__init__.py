"""Full-screen views of the rows of a query."""
