"""Properties derived per node: changelog modes, keys, windows, time attributes."""
