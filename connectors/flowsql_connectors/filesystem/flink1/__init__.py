"""Tables of csv files whose WITH clause has Flink 1's keys: ``'connector.type' = 'filesystem'``."""
