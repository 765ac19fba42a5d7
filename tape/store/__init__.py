"""Files on disk: phases, blobs, refs, locks, one tape, and many."""
