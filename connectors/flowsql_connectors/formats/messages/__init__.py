"""Messages of queues and logs: each is a value of a format by itself."""
