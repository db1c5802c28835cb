"""What user functions of DataStreams see: base classes, state, time, windows. Behaviour stands in the runtime."""
