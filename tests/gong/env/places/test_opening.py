"""Places by their names: which are refused, and what their channels run."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from gong.env.conformance import CASES, run_cases
from gong.env.places.identity import is_same_machine, parse_place
from gong.env.places.opening import Mount, choose_place, open_place, translate_path
from gong.env.variables import VariableRules
from gong.errors import ConfigurationError, PlaceLost
from tests.gong.env.places.machines import (
    ENVIRON,
    make_table,
    needs_podman,
    needs_sshd,
    open_table,
    run_container,
    run_sshd,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    "local": "local",
    "docker:a": "docker:a",
    "docker:a.b_c-1:/srv/app/": "docker:a.b_c-1",
    "podman:a": "podman:a",
    "docker-image:debian:12": "docker-image:debian:12",
    "ssh://h": "ssh://h",
    "ssh://Host": "ssh://Host",
    "ssh://me@h:2222/srv/a%20b": "ssh://me@h:2222/srv/a%20b",
    "ssh://h/~/x": "ssh://h/~/x",
    "ssh://[::1]:22/": "ssh://[::1]:22",
    "k8s:c/n/p": "k8s:c/n/p",
    "k8s:arn%3Aaws%3Aeks%2Fx/n/p/c:/srv": "k8s:arn%3Aaws%3Aeks%2Fx/n/p/c",
}
REFUSED = (
    "",
    "foo",
    "foo:bar",
    "docker:",
    "docker:-it",
    "docker:a b",
    "docker:a\nb",
    "docker:a:srv",
    "docker:a;id",
    "docker-image:--privileged",
    "ssh://",
    "ssh://-oProxyCommand=id",
    "ssh://-l@h",
    "ssh://a b",
    "ssh://h:0",
    "ssh://h:70000",
    "ssh://h:x",
    "ssh://h?x",
    "ssh:h",
    "k8s:a/b",
    "k8s:a/b/-c",
    "k8s:a/b/c/d/e",
    "k8s:a//c",
    "local:",
    "docker:a\0",
)


@pytest.mark.parametrize("text", NAMES)
def test_a_place_is_called_as_it_is_named(text: str) -> None:
    place = parse_place(text)
    assert place.name == NAMES[text]
    assert parse_place(place.name).name == place.name


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_place_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_place(text)
    assert "\n" not in str(told.value)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_place("ssh://me:hunter2@h")
    assert "hunter2" not in str(told.value)


def test_two_folders_of_a_host_are_one_machine() -> None:
    assert is_same_machine("ssh://h/a", "ssh://h/b")
    assert not is_same_machine("ssh://h/a", "ssh://g/a")
    assert not is_same_machine("memory", "docker:a")


def test_a_path_has_one_name_here_and_one_in_a_container() -> None:
    mounts = (Mount("/home/me", "/work"), Mount("/home/me/lib", "/lib2"))
    assert translate_path("/home/me/a", mounts) == "/work/a"
    assert translate_path("/home/me/lib/x", mounts) == "/lib2/x"
    assert translate_path("/home/mel", mounts) == ""


async def test_a_place_without_its_program_is_refused(tmp_path: Path) -> None:
    for text in ("docker:a", "ssh://h", "k8s:c/n/p"):
        with pytest.raises(ConfigurationError, match="PATH"):
            await open_place(
                choose_place(text, {}), str(tmp_path), {"PATH": str(tmp_path)}, VariableRules()
            )


@needs_sshd
async def test_a_machine_by_ssh_runs_a_sample_of_the_suite(tmp_path: Path) -> None:
    """M126."""
    (tmp_path / "work").mkdir()
    with run_sshd(tmp_path) as table:
        async with open_table({**table, "folder": str(tmp_path / "work")}) as env:
            assert env.name == f"{table['place']}{tmp_path}/work"
            cases = CASES[::12]
            results = [each async for each in run_cases(env, env.working_directory, cases)]
            assert [result for result in results if result[1]] == []
            code = await env.exec_command("exit 255")
            assert (code.exit_code, code.timed_out) == (255, False)
            variables = (await env.exec_command("env")).output
            assert b"secret-1" not in variables


@needs_sshd
async def test_listed_variables_travel_and_an_unknown_host_key_is_refused(tmp_path: Path) -> None:
    with run_sshd(tmp_path) as table:
        async with open_table(table, VariableRules(listed=("MY_TOKEN",))) as env:
            assert (await env.exec_command("echo $MY_TOKEN")).output == b"secret-1\n"
        (tmp_path / "known").write_text("")
        with pytest.raises(ConfigurationError, match=r"[Hh]ost key"):
            async with open_table(table):
                pass


@needs_sshd
async def test_a_cut_channel_ends_what_runs_and_the_next_call_works(tmp_path: Path) -> None:
    with run_sshd(tmp_path) as table:
        async with open_table(table) as env:
            begun = asyncio.Event()
            command = f"echo $$ > {tmp_path}/pid; echo begun; sleep 333"
            running = asyncio.create_task(
                env.exec_command(command, on_output=lambda _: begun.set())
            )
            await asyncio.wait_for(begun.wait(), 60)
            channel = await env.link.connect()
            os.killpg(channel.pid, signal.SIGKILL)
            with pytest.raises(PlaceLost, match="had started") as told:
                await running
            assert told.value.has_started is True
            gone = f"while kill -0 $(cat {tmp_path}/pid) 2>/dev/null; do sleep 0.1; done; echo gone"
            assert (await env.exec_command(gone, timeout_ms=60_000)).output == b"gone\n"


@needs_podman
async def test_a_container_runs_a_sample_of_the_suite(tmp_path: Path) -> None:
    """M125 J11-3.5: a folder that is mounted has its name over there."""
    (tmp_path / "here").mkdir()
    with run_container(tmp_path, "-v", f"{tmp_path}/here:/mounted") as table:
        place = {key: table[key] for key in ("place", "program")}
        async with open_table({**place, "folder": "/srv/app"}) as env:
            results = [each async for each in run_cases(env, "/srv/app", CASES[::12])]
            assert [result for result in results if result[1]] == []
        choice = choose_place("box", {"box": make_table(place)})
        env = await open_place(choice, f"{tmp_path}/here", ENVIRON, VariableRules())
        assert env.working_directory == "/mounted"
        assert f"{tmp_path}/here is /mounted in {place['place']}" in env.remarks
        await env.write_file("a", b"1")
        assert (tmp_path / "here/a").read_bytes() == b"1"
        await env.cleanup()
        wrong = choose_place("box", {"box": make_table({**place, "place": "docker:none-such"})})
        with pytest.raises(ConfigurationError, match="no such container"):
            await open_place(wrong, "/", ENVIRON, VariableRules())
