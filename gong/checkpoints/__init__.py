"""What calls do to files: checkpoints before them, and the changes after them (tape.md §3)."""
