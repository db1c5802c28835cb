"""Running Spark jobs: the only folder that imports pyspark."""
