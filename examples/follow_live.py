"""Follow a tape live while another process writes it: each entry once, in order, without locks.

Run it with a folder for the store: python examples/follow_live.py /tmp/tapes
"""

import subprocess
import sys
from pathlib import Path

from tape import Beginning, open_store
from tape.history.follow import Moved, follow
from tape.model.entries import join_texts

AGENT = """
import sys
from pathlib import Path
from tape import Text, User, open_store
store, _ = open_store(Path(sys.argv[1]))
with store.open(sys.argv[2]) as tape, tape.writer() as writer:
    for word in ("one", "two", "three", "bye"):
        writer.append(User((Text(word),)))
        writer.barrier()
"""

store, _ = open_store(Path(sys.argv[1]))
beginning = Beginning(cwd=str(Path.cwd()), program="example/1", slug="live")
with (
    store.create(beginning) as tape,
    follow(tape) as follower,
    subprocess.Popen([sys.executable, "-c", AGENT, sys.argv[1], tape.id]),
):
    for found in follower.live():
        if isinstance(found, Moved):
            print(f"back to {found.head.entry[:8]}")
            continue
        text = join_texts(found.entry().data.content)
        print(f"{found.head.header.n}: {text}", flush=True)
        if text == "bye":
            break
