"""Message arrays of four provider APIs, read, written and checked; pure.

Each API has a package with three modules: `emit` writes our messages as its array, `parse` reads
its array into payloads, `rules` says what the API refuses. `registry` has all four by name.
"""
