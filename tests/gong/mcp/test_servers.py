"""Files that name MCP servers: read in every form, and changed in place (M182, C45)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from gong import trust
from gong.errors import ConfigurationError
from gong.mcp import servers
from gong.mcp.servers import ServerConfig
from gong.mcp.tool_names import MAX_CHARS, build_tool_name, name_tools


@pytest.fixture
def place(tmp_path):
    """A home and a project, and files in them."""
    (tmp_path / "project/.git").mkdir(parents=True)

    class Place:
        root = tmp_path / "project"
        environ = {"HOME": str(tmp_path), "TOKEN": "t"}  # noqa: RUF012
        user = tmp_path / ".config/gong/mcp.json"

        def put(self, file, value):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value if isinstance(value, str) else json.dumps(value))

        def load(self, **given):
            return servers.load_servers(str(self.root), self.environ, given)

        def trust(self):
            trust.trust_project(trust.read_project(str(self.root), self.environ), self.environ)

    return Place()


def read(entry, environ=None, root="/p"):
    return servers.read_server("s", entry, "f", "user", environ or {}, Path(root))


FORMS = [
    ({"command": "a", "args": ["b", 1]}, {"kind": "stdio", "command": "a", "args": ("b", "1")}),
    ({"command": ["a", "b"]}, {"kind": "stdio", "command": "a", "args": ("b",)}),
    ({"type": "stdio", "command": "a", "cwd": "x"}, {"command": "a", "cwd": "/p/x"}),
    ({"command": "a", "env": {"N": 1, "M": None}}, {"command": "a", "env": {"N": "1"}}),
    ({"url": "http://h"}, {"kind": "http", "url": "http://h"}),
    ({"type": "streamable-http", "url": "u"}, {"kind": "http", "url": "u"}),
    ({"httpUrl": "u", "headers": {"A": "b"}}, {"kind": "http", "url": "u", "headers": {"A": "b"}}),
    ({"transport": "sse", "url": "u"}, {"kind": "sse", "url": "u"}),
    ({"command": "a", "timeout": 1500}, {"command": "a", "call_seconds": 1.5}),
    (
        {"command": "a", "startup_timeout_sec": 3, "tool_timeout_sec": 4},
        {"command": "a", "startup_seconds": 3, "call_seconds": 4},
    ),
    ({"command": "a", "enabled_tools": ["x"]}, {"command": "a", "only": ("x",)}),
]


@pytest.mark.parametrize(("entry", "expected"), FORMS)
def test_an_entry_is_read_in_the_forms_that_other_programs_write(entry, expected):
    whole = {"kind": "stdio", **expected}
    assert read(entry) == ServerConfig(name="s", source="f", **whole)


@pytest.mark.parametrize("entry", [{"command": "a", "disabled": True}, {"enabled": False}])
def test_an_entry_that_is_switched_off_is_no_server(entry):
    assert read(entry) is None


WRONG = [
    ([], "is not an object"),
    ({}, "has no command"),
    ({"type": "http"}, "has no url"),
    ({"type": "pigeon", "url": "u"}, "type pigeon is not one of stdio, http, sse"),
    ({"command": "a", "args": "b"}, "args is not a list of texts"),
    ({"command": "a", "env": []}, "env is not an object of texts"),
    ({"command": "${NONE}"}, "the variable NONE is not set"),
]


@pytest.mark.parametrize(("entry", "said"), WRONG)
def test_a_wrong_entry_says_what_is_wrong(entry, said):
    with pytest.raises(ConfigurationError, match="f: server s") as caught:
        read(entry)
    assert said in str(caught.value)


def test_variables_are_replaced_in_every_text():
    entry = {"command": "${A:-x}/${B}", "args": ["${A:-}"], "env": {"K": "${env:B}"}}
    found = read(entry, {"B": "b", "A": ""})
    assert (found.command, found.args, found.env) == ("x/b", ("",), {"K": "b"})


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${A:-${B}/x}", {"A": "a"}, "a"),
        ("${A:-${B}/x}/y", {"B": "b"}, "b/x/y"),
        ("${A:-${B:-${C}}}z", {"C": "c"}, "cz"),
        ("${A:-${B:-}}", {}, ""),
        ("${A:-{}", {}, "{"),
        ("${A:-x", {}, "${A:-x"),
        ("${A}${B}", {"A": "${B}", "B": "b"}, "${B}b"),
        ("$A ${A-x} {}", {"A": "a"}, "$A ${A-x} {}"),
    ],
)
def test_a_default_may_have_variables_in_it(text, environ, expected):
    assert servers.expand_variables([text], environ, "f") == [expected]


def test_a_variable_in_a_default_has_to_be_set_only_where_it_is_used():
    assert servers.expand_variables("${A:-${B}}", {"A": "a"}, "f") == "a"
    with pytest.raises(ConfigurationError, match="the variable B is not set"):
        servers.expand_variables("${A:-${B}}", {}, "f")


def test_both_keys_are_read_and_the_project_comes_last(place):
    """M182 C45"""
    place.put(place.user, {"servers": {"a": {"command": "1"}}, "mcpServers": {"b": {"url": "2"}}})
    place.put(place.root / ".mcp.json", {"servers": {"a": {"command": "3"}}})
    assert [(one.name, one.runs) for one in place.load().servers] == [("a", "1"), ("b", "2")]
    place.trust()
    found = place.load(c={"command": "4"}).servers
    assert [(one.name, one.runs, one.scope) for one in found] == [
        ("b", "2", "user"),
        ("a", "3", "project"),
        ("c", "4", "host"),
    ]


def test_a_broken_file_is_warned_of_and_the_others_count(place):
    place.put(place.user, "{")
    place.put(place.root / ".mcp.json", {"mcpServers": {"a": {"command": "x"}, "b": {}}})
    place.trust()
    found = place.load()
    assert [one.name for one in found.servers] == ["a"]
    assert [one.partition(": ")[0] for one in found.warnings] == [
        f"{place.user} is not JSON",
        f"{place.root}/.mcp.json",
    ]


def test_a_server_is_written_as_mcp_servers_and_the_rest_stays(place):
    """C45"""
    place.put(place.user, {"inputs": [1], "servers": {"a": {"command": "old"}, "b": {"url": "u"}}})
    servers.save_server(place.user, "a", {"command": "new"})
    assert json.loads(place.user.read_text()) == {
        "inputs": [1],
        "servers": {"b": {"url": "u"}},
        "mcpServers": {"a": {"command": "new"}},
    }
    assert servers.remove_server(place.user, "b")
    assert not servers.remove_server(place.user, "b")


def test_a_new_file_of_the_user_is_private(place):
    servers.save_server(place.user, "a", {"command": "x"})
    assert stat.S_IMODE(place.user.stat().st_mode) == 0o600


NAMES = [
    ("github", "create_pr", "github__create_pr"),
    ("my files", "read", "my_files__read"),
    ("mcp", "x", "mcp-server__x"),
    ("a__b_", "x", "a_b__x"),
    ("1st", "x", "s1st__x"),
]


def test_names_are_what_providers_take_and_rules_cannot_confuse():
    """M182"""
    for server, tool, name in NAMES:
        assert build_tool_name(server, tool) == name
    odd = build_tool_name("my files", "read.text")
    assert odd.startswith("my_files__read_text_")
    long = [build_tool_name("s" * 40, "t" * 70 + end) for end in "ab"]
    assert len({*long}) == 2
    assert all(len(one) <= MAX_CHARS for one in long)
    assert [*name_tools("s", ["b", "a"])] == ["s__a", "s__b"]
