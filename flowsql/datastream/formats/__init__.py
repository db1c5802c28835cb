"""Formats of DataStream connectors under PyFlink's names."""
