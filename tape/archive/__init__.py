"""A tape as one self-contained file, written and read: its lines, export, import."""
