#!/bin/bash
python3 - <<'PY'
from pathlib import Path

file = Path("notes.py")
text = file.read_text()
head = text[: text.index("def search")]
file.write_text(head + '''_ORDERS = {
    "title": "title, id",
    "-title": "title DESC, id",
    "id": "id",
    "-id": "id DESC",
}


def search(database, owner, words, order="title"):
    """Return (id, title) of the owner's notes that contain every word."""
    if order not in _ORDERS:
        raise ValueError(f"{order!r} is no order: {', '.join(_ORDERS)}")
    sql, values = "SELECT id, title FROM note WHERE owner = ?", [owner]
    for word in dict.fromkeys(words):
        sql += " AND (instr(lower(title), lower(?)) OR instr(lower(text), lower(?)))"
        values += [word, word]
    return database.execute(f"{sql} ORDER BY {_ORDERS[order]}", values).fetchall()
''')
PY
