"""Search all tapes of a store, and show of each hit the prompt that led to it.

Run it with the store and what to look for: python examples/search_all_tapes.py ~/.tape "login bug"
"""

import sys
from pathlib import Path

from tape import User, open_store
from tape.index.library import search_entries
from tape.model.entries import join_texts

with open_store(Path(sys.argv[1])) as (store, index):
    # All words must be there; "a phrase", -without, begin* and one OR two work as in `tape search`.
    hits = search_entries(
        store, index, sys.argv[2], types=("user", "assistant", "tool.result"), limit=10
    )
    for hit in hits:
        print(f"{hit.tape[:8]}@{hit.entry[:8]}  {hit.time[:16]}  {hit.type}: {hit.snippet}")
        with store.open(hit.tape) as tape:
            (found,) = tape.find_entry(hit.entry)
            prompts = [e.data for e in tape.entries(found.head) if isinstance(e.data, User)]
        if prompts and hit.type != "user":
            print(f"    asked: {join_texts(prompts[-1].content)}")
    print(f"{len(hits)} found")
