"""Where part files are: on a disk, or in an object store."""
