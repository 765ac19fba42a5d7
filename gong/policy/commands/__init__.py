"""What a command line does and how dangerous it is; no rule, no mode."""
