"""What an agent may ask the store, and an MCP server that serves it."""
