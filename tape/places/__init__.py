"""Where a REF leads: its grammar, the tape and entry it means, and folders that moved."""
