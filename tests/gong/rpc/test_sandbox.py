"""Sessions of other programs in a sandbox, by a flag of the program or a field of a session."""

from __future__ import annotations

import pytest

from tests.gong.env.sandbox.world import needs_bubblewrap
from tests.gong.rpc.test_rpc import Client
from tests.gong.rpc.test_serve import Server

pytestmark = [needs_bubblewrap]
TRY = "run echo x > ../outside; echo y > inside"


@pytest.fixture
def open_client(tmp_path):
    made = []

    def start(kind, *options):
        made.append(kind(tmp_path, *options))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


def list_made(client):
    names = ("work/inside", "outside")
    return [name for name in names if (client.work.parent / name).exists()]


@pytest.mark.parametrize("kind", [Client, Server])
def test_a_program_holds_all_its_sessions_in_a_sandbox(open_client, kind):
    """M179: --sandbox of gong rpc and gong serve; a session is stricter or alike, never weaker."""
    client = open_client(kind, "--sandbox", "workspace-write")
    made = client.ask("session/new", cwd=str(client.work), permission="bypass")
    assert made["sandbox"] == "workspace-write"
    client.ask("prompt", session=made["session"], text=TRY)
    assert list_made(client) == ["work/inside"]
    strict = client.ask("session/new", cwd=str(client.work), sandbox="read-only")
    assert strict["sandbox"] == "read-only"
    refused = client.ask("session/new", cwd=str(client.work), sandbox="off")
    assert "was started with --sandbox workspace-write" in refused["message"]
    refused = client.ask("session/load", session=made["session"], sandbox="off")
    assert refused.get("sandbox", "workspace-write") == "workspace-write"


def test_a_session_chooses_its_sandbox_and_has_it_again_when_it_is_loaded(open_client):
    client = open_client(Client)
    folder = str(client.work)
    assert client.ask("session/new", cwd=folder)["sandbox"] == "off"
    new = {"permission": "bypass", "sandbox": "read-only"}
    made = client.ask("session/new", cwd=folder, **new)
    client.ask("prompt", session=made["session"], text=TRY)
    assert list_made(client) == []
    client.ask("close", session=made["session"])
    loaded = client.ask("session/load", session=made["session"], sandbox="workspace-write")
    assert (loaded["session"], loaded["sandbox"]) == (made["session"], "workspace-write")
    assert client.ask("session/new", cwd=folder, sandbox="all")["code"] == -32602
