"""What a session says: blocks, entries, their JSON, and the bytes of a line; pure."""
