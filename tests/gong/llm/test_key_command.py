"""Real programs that print keys, as `key_command` runs them."""

import asyncio
import json
import os
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from gong.config import Settings, merge_settings
from gong.errors import AuthenticationError, ConfigurationError
from gong.llm import Client
from gong.llm.key_command import CommandKey
from gong.llm.keys import SigningKey
from gong.llm.models import load_presets
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.table import HELLO, WIRES

SECRET = "zq-secret-of-a-vault-1234"
CHAT = next(wire for wire in WIRES if wire.preset == "openai-chat")


@pytest.fixture
def environ(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of Python and returns its path."""

    def write(code, name="vault"):
        file = tmp_path / name
        file.write_text(f"#!{sys.executable}\nimport os, sys, time\n{code}\n")
        file.chmod(0o755)
        return str(file)

    return write


def is_running(pid):
    """Return whether a process runs; who inherits one that was killed may not have looked yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def count_runs(tmp_path):
    return (tmp_path / "runs").read_text().count("x")


COUNTED = "with open(os.path.expanduser('~/runs'), 'a') as file: file.write('x')\n"


def web_token(expires):
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, {"exp": expires}))
    return ".".join([*(urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "c2ln"])


LATER = int(time.time()) + 7200
LATER_HERE = time.strftime("%Y-%m-%d %H:%M:%S.000000", time.localtime(LATER))
LATER_UTC = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(LATER))
PRINTED = {
    "a line": (f"{SECRET}\n", SECRET, None),
    "az": (
        json.dumps({"accessToken": "t1", "expiresOn": LATER_HERE, "expires_on": LATER}),
        "t1",
        LATER,
    ),
    "an older az": (json.dumps({"accessToken": "t1", "expiresOn": LATER_HERE}), "t1", LATER),
    "gcloud config-helper": (
        json.dumps({"credential": {"access_token": "t2", "token_expiry": LATER_UTC}, "id": "x"}),
        "t2",
        LATER,
    ),
    "kubectl": (
        json.dumps({"status": {"token": "t3", "expirationTimestamp": LATER_UTC}}),
        "t3",
        LATER,
    ),
    "databricks": (json.dumps({"access_token": "t4", "expiry": LATER_UTC}), "t4", LATER),
    "a web token": (web_token(LATER), web_token(LATER), LATER),
    "odd ends": (json.dumps({"token": "t5", "expiry": True, "expires_in": "x"}), "t5", None),
}


@pytest.mark.parametrize("case", PRINTED.values(), ids=PRINTED)
async def test_a_key_and_its_end_are_read_from_what_programs_print(program, environ, case):
    output, value, ends = case
    source = CommandKey("azure", (program(f"print({output!r})"), "get-token"), environ)
    key = await source.get_key()
    assert (key.value, key.expires) == (value, ends)
    assert value not in repr(key)


async def test_aws_export_credentials_gives_a_key_that_signs(program, environ):
    printed = {"Version": 1, "AccessKeyId": "AK", "SecretAccessKey": SECRET, "SessionToken": "T"}
    command = program(f"print({json.dumps({**printed, 'Expiration': LATER_UTC})!r})")
    for _ in range(2):  # the second one reads the file
        key = await CommandKey("bedrock", command, environ).get_key()
        assert key == SigningKey("AK", SECRET, "T", "key_command of bedrock", LATER)


WRONG = {
    "an error": ("print('" + SECRET + "'); sys.exit(3)", "ended with exit code 3"),
    "two lines": (f"print('{SECRET}\\nmore')", "printed 2 lines"),
    "nothing": ("", "printed nothing"),
    "10 MB": (f"sys.stdout.write('{SECRET}' * 400_000)", "printed more than 64 KiB"),
    "no text": ("sys.stdout.buffer.write(b'\\xff\\xfe')", "printed bytes that are no text"),
    "a word with blanks": (f"print('Error: {SECRET}')", "printed a text that is no key"),
    "cut JSON": (f'print(\'{{"token": "{SECRET}\')', "printed JSON that is cut or damaged"),
    "other JSON": (f'print(\'{{"user": "{SECRET}"}}\')', "printed JSON without a token"),
    "it hangs": (f"print('{SECRET}', flush=True); time.sleep(600)", "took longer than 5 s"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
async def test_a_program_that_gives_no_key_is_one_line_without_its_output(
    program, environ, tmp_path, case
):
    code, words = case
    source = CommandKey("azure", (program(code), f"--pin={SECRET}"), environ, seconds=5)
    with pytest.raises(AuthenticationError, match=words) as failed:
        await source.get_key()
    assert "key_command of azure" in str(failed.value)
    assert (SECRET in str(failed.value), failed.value.exit_code) == (False, 6)
    assert not list(tmp_path.rglob("*.json"))


def test_a_program_that_hangs_ends_with_its_children(program, environ, tmp_path):
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, file=open({!r}, 'w'))"
    hanging = program(code.format(str(tmp_path / "pid")) + "\ntime.sleep(600)")
    with pytest.raises(AuthenticationError):
        asyncio.run(CommandKey("azure", hanging, environ, seconds=5).get_key())
    child = int((tmp_path / "pid").read_text())
    while is_running(child):
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program-here x", "there is no program 'no-such-program-here'"),
        ("", "is empty"),
        ("'unclosed", "No closing quotation"),
    ],
)
async def test_a_command_that_is_none_is_named(environ, command, words):
    with pytest.raises((AuthenticationError, ConfigurationError), match=words):
        await CommandKey("azure", command, environ).get_key()


async def test_a_shell_is_not_asked(program, environ):
    command = f"{program('print(len(sys.argv), sys.argv[1], sep=chr(45))')} '$(id) ; x'"
    with pytest.raises(AuthenticationError, match="no key"):  # blanks in it: one argument
        await CommandKey("azure", command, environ).get_key()
    argv = [command.partition(" ")[0], "$HOME;id"]
    key = await CommandKey("azure", argv, environ).get_key()
    assert key.value == "2-$HOME;id"


async def test_a_key_is_fetched_again_once_it_ends(program, environ, tmp_path):
    ends = int(time.time()) + 30  # so soon that a call might come too late
    code = f'{COUNTED}print(\'{{"token": "{SECRET}", "expires_on": {ends}}}\')'
    source = CommandKey("azure", program(code), environ)
    for _ in range(2):
        assert (await source.get_key()).value == SECRET
    assert count_runs(tmp_path) == 2
    (file,) = tmp_path.rglob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600


async def test_another_account_has_another_key(program, environ, tmp_path):
    command = program("print('key-of-' + os.environ.get('AWS_PROFILE', 'nobody'))")
    for name in ("work", "home", "work"):
        key = await CommandKey("bedrock", command, {**environ, "AWS_PROFILE": name}).get_key()
        assert key.value == f"key-of-{name}"
    assert len([*tmp_path.rglob("*.json")]) == 2


async def test_a_key_that_signs_is_replaced_too(program, environ, tmp_path):
    code = (
        f"{COUNTED}number = len(open(os.path.expanduser('~/runs')).read())\n"
        'print(\'{"AccessKeyId": "AK%d", "SecretAccessKey": "s"}\' % number)'
    )
    source = CommandKey("bedrock", program(code), environ)
    other = await source.replace_key(await source.get_key())
    assert (other.id, await source.get_key()) == ("AK2", other)


async def test_a_damaged_file_of_a_key_is_fetched_again(program, environ, tmp_path):
    command = program(f"{COUNTED}print('{SECRET}')")
    await CommandKey("azure", command, environ).get_key()
    (file,) = tmp_path.rglob("*.json")
    for damage in (b"", b'{"value": "x', b"\xff", b"[]"):
        file.write_bytes(damage)
        assert (await CommandKey("azure", command, environ).get_key()).value == SECRET
    assert count_runs(tmp_path) == 5


PROCESS = """
import asyncio, os, sys
from gong.llm.key_command import CommandKey

async def main():
    source = CommandKey("azure", sys.argv[1], os.environ)
    key = await source.get_key()
    print(key.value, flush=True)
    sys.stdin.readline()
    other = await source.replace_key(key)
    print(other.value)

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


async def test_a_path_is_one_of_the_home_folder(program, environ, tmp_path, monkeypatch):
    """A repository brings no program of that name."""
    program("print('key-of-home')", "get-key")
    (tmp_path / "project").mkdir()
    program("print('key-of-project')", "project/get-key")
    monkeypatch.chdir(tmp_path / "project")
    for command in ("./get-key", "~/get-key"):
        key = await CommandKey("azure", command, environ).get_key()
        assert key.value == "key-of-home"


def test_settings_of_a_project_name_no_command():
    theirs = b'[providers.azure]\nkey_command = "evil"\nresource = "theirs"\n'
    ours = Settings(providers={"azure": {"key_command": "mine"}})
    merged = merge_settings(ours, Path("config.toml"), theirs)
    assert merged.providers == {"azure": {"key_command": "mine", "resource": "theirs"}}


def test_ten_programs_share_one_run_and_one_more_after_a_refusal(program, environ, tmp_path):
    """All of them wait for it; then the host refuses that key to all of them."""
    code = (
        f"{COUNTED}time.sleep(0.3)\n"
        "print('key-' + str(len(open(os.path.expanduser('~/runs')).read())))"
    )
    argv = [sys.executable, "-c", PROCESS, program(code)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen(argv, env=environ, **pipes) for _ in range(10)]
    for run in runs:
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    assert [run.stdout.readline() for run in runs] == ["key-1\n"] * 10
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    assert [run.communicate()[0] for run in runs] == ["key-2\n"] * 10
    assert [run.wait() for run in runs] == [0] * 10
    assert count_runs(tmp_path) == 2


def mine(url, command, **more):
    row = {"api": "openai-chat", "base_url": url, "key_command": command, **more}
    return load_presets({"mine": row})


async def test_a_call_that_is_refused_is_made_once_more_with_a_new_key(program, environ, tmp_path):
    """M138: a 401 asks the program again; a second one is the host's word."""
    command = program(
        COUNTED + "print('key-' + str(len(open(os.path.expanduser('~/runs')).read())))"
    )
    refusal, said = json_reply(401, CHAT.refuse("expired")), Reply(CHAT.said("hi"))
    async with WireServer(refusal, said, said, refusal, refusal) as server:
        client = Client.from_env(environ, presets=mine(server.url, command))
        provider, _ = client.resolve("mine/x")
        for _ in range(2):
            events = [event async for event in provider.stream(HELLO)]
            assert accumulated(events).text == "hi"
        failed = await events_of(provider, HELLO)
        await client.close()
    sent = [seen.headers["authorization"] for seen in server.requests]
    assert sent == [f"Bearer key-{number}" for number in (1, 2, 2, 2, 3)]
    text = str(failed[-1].error)
    assert "the key from key_command of mine was refused" in text
    assert "key-3" not in text
    assert count_runs(tmp_path) == 3


async def test_a_variable_goes_before_the_command(program, environ, tmp_path):
    command = program(COUNTED + "print('from-command')")
    presets = mine("http://127.0.0.1:1", command, keys=["MINE_KEY"])
    async with WireServer(Reply(CHAT.said("hi"))) as server:
        variables = {**environ, "MINE_BASE_URL": server.url, "MINE_KEY": "from-variable"}
        client = Client.from_env(variables, presets=presets)
        provider, _ = client.resolve("mine/x")
        await events_of(provider, HELLO)
        assert server.requests[0].headers["authorization"] == "Bearer from-variable"
    assert not (tmp_path / "runs").exists()


def test_a_command_is_run_where_a_call_is_made_and_nowhere_else(program, environ, tmp_path):
    """M138: a user's config.toml; status, models and doctor do not run it."""
    config = tmp_path / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    command = program(f"{COUNTED}print('{SECRET}')")
    config.write_text(
        f'[providers.mine]\napi = "openai-chat"\nbase_url = "https://mine.example"\n'
        f'key_command = "{command}"\n'
    )
    gong = Path(sys.executable).with_name("gong")
    told = {}
    for words in (("auth", "status"), ("models", "--provider", "mine"), ("doctor",)):
        done = subprocess.run([gong, *words], env=environ, capture_output=True, check=True)
        told[words[0]] = done.stdout.decode()
    assert "key_command" in told["auth"]
    assert "Ready: mine" in told["models"]
    assert not (tmp_path / "runs").exists()
