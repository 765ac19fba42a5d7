"""What calls did to files: changes along a path, states at an entry, and the way back."""
