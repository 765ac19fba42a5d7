"""Message arrays of providers, read into entries' payloads: pure, and nothing is dropped.

What a block cannot say stays in its `wire`, what is no block of ours is opaque, and an element
that is no message becomes an entry of type custom. What no model wrote is marked with the API it
comes from, see `..wire`.
"""
