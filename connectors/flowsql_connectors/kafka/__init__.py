"""Tables over topics of Apache Kafka: ``kafka`` and ``upsert-kafka``. Needs confluent-kafka (librdkafka)."""
