"""SQL types: what they are, how they print, how they coerce, which Arrow type carries them."""
