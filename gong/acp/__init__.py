"""Sessions for editors, by the Agent Client Protocol (docs/acp.md)."""
