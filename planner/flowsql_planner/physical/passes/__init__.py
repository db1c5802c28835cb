"""Passes over whole physical plans; ``physical/program.py`` has their order."""
