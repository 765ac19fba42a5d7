"""The SQLite projection (tape.md §7): lists, search and sums without parsing transcripts.

It is derived: deleting it, or doing without it, changes no answer, only the time it takes. The
`reader` answers from it as it is, and loads nothing else of this package.
"""
