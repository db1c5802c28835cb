"""What connectors of databases and stores share: parts of scans, and what a run of changes comes to by key."""
