"""Frames of AWS: botocore as judge, and streams that are cut or changed at each byte."""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import crc32

import anthropic
import msgspec
import pytest
from botocore.eventstream import EventStreamBuffer
from msgspec.structs import replace

from gong import errors
from gong.llm import Client
from gong.llm.models import load_presets
from gong.llm.provider_factory import encode_request_body
from gong.llm.wires.event_frames import CONTENT_TYPE, DamagedFrame, FrameParser
from gong.llm.wires.server_sent_events import EventTooLong
from tests.wires import anthropic as messages
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.table import HELLO
from tests.wires.test_clouds import call_sdk, compared, requests_for

KEY = "key-of-a-cloud-0123456789"
MODEL = "us.anthropic.claude-3-5-sonnet-20241022-v2:0"
HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


def write_frame(headers, payload):
    """Return a frame; a header that is a number is one of eight bytes."""
    head = b"".join(
        bytes([len(name)])
        + name.encode()
        + (
            b"\x05" + value.to_bytes(8)
            if isinstance(value, int)
            else b"\x07" + len(value).to_bytes(2) + value.encode()
        )
        for name, value in headers.items()
    )
    prelude = (len(head) + len(payload) + 16).to_bytes(4) + len(head).to_bytes(4)
    prelude += crc32(prelude).to_bytes(4)
    frame = prelude + head + payload
    return frame + crc32(frame).to_bytes(4)


def write_chunk(event, padding="abc"):
    inner = b64encode(json.dumps(event).encode()).decode()
    return write_frame(HEADERS, json.dumps({"bytes": inner, "p": padding}).encode())


def write_exception(name, message):
    headers = {**HEADERS, ":message-type": "exception", ":exception-type": name}
    headers.pop(":event-type")
    return write_frame(headers, json.dumps({"message": message}).encode())


SAID = [messages.start(), *messages.text_block(0, "I read", " it 🙂"), *messages.stop("end_turn")]
STREAM = b"".join(map(write_chunk, SAID))
UNFINISHED = b"".join(map(write_chunk, SAID[:-2]))
"""Without the reason of its end."""


def parse(data, *, size=1_000_000, step=None):
    parser = FrameParser(size)
    pieces = [data[n : n + step] for n in range(0, len(data), step)] if step else [data]
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("step", [None, 1, 7, 64])
def test_events_are_those_of_botocore_however_the_bytes_come(step):
    odd = write_frame({":event-type": "metadata", ":message-type": "event", "n": 7}, b"{}")
    buffer = EventStreamBuffer()
    buffer.add_data(STREAM + odd)
    theirs = [(dict(frame.headers), frame.payload) for frame in buffer]
    assert len(theirs) == len(SAID) + 1
    ours = parse(STREAM + odd, step=step)
    assert [json.loads(event) for event in ours] == [*SAID, {"metadata": {}}]


def test_a_stream_that_is_changed_at_any_byte_is_damaged():
    for place in range(len(STREAM)):
        changed = bytearray(STREAM)
        changed[place] ^= 0x40
        with pytest.raises(DamagedFrame):
            parse(bytes(changed))


def test_a_stream_that_is_cut_at_any_byte_has_the_whole_events_before():
    ends = [0]
    for event in SAID:
        ends.append(ends[-1] + len(write_chunk(event)))
    for place in range(len(STREAM)):
        whole = sum(end <= place for end in ends[1:])
        assert [json.loads(event) for event in parse(STREAM[:place])] == SAID[:whole]


def test_a_frame_that_is_larger_than_any_event_is_refused_by_its_length():
    with pytest.raises(EventTooLong):
        parse(write_frame(HEADERS, b"x" * 2000)[:100], size=1000)


@pytest.mark.parametrize(
    ("headers", "payload"),
    [
        (HEADERS, b"no json"),
        (HEADERS, b'{"bytes": "no base64!"}'),
        (HEADERS, b"\xff"),
    ],
)
def test_what_a_frame_holds_may_be_damaged_too(headers, payload):
    with pytest.raises(DamagedFrame):
        parse(write_frame(headers, payload))


def frames(body, **reply):
    return Reply(body, content_type=CONTENT_TYPE, **reply)


ENVIRON = {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": KEY}


async def events_from(*replies):
    async with WireServer(*replies) as server:
        presets = load_presets({"bedrock-invoke": {"base_url": server.url}})
        provider, model = Client.from_env(ENVIRON, presets=presets).resolve(
            f"bedrock-invoke/{MODEL}"
        )
        return await events_of(provider, replace(HELLO, model=model))


@pytest.mark.parametrize("chunk", [None, 1, 100])
async def test_an_answer_in_frames_is_the_same_as_in_events(chunk):
    answer = accumulated(await events_from(frames(STREAM, chunk=chunk)))
    assert (answer.text, answer.stop_reason) == ("I read it 🙂", "stop")


EXCEPTIONS = {
    "throttlingException": errors.RateLimited,
    "modelStreamErrorException": errors.ServerError,
    "internalServerException": errors.ServerError,
    "serviceUnavailableException": errors.ServerError,
    "modelTimeoutException": errors.ServerError,
    "validationException": errors.InvalidRequest,
    "accessDeniedException": errors.AccessDenied,
    "madeLaterException": errors.StreamError,
}


@pytest.mark.parametrize(("name", "kind"), EXCEPTIONS.items())
async def test_an_exception_in_a_frame_is_an_error_of_its_kind(name, kind):
    body = STREAM[: len(write_chunk(SAID[0]))] + write_exception(name, "It said so.")
    events = await events_from(frames(body))
    assert (type(events[-1].error), "It said so." in str(events[-1].error)) == (kind, True)


async def test_an_error_frame_has_its_words_in_headers():
    headers = {":message-type": "error", ":error-code": "internalServerException"}
    events = await events_from(frames(write_frame({**headers, ":error-message": "Oh."}, b"")))
    assert (type(events[-1].error), "Oh." in str(events[-1].error)) == (errors.ServerError, True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (UNFINISHED[:-20], "stopped in the middle of its answer"),
        (STREAM[:50], "stopped in the middle of its answer"),
        (UNFINISHED[:-1] + b"\x00", "sent a damaged answer: the checksum of a frame is wrong"),
        (b"HTTP/1.1 200 OK", "sent a damaged answer: the checksum of a frame's lengths is wrong"),
        (b"", "sent no answer"),
    ],
)
async def test_a_cut_or_damaged_stream_is_one_line_and_may_be_tried_again(body, words):
    events = await events_from(frames(body))
    assert words in str(events[-1].error)
    assert events[-1].error.retryable


async def test_an_error_of_aws_has_its_name_in_a_header():
    refusal = json_reply(
        400, {"message": "The model is gone."}, x_amzn_errortype="ValidationException:http://x"
    )
    events = await events_from(refusal)
    assert events[-1].error.code == "ValidationException"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_forty_calls_are_those_of_the_sdk_for_the_old_address():
    """M138: AsyncAnthropicBedrock, which reads the same frames."""
    async with WireServer(frames(STREAM)) as server:
        presets = load_presets({"bedrock-invoke": {"base_url": server.url}})
        plain = replace(
            presets["bedrock-invoke"], name="plain", model_in_path=False, body_version="",
            quirks=replace(presets["bedrock-invoke"].quirks, aws_frames=False),
        )  # fmt: skip
        requests = requests_for(MODEL)
        async with Client.from_env(ENVIRON, presets=presets) as client:
            provider, _ = client.resolve(f"bedrock-invoke/{MODEL}")
            for request in requests:
                async for _ in client.stream(request, provider):
                    pass
        ours = server.requests[:]
        server.requests.clear()
        judge = anthropic.AsyncAnthropicBedrock(
            api_key=KEY, aws_region="eu-west-1", base_url=server.url, max_retries=0
        )
        for request in requests:
            body = msgspec.json.decode(encode_request_body(plain, request))
            await call_sdk(judge, "anthropic-messages", body)
        await judge.close()
    for mine, theirs in zip(ours, server.requests, strict=True):
        assert compared(mine) == compared(theirs)
