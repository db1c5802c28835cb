"""Protocol Buffers: messages of a type that a descriptor file or a generated module describes."""
