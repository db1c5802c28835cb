"""Sources of DataStreams under PyFlink's names."""
