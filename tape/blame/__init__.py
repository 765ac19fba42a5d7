"""Which entry introduced each line of a file."""
