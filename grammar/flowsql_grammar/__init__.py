"""The sentences of FlowSQL: SQL text to syntax tree and back."""
