"""Fork a tape at an earlier entry, continue differently, and see that both share the past.

Run it with a folder for the store: python examples/fork_and_compare.py /tmp/tapes
"""

import sys
from pathlib import Path

from tape import Assistant, Beginning, Text, User, open_store
from tape.model.entries import join_texts


def say(tape, branch, prompt, answer):
    with tape.writer(branch) as writer:
        writer.append(User((Text(prompt),)))
        writer.append(Assistant((Text(answer),), provider="mine", model="m1"))


store, _ = open_store(Path(sys.argv[1]))
with store.create(Beginning(cwd=str(Path.cwd()), program="example/1", slug="names")) as tape:
    say(tape, "main", "A name for a cat?", "Mio.")
    shared = tape.head("main")
    say(tape, "main", "Another?", "Luna.")
    tape.fork(shared, "serious")
    say(tape, "serious", "A serious one?", "Professor Whiskers.")

    for branch in ("main", "serious"):
        entries = tape.entries(tape.head(branch))
        words = [
            join_texts(e.data.content) for e in entries if isinstance(e.data, User | Assistant)
        ]
        print(f"{branch}: {' / '.join(words)}")
