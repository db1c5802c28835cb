"""What columnar file formats share, and ORC."""
