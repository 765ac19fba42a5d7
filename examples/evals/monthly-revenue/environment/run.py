"""Runs report.sql on the sample."""

import sqlite3
from pathlib import Path

database = sqlite3.connect(":memory:")
for name in ("schema.sql", "sample.sql"):
    database.executescript(Path(name).read_text())
for row in database.execute(Path("report.sql").read_text()):
    print(*row, sep=" | ")
