"""Sessions for other programs: requests and events as lines of JSON (docs/rpc.md)."""
