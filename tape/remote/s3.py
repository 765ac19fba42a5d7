"""A remote in a bucket of object storage that speaks S3; needs the extra `s3` (obstore).

    s3://BUCKET/PREFIX?endpoint=https://storage.example&region=eu-central-1&addressing=virtual
    s3+https://HOST:PORT/BUCKET/PREFIX?region=eu-central-1

Keys and tokens come from the variables that all programs for S3 read (`AWS_ACCESS_KEY_ID`, …),
never from the address. Of the service only one thing is assumed beyond reads, writes and lists:
that a PUT with `If-None-Match: *` writes a new object or nothing.
"""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from ..errors import NotFound, RemoteUnavailable, UsageError
from .remote import MAX_PARALLEL, Listed, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

_CLOCK = "probe/clock"
"""An object that is only there for the time at which it was written."""
_OPTIONS = ("endpoint", "region", "addressing", "anonymous")
_CONFLICTS = 8
"""How often a create is repeated that the server refused because another one was under way."""
_PAUSE = 0.05
_CHARACTERS = ",-.0123456789abcdefghijklmnopqrstuvwxyz"
"""Those of keys in their order, without the slash, and one that is none before them."""
_CONNECT_TIMEOUT, _TIMEOUT = "5s", "60s"
_RETRIES, _RETRY_SECONDS = 3, 30
_REFUSALS = (401, 403)
_SET_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_TOKEN_PATH = "/latest/api/token"  # noqa: S105 (where a machine at Amazon gets its keys)


class S3Remote(Remote):
    """Objects in a bucket, below a prefix."""

    def __init__(self, url: str) -> None:
        bucket, prefix, config = _parse_url(url)
        self.url, self._bucket = url, bucket
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": True,  # where the endpoint says so
                    "connect_timeout": _CONNECT_TIMEOUT,
                    "timeout": _TIMEOUT,
                },
                retry_config={
                    "max_retries": _RETRIES,
                    "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
                },
                **config,
            )
        except BaseError as error:
            raise UsageError(f"{url}: {_read_message(str(error))}") from error

    def create(self, key: str, data: bytes) -> bool:
        """Create an object by a conditional PUT."""
        for turn in range(_CONFLICTS):
            try:
                with self._explain(key):
                    # In parts, as obstore sends large objects else, nothing is conditional.
                    obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError as error:
                if not self._is_conflict(key, error):
                    return False
                time.sleep(_PAUSE * (turn + 1))
            else:
                return True
        raise RemoteUnavailable(f"{self.url}: {key}: others create it all the time: try again")

    def _is_conflict(self, key: str, error: Exception) -> bool:
        """Return whether two creates were under way, and neither may be there."""
        return _read_status(str(error)) == 409 and self._read_size(key) is None  # noqa: PLR2004 (a status of HTTP)

    def create_many(self, objects: Sequence[tuple[str, bytes]]) -> Sequence[bool]:
        """Create several objects, some at once, by one thread: many wait for one another."""
        if len(objects) < 2:  # noqa: PLR2004 (no loop for one)
            return super().create_many(objects)
        with ThreadPoolExecutor(1) as thread:  # this one may run a loop of its own
            return thread.submit(asyncio.run, self._create_all(objects)).result()

    async def _create_all(self, objects: Sequence[tuple[str, bytes]]) -> Sequence[bool]:
        turns = asyncio.Semaphore(MAX_PARALLEL)

        async def create(key: str, data: bytes) -> bool:
            async with turns:
                try:
                    with self._explain(key):
                        await obstore.put_async(
                            self._store, key, data, mode="create", use_multipart=False
                        )
                except AlreadyExistsError as error:
                    is_conflict = await asyncio.to_thread(self._is_conflict, key, error)
                    return is_conflict and await asyncio.to_thread(self.create, key, data)
                return True

        return await asyncio.gather(*(create(*item) for item in objects))

    def replace(self, key: str, data: bytes) -> None:
        """Replace an object by a plain PUT."""
        with self._explain(key):
            obstore.put(self._store, key, data, mode="overwrite", use_multipart=False)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of an object, or a part of them by a Range."""
        if start == 0 and end is None:
            with self._explain(key):
                return bytes(obstore.get(self._store, key).bytes())
        if end is not None and end <= start:
            return self._read_nothing(key)
        try:
            with self._explain(key):
                if end is None:
                    options: Any = {"range": {"offset": start}}
                    return bytes(obstore.get(self._store, key, options=options).bytes())
                return bytes(obstore.get_range(self._store, key, start=start, end=end))
        except RemoteUnavailable:
            size = self._read_size(key)
            if size is not None and size <= start:  # a range behind the end is an error of HTTP
                return b""
            raise

    def _read_nothing(self, key: str) -> bytes:
        if self._read_size(key) is None:
            raise NotFound(f"the remote has no {key}")
        return b""

    def _read_size(self, key: str) -> int | None:
        """Return the size of an object in bytes; None if there is none."""
        try:
            with self._explain(key):
                size: int = obstore.head(self._store, key)["size"]
        except NotFound:
            return None
        return size

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects below a folder, or those whose keys begin so, a page at a time."""
        folder, _, name = prefix.rpartition("/")
        if name:  # obstore lists whole folders: begin right before the first key that fits
            before = _CHARACTERS[_CHARACTERS.index(prefix[-1]) - 1]
            after = max(after, f"{prefix[:-1]}{before}~")
        with self._explain(prefix or "its keys"):
            pages = iter(obstore.list(self._store, folder or None, offset=after or None))
        while True:
            with self._explain(prefix or "its keys"):
                page = next(pages, None)
            if page is None:
                return
            for item in page:
                key = item["path"]
                if key.startswith(prefix):
                    if key > after:
                        yield Listed(key, item["size"])
                elif key > prefix:
                    return

    def now(self) -> int:
        """Return the time of the server's clock: that of an object that is written now."""
        self.replace(_CLOCK, b"")
        with self._explain(_CLOCK):
            written: datetime = obstore.head(self._store, _CLOCK)["last_modified"]
        return round(written.timestamp() * 1_000_000)

    @contextmanager
    def _explain(self, key: str) -> Iterator[None]:
        """Turn errors of obstore into ours, but for an object that exists."""
        try:
            yield
        except FileNotFoundError as error:
            text = str(error)
            if "NoSuchBucket" in text:
                raise self._say_unavailable(key, error) from error
            raise NotFound(f"the remote has no {key}") from error
        except AlreadyExistsError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self._say_unavailable(key, error) from error

    def _say_unavailable(self, key: str, error: Exception) -> RemoteUnavailable:
        text = str(error)
        if _TOKEN_PATH in text:
            return RemoteUnavailable(f"{self.url}: there are no keys: {_SET_KEYS}")
        if (why := _read_connect_error(text)) is not None:
            return RemoteUnavailable(f"{self.url}: it does not answer: {why}")
        message = _read_message(text)
        if "NoSuchBucket" in message:
            return RemoteUnavailable(f"{self.url}: there is no bucket {self._bucket!r}")
        hint = f"; for other keys {_SET_KEYS}" if _read_status(text) in _REFUSALS else ""
        return RemoteUnavailable(f"{self.url}: {key}: {message}{hint}")


def _parse_url(url: str) -> tuple[str, str, dict[str, Any]]:
    """Return bucket, prefix and settings that an address names; raise UsageError."""
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise UsageError(
            "an address is kept in a file: give keys as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, not as a part of it"
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted({*options} - {*_OPTIONS})
    if unknown:
        known = ", ".join(_OPTIONS)
        raise UsageError(f"{url}: an address of S3 has {known}, not {unknown[0]!r}")
    endpoint = options.get("endpoint")
    bucket, prefix = parts.netloc, parts.path.strip("/")
    if parts.scheme != "s3":
        endpoint = f"{parts.scheme.removeprefix('s3+')}://{parts.netloc}"
        bucket, _, prefix = prefix.partition("/")
    if not bucket:
        raise UsageError(f"{url}: an address of S3 names a bucket: s3://BUCKET/PREFIX")
    return bucket, prefix, _build_config(url, bucket, options, endpoint)


def _build_config(
    url: str, bucket: str, options: dict[str, str], endpoint: str | None
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if endpoint:
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise UsageError(f"{url}: endpoint is http:// or https://, not {endpoint!r}")
        config["endpoint"] = endpoint
    if "region" in options:
        config["region"] = options["region"]
    addressing = options.get("addressing")
    if addressing not in (None, "path", "virtual"):
        raise UsageError(f"{url}: addressing is path or virtual, not {addressing!r}")
    if addressing is not None:
        config["virtual_hosted_style_request"] = addressing == "virtual"
    if addressing == "virtual" and endpoint:  # obstore takes the host as it is
        host = urlsplit(endpoint)
        config["endpoint"] = f"{host.scheme}://{bucket}.{host.netloc}{host.path.rstrip('/')}"
    if options.get("anonymous") in ("", "true"):
        config["skip_signature"] = True
    return config


def _read_status(text: str) -> int | None:
    """Return the status of HTTP that an error of obstore names."""
    match = re.search(r"status code: (\d{3})", text)
    return int(match[1]) if match else None


def _read_connect_error(text: str) -> str | None:
    """Return why there was no connection; None for an error of another kind."""
    message, _, debug = text.partition("\n\nDebug source")
    if not message.rstrip().endswith("error sending request"):
        return None
    match = re.search(r'(?:message|error): "([^"]*)"', debug)
    return match[1] if match else "the connection broke off"


def _read_message(text: str) -> str:
    """Return what an error of obstore says, in one line."""
    text = text.partition("\n\nDebug source")[0].strip()
    code, message = (re.search(rf"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message"))
    if code is not None:
        status = _read_status(text)
        words = [str(status) if status else "", code[1], f"({message[1]})" if message else ""]
        return " ".join(word for word in words if word)
    text = re.sub(r"^Generic S3 error: |Error performing (\w+) \S+ in \S+?,? ", "", text)
    return " ".join(text.split())
