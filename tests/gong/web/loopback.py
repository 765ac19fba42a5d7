"""A web server on loopback that answers as a test says."""

import asyncio
from contextlib import asynccontextmanager


@asynccontextmanager
async def serve(answer, host="127.0.0.1"):
    """Serve `answer(path)`: bytes of a whole response, or a coroutine function of the writer."""
    asked = []

    async def handle(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            asked.append((path, head))
            response = answer(path)
            if isinstance(response, bytes):
                writer.write(response)
                await writer.drain()
            else:
                await response(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, host, 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


def response(body=b"hello", kind="text/plain", status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def moved(where, status="302 Found"):
    return response(b"", status=status, Location=where)
