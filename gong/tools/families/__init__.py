"""The tool variants that model families were trained on."""
