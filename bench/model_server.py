"""A model's host on this machine, as fast as it can be: `python bench/model_server.py`.

Prints its port. POST /WIRE/N/… is answered with N pieces of text, each in a chunk of its own, and
POST /WIRE/N@RATE/… with RATE of them a second;
GET / with the number of connections that calls came through so far.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"


def event(**data) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def chat(pieces: int) -> list[bytes]:
    def chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "bench-1"}
        return event(**named, created=1_795_000_000, choices=[choice])

    text = [chunk({"content": f" word{number}"}) for number in range(pieces)]
    return [chunk({"role": "assistant"}), *text, chunk({}, "stop"), b"data: [DONE]\n\n"]


def responses(pieces: int) -> list[bytes]:
    response = {"id": "resp_1", "model": "bench-1", "status": "completed"}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0, "logprobs": []}
    text = [
        event(type="response.output_text.delta", delta=f" word{number}", **place)
        for number in range(pieces)
    ]
    return [
        event(type="response.created", response=response),
        event(type="response.output_item.added", output_index=0, item=item),
        *text,
        event(type="response.output_item.done", output_index=0, item=item),
        event(type="response.completed", response=response),
    ]


def anthropic(pieces: int) -> list[bytes]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "model": "bench-1", "content": [], "usage": usage}
    text = [
        event(
            type="content_block_delta",
            index=0,
            delta={"type": "text_delta", "text": f" word{number}"},
        )
        for number in range(pieces)
    ]
    return [
        event(type="message_start", message=message),
        event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *text,
        event(type="content_block_stop", index=0),
        event(type="message_delta", delta={"stop_reason": "end_turn"}, usage=usage),
        event(type="message_stop"),
    ]


def google(pieces: int) -> list[bytes]:
    def chunk(text, **more):
        content = {"parts": [{"text": text}], "role": "model"}
        return event(candidates=[{"content": content, "index": 0, **more}], modelVersion="bench-1")

    text = [chunk(f" word{number}") for number in range(pieces)]
    return [chunk("Well,"), *text, chunk(".", finishReason="STOP")]


WIRES = {"openai-chat": chat, "openai": responses, "anthropic": anthropic, "google": google}


@cache
def answer(wire: str, pieces: int) -> bytes:
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in WIRES[wire](pieces)]
    return HEAD % b"text/event-stream" + b"".join(chunks) + b"0\r\n\r\n"


async def pace(wire: str, pieces: int, rate: int, writer: asyncio.StreamWriter) -> None:
    """Write an answer at so many pieces a second."""
    writer.write(HEAD % b"text/event-stream")
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in WIRES[wire](pieces)]
    begun, step = asyncio.get_running_loop().time(), max(rate // 200, 1)
    for first in range(0, len(chunks), step):
        writer.write(b"".join(chunks[first : first + step]))
        await writer.drain()
        await asyncio.sleep(begun + first / rate - asyncio.get_running_loop().time())
    writer.write(b"0\r\n\r\n")


def number(value: int) -> bytes:
    text = str(value).encode()
    return HEAD % b"text/plain" + b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text)


async def main() -> None:
    asked: set[object] = set()

    async def serve(reader, writer) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, path, _ = head.split(b" ", 2)
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                if method == b"POST":
                    asked.add(writer)
                    _, wire, pieces, _ = path.decode().split("/", 3)
                    many, _, rate = pieces.partition("@")
                    if rate:
                        await pace(wire, int(many), int(rate), writer)
                    else:
                        writer.write(answer(wire, int(many)))
                else:
                    writer.write(number(len(asked)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
