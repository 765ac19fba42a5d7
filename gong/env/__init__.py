"""Where tools act: files and processes."""
