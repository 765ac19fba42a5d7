"""Databases of strangers are read, and not asked to compute without end or beyond the memory."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tape.errors import UsageError
from tape.sessions.databases import (
    find_database_tool,
    list_database_sessions,
    read_database_session,
)

TABLES = """
CREATE TABLE session(id, directory, title, time_created, time_updated, project_id, version, slug);
CREATE TABLE message(id, session_id, data, time_created);
CREATE TABLE part(id, message_id, session_id, data);
INSERT INTO session VALUES ('s1', '/src', 't', 1, 1, 'p', '1', 'x');
"""
ENDLESS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT 'm' || i AS id, 's1' AS session_id, '{}' AS data, i AS time_created FROM n
"""


@pytest.fixture
def build(tmp_path):
    def build_one(*statements):
        file = tmp_path / "opencode.db"
        with closing(sqlite3.connect(file)) as database:
            for one in statements:
                database.executescript(one)
            database.commit()
        return file

    return build_one


def test_a_view_without_end_in_place_of_the_sessions_lists_none(build):
    view = ENDLESS.replace("'m' ||", "'s' ||")
    file = build(TABLES, "DROP TABLE session", f"CREATE VIEW session AS {view}")
    assert list_database_sessions(file, "opencode") is None


def test_a_view_without_end_in_place_of_a_table_is_refused(build):
    file = build(TABLES, "DROP TABLE message", f"CREATE VIEW message AS {ENDLESS}")
    with pytest.raises(UsageError, match="cannot be read: it has a view in place of a table"):
        read_database_session(file, "opencode", "s1")


def test_a_value_beyond_the_limit_is_refused(build):
    file = build(TABLES, "INSERT INTO message VALUES ('m1', 's1', zeroblob(70000000), 1)")
    assert find_database_tool(file) == "opencode"
    with pytest.raises(UsageError, match="cannot be read"):
        read_database_session(file, "opencode", "s1")


def test_what_is_within_it_is_read(build):
    data = '{"role": "user", "text": "%s"}' % ("x" * 1_000_000)
    file = build(TABLES, f"INSERT INTO message VALUES ('m1', 's1', '{data}', 1)")
    (line,) = read_database_session(file, "opencode", "s1")
    assert len(line) > 1_000_000
