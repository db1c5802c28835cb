"""SHOW and DESCRIBE: answers from the catalogs."""
