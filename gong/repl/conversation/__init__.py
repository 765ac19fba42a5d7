"""One conversation in a terminal: its keys, its questions, the current run."""
