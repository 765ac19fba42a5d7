"""One package for each API, and what they share: transport, failures, encoding."""
