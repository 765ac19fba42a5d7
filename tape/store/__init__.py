"""Tapes as files (tape.md §1 to §6).

One module for each kind of file, and what reads, writes and protects them:

    files          disk (written and synced), locks, blobs, phase (one folder of entry lines), refs
                   (the journal of branches), packed (a tape as one file), tape_folder (a tape's
                   folder in either form)
    reading        path (back to the root, across phases and tapes; every line checked), tape
    writing        writer (append with barriers), store (many tapes, trash), recorded_tape (made
                   whole or not at all), replica (which copy of a store this is)
    afterwards     redaction, leftovers (what a crash leaves), maintenance
"""
