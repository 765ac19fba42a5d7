"""The SQLite projection (tape.md §7): lists, search and sums without parsing transcripts.

It is derived: deleting it, or doing without it, changes no answer, only the time it takes. The
`reader` answers from it as it is, and loads nothing else of this package.

    asked by callers       library (a store with its index), search and full_text, stats,
                           tape_filter (tapes by repository, person and machine)
    statements             lookups (those that answer), tables (those that keep it), tape_record
                           (about one tape), contents (of one line), sums (calls by day and model)
    kept up to date        projection (the index of one store), catch_up (reads what changed),
                           writer_log (who may have changed which tape, and which came and went),
                           tape_sync and ingest (a tape, many of them), rebuild (all of it)
    the file               database
"""
