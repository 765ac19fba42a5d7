"""A border around programs of this machine: what they may write, read, reach and use."""
