"""JSON over columns: documents, paths, rendering, VARIANT."""
