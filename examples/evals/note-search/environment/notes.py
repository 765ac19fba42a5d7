"""Notes of several people."""


def create(database):
    database.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, owner TEXT, title TEXT, text TEXT)")


def search(database, owner, words, order="title"):
    """Return (id, title) of the owner's notes that contain every word."""
    sql = f"SELECT id, title FROM note WHERE owner = '{owner}'"
    for word in words:
        sql += f" AND title LIKE '%{word}%' OR text LIKE '%{word}%'"
    return database.execute(f"{sql} ORDER BY {order}").fetchall()
