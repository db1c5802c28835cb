"""How answers look: a renderer for each form."""
