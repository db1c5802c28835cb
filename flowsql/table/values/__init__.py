"""Values on their way in and out: Python rows as columns, columns as rows, as frames and as printed tables."""
