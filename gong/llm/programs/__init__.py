"""Command-line programs of others as providers of answers; loaded when used."""
