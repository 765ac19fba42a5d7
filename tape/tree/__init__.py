"""The tree of a tape: its phases, where two paths part, and what was done on each side.

`shape` reads a tape's phases, `parting` two paths, `deeds` a run of entries; `lanes` draws.
"""
