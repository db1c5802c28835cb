"""Syntax trees as the text that catalogs keep: every name expanded, every column named, written as Flink writes it."""
