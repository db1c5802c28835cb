"""FlowSQL: Apache Flink's SQL, Table API and DataStream API for Python people."""
