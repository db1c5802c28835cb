"""Apache Flink's options, and what becomes of those that FlowSQL does not read; loaded when one of them is met."""
