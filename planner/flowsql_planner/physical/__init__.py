"""Physical nodes with Flink's names, and how logical nodes become them."""
