"""The wires: one module for each API, loaded when it is used."""
