"""Keys of AWS from real files and programs, with botocore as judge of which one counts."""

import json
import os
import sys
import time
from configparser import ConfigParser

import botocore.session
import pytest

from gong.errors import AuthenticationError
from gong.llm import Client
from gong.llm.addresses import find_place
from gong.llm.aws_keys import AwsKeys
from gong.llm.keys import SigningKey
from gong.llm.models import load_presets
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.table import HELLO, WIRES

SECRET = "zq+secret/of-aws-1234"
CHAT = next(wire for wire in WIRES if wire.preset == "openai-chat")
STATIC = {"aws_access_key_id": "AKFILE", "aws_secret_access_key": SECRET}


@pytest.fixture
def environ(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of AWS from its sections, or its text."""

    def write_file(name, sections):
        file = tmp_path / ".aws" / name
        file.parent.mkdir(exist_ok=True)
        if isinstance(sections, bytes):
            file.write_bytes(sections)
            return
        parser = ConfigParser(interpolation=None, default_section="")
        parser.read_dict(sections)
        with file.open("w") as out:
            parser.write(out)

    return write_file


@pytest.fixture
def process(tmp_path):
    """Return a command that prints a key for `credential_process`."""

    def write_program(**fields):
        file = tmp_path / "get key"
        printed = json.dumps({"Version": 1, "AccessKeyId": "AKRUN", **fields})
        file.write_text(f"#!{sys.executable}\nprint({printed!r})\n")
        file.chmod(0o755)
        return f"'{file}' --json"

    return write_program


VARIABLES = {"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": SECRET}
# variables, the file of keys, that of settings, the provider's own profile
ORDER = {
    "variables": (VARIABLES, {"default": STATIC}, {}, ""),
    "variables with a token": ({**VARIABLES, "AWS_SESSION_TOKEN": "tok"}, {}, {}, ""),
    "variables and a named profile": (
        {**VARIABLES, "AWS_PROFILE": "work"},
        {"work": STATIC},
        {},
        "",
    ),
    "the provider's own profile": (VARIABLES, {"work": STATIC}, {}, "work"),
    "default": ({}, {"default": STATIC, "work": {}}, {}, ""),
    "a profile": ({"AWS_PROFILE": "work"}, {"work": {**STATIC, "aws_session_token": "t"}}, {}, ""),
    "settings": ({"AWS_DEFAULT_PROFILE": "w"}, {}, {"profile w": STATIC}, ""),
    "the file of keys goes first": (
        {},
        {"default": STATIC},
        {"default": {"aws_access_key_id": "AKOTHER", "aws_secret_access_key": "x"}},
        "",
    ),
    "a program": ({}, {}, {"default": {"credential_process": "RUN"}}, ""),
    "a program of a profile": (
        {},
        {"default": STATIC},
        {"profile w": {"credential_process": "RUN"}},
        "w",
    ),
    "a program beside a key": (
        {},
        {"default": STATIC},
        {"default": {"credential_process": "RUN"}},
        "",
    ),
}


@pytest.mark.parametrize("case", ORDER.values(), ids=ORDER)
async def test_the_key_is_the_one_that_botocore_takes(environ, write, process, monkeypatch, case):
    variables, credentials, config, own = case
    run = process(SecretAccessKey=SECRET, SessionToken="tok")
    config = {
        name: {field: run if value == "RUN" else value for field, value in fields.items()}
        for name, fields in config.items()
    }
    write("credentials", credentials)
    write("config", config)
    environ |= variables
    key = await AwsKeys("bedrock", environ, own).get_key()
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    judge = botocore.session.Session(profile=own or None).get_credentials().get_frozen_credentials()
    assert (key.id, key.secret, key.session_token or None) == (
        *(judge.access_key, judge.secret_key, judge.token),
    )
    assert SECRET not in repr(key)


PAST = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 7200))
WRONG = {
    "half a key": (b"[default]\naws_access_key_id = AK\n", b"", "without aws_secret_access_key"),
    "half a file": (
        b"[default\naws_access_key_id = AK",
        b"",
        "credentials cannot be read: it is dam",
    ),
    "no section": (f"aws_secret_access_key = {SECRET}\n".encode(), b"", "damaged at line 1"),
    "a foreign file": (
        b'{"refresh_token": "' + SECRET.encode() + b'"}',
        b"",
        "is damaged at line 1",
    ),
    "no text": (b"\xff\xfe\x00", b"", "is damaged"),
    "an expired key": (
        b"[default]\naws_access_key_id = AK\naws_secret_access_key = "
        + SECRET.encode()
        + f"\nx_security_token_expires = {PAST}\n".encode(),
        b"",
        "the key of profile default of AWS expired at 20",
    ),
    "a program that is missing": (
        b"",
        b"[default]\ncredential_process = no-such-program --x\n",
        "credential_process of profile default: there is no program 'no-such-program'",
    ),
    "a program that fails": (
        b"",
        b"[default]\ncredential_process = false\n",
        "credential_process of profile default ended with exit code 1",
    ),
    "a program with another key": (
        b"",
        b"[default]\ncredential_process = echo word\n",
        "printed no AccessKeyId and SecretAccessKey",
    ),
    "a program with an expired key": (b"", "EXPIRED", "printed a key that expired at 20"),
    "an unfinished login": (
        b"",
        b"""[default]
sso_session = s
sso_account_id = 1
sso_role_name = r
[sso-session s]
sso_region = eu-west-1
sso_start_url = https://x.example
""",
        "run aws sso login --profile default",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
async def test_a_file_or_a_login_of_no_use_is_one_line(environ, write, process, monkeypatch, case):
    credentials, config, words = case
    if config == "EXPIRED":
        run = process(SecretAccessKey=SECRET, Expiration=PAST)
        config = f"[default]\ncredential_process = {run}\n".encode()
    write("credentials", credentials)
    write("config", config)
    monkeypatch.setenv("HOME", environ["HOME"])
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(AuthenticationError) as failed:
        await AwsKeys("bedrock", environ).get_key()
    text = str(failed.value)
    assert words in text
    assert SECRET not in text
    assert "\n" not in text


async def test_a_profile_that_there_is_not_is_named_with_those_there_are(environ, write):
    write("credentials", {"default": STATIC})
    write("config", {"profile work": {"region": "eu-west-1"}})
    with pytest.raises(AuthenticationError) as failed:
        await AwsKeys("bedrock", environ, "wrok").get_key()
    assert str(failed.value) == (
        "no key for bedrock: AWS has no profile 'wrok' here, but work, default: set AWS_PROFILE, "
        "or run aws configure --profile wrok"
    )


async def test_half_of_the_variables_is_named(environ):
    environ["AWS_ACCESS_KEY_ID"] = "AK"
    with pytest.raises(AuthenticationError, match="AWS_SECRET_ACCESS_KEY is not: set both"):
        await AwsKeys("bedrock", environ).get_key()


def test_the_region_of_a_profile_counts_after_row_and_variables(environ, write):
    write("config", {"default": {"region": "eu-north-1"}, "profile w": {"region": "eu-south-1"}})
    presets = load_presets({"own": {"api": "openai-chat", "base_url": "", "auth": "aws"}})
    bedrock = presets["bedrock"]
    assert find_place(bedrock, "region", environ) == "eu-north-1"
    assert find_place(bedrock, "region", {**environ, "AWS_PROFILE": "w"}) == "eu-south-1"
    assert find_place(bedrock, "region", {**environ, "AWS_REGION": "us-east-1"}) == "us-east-1"
    chosen = load_presets({"bedrock": {"aws_profile": "w"}})["bedrock"]
    assert find_place(chosen, "region", environ) == "eu-south-1"


async def call_bedrock(environ, *replies):
    async with WireServer(*replies) as server:
        presets = load_presets({"bedrock": {"base_url": server.url}})
        client = Client.from_env({**environ, "AWS_REGION": "eu-west-1"}, presets=presets)
        provider, model = client.resolve("bedrock/qwen.qwen3")
        events = await events_of(provider, HELLO)
        return events, server.requests, model


async def test_a_call_is_signed_with_the_key_of_a_profile(environ, write):
    """M138: no bearer's key; the session token is sent, and the secret is not."""
    write("credentials", {"default": {**STATIC, "aws_session_token": "tok"}})
    events, (seen,), _ = await call_bedrock(environ, Reply(CHAT.said("hi")))
    assert accumulated(events).text == "hi"
    assert seen.headers["x-amz-security-token"] == "tok"
    assert seen.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKFILE/")
    assert "/eu-west-1/bedrock-mantle/aws4_request, " in seen.headers["authorization"]
    assert SECRET not in str(seen)


async def test_a_bearers_key_goes_before_a_profile(environ, write):
    write("credentials", {"default": STATIC})
    environ["AWS_BEARER_TOKEN_BEDROCK"] = "ABSKbearer"
    _, (seen,), _ = await call_bedrock(environ, Reply(CHAT.said("hi")))
    assert seen.headers["authorization"] == "Bearer ABSKbearer"


async def test_a_key_that_expired_meanwhile_is_read_again(environ, write):
    write("credentials", {"default": STATIC})
    source = AwsKeys("bedrock", environ)
    first = await source.get_key()
    assert await source.replace_key(first) is None
    write("credentials", {"default": {**STATIC, "aws_access_key_id": "AKNEW"}})
    assert await source.replace_key(first) == SigningKey(
        "AKNEW", SECRET, source="profile default of AWS"
    )


async def test_a_call_is_signed_again_after_a_refusal_of_an_expired_key(environ, write):
    """AWS refuses an expired key with a 403."""
    write("credentials", {"default": STATIC})
    async with WireServer(Reply(CHAT.said("hi"))) as server:
        presets = load_presets({"bedrock": {"base_url": server.url}})
        client = Client.from_env({**environ, "AWS_REGION": "eu-west-1"}, presets=presets)
        provider, _ = client.resolve("bedrock/qwen.qwen3")
        assert [event async for event in provider.stream(HELLO)]
        write("credentials", {"default": {**STATIC, "aws_access_key_id": "AKNEW"}})
        expired = {"message": "The security token included in the request is expired"}
        server.replies = [json_reply(403, expired), Reply(CHAT.said("hi again"))]
        assert accumulated(await events_of(provider, HELLO)).text == "hi again"
    ids = [seen.headers["authorization"].split("=")[1].split("/")[0] for seen in server.requests]
    assert ids == ["AKFILE", "AKFILE", "AKNEW"]


async def test_without_any_key_all_ways_to_one_are_named(environ, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", environ["HOME"])
    presets = load_presets({"bedrock": {"region": "eu-west-1"}})
    provider, _ = Client.from_env(environ, presets=presets).resolve("bedrock/qwen.qwen3")
    (failure,) = await events_of(provider, HELLO)
    assert str(failure.error) == (
        "no key for bedrock: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or run aws configure --profile default"
    )


async def test_a_refused_signature_names_profile_and_region(environ, write):
    write("credentials", {"default": STATIC})
    refusal = json_reply(403, {"message": "The security token included in the request is invalid."})
    events, requests, _ = await call_bedrock(environ, refusal)
    assert "the key from profile default of AWS" in str(events[-1].error)
    assert len(requests) == 1
