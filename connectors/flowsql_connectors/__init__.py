"""Sources, sinks and formats. Floor 2 sees only ``spi`` and ``registry``."""
