"""Values as text and back, and text columns through kernels."""
