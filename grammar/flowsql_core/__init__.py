"""The words of FlowSQL: types, batches, expressions, graphs, errors. No sentence of SQL, no behaviour of a runtime."""
