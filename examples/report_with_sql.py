"""A report on all sessions with plain SQL: index.db is an SQLite file, with stable views.

Run it with the store: python examples/report_with_sql.py ~/.tape
To look around in a browser: pip install datasette && datasette ~/.tape/index.db
"""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

QUESTIONS = {
    "Sessions by folder": """
        SELECT cwd, count(*) AS sessions, sum(entries) AS entries, max(updated) AS newest
        FROM sessions GROUP BY cwd ORDER BY newest DESC""",
    "Tokens and cost by day and model": """
        SELECT substr(time, 1, 10) AS day, provider || '/' || model AS model,
               count(*) AS calls, sum(total) AS tokens, round(sum(cost), 4) AS dollars
        FROM costs GROUP BY day, provider, costs.model ORDER BY day""",
    "Tools, those that fail most first": """
        SELECT tool, count(*) AS calls, sum(is_error) AS failed, sum(duration_ms) AS ms
        FROM tool_calls GROUP BY tool ORDER BY avg(is_error) DESC, calls DESC""",
    "Files changed most": """
        SELECT path, count(DISTINCT call) AS changes, count(DISTINCT tape) AS sessions
        FROM file_changes WHERE op <> 'read' GROUP BY path ORDER BY changes DESC LIMIT 10""",
}

store = Path(sys.argv[1]).absolute()
catch_up = ["tape", "--store", store, "stats"]
subprocess.run(catch_up, stdout=subprocess.DEVNULL, check=True)
with closing(sqlite3.connect(f"{(store / 'index.db').as_uri()}?mode=ro", uri=True)) as db:
    for title, question in QUESTIONS.items():
        rows = db.execute(question)
        print(f"\n{title}\n{' | '.join(name for name, *_ in rows.description)}")
        for row in rows:
            print(" | ".join(str(value) for value in row))
