"""Foreign shapes, one module each: parse and emit, pure."""
