"""Avro: object container files, and messages with and without a schema registry."""
