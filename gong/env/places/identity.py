"""What a place is called: one text for the tape, the screen and the command line.

    local                             this machine
    docker:NAME[:FOLDER]              a container of docker, or of podman where docker has none
    podman:NAME[:FOLDER]              a container of podman
    docker-image:IMAGE                a container that is started from an image, and removed
    ssh://[USER@]HOST[:PORT][/PATH]   a machine
    k8s:CONTEXT/NAMESPACE/POD[/CONTAINER][:FOLDER]

The folder of a container is where work begins there and no part of its name; parts with other
characters than letters, digits and `._-@` are written as in URLs (`%2F`). Two places are the same
machine when their names are equal but for the path behind a host.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ...errors import ConfigurationError
from ..protocol import LOCAL

Scheme = Literal["local", "docker", "podman", "docker-image", "ssh", "k8s"]

_CONTAINER = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_IMAGE = r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*"
_POD_PART = r"[A-Za-z0-9]([A-Za-z0-9_.:/@-]*[A-Za-z0-9])?"
_HOST = r"[A-Za-z0-9_:]([A-Za-z0-9_.:-]*[A-Za-z0-9_])?"
_USER = r"[A-Za-z0-9_.][A-Za-z0-9_.@+-]*"
_FORMS = (
    "local, docker:NAME, podman:NAME, docker-image:IMAGE, ssh://USER@HOST:PORT/PATH"
    " or k8s:CONTEXT/NAMESPACE/POD[/CONTAINER]"
)
_LAST_PORT = 65_535


class PlaceName(NamedTuple):
    """Where tools act."""

    scheme: Scheme
    parts: tuple[str, ...] = ()
    """The container; the image; user ("" for that of ssh's settings), host and port ("" likewise);
    context, namespace, pod and container ("" for the pod's first)."""
    folder: str = ""
    """Where work begins; "" for where the place begins itself."""

    @property
    def name(self) -> str:
        """What it is called on the tape and on the screen."""
        if self.scheme == "local":
            return LOCAL
        if self.scheme == "ssh":
            user, host, port = self.parts
            host = f"[{host}]" if ":" in host else host
            login = f"{quote(user, safe='')}@" if user else ""
            return f"ssh://{login}{host}{port and ':'}{port}{quote(self.folder, safe='/~')}"
        if self.scheme == "k8s":
            return "k8s:" + "/".join(quote(part, safe="") for part in self.parts if part)
        return f"{self.scheme}:{self.parts[0]}"

    @property
    def machine(self) -> str:
        """The name without a path: equal for two folders of one machine."""
        return self._replace(folder="").name

    @property
    def is_local(self) -> bool:
        """Whether it is this machine."""
        return self.scheme == "local"


def is_same_machine(name: str, other: str) -> bool:
    """Return whether two names of places, as the tape has them, mean one machine."""
    if name == other:
        return True
    try:
        return parse_place(name).machine == parse_place(other).machine
    except ConfigurationError:
        return False


def parse_place(text: str) -> PlaceName:
    """Return the place that a text names; ConfigurationError, in one line, for any other text."""
    if text == LOCAL:
        return PlaceName("local")
    scheme, colon, rest = text.partition(":")
    if colon and "\0" not in text:
        if scheme in ("docker", "podman"):
            return _parse_container(text, scheme, rest)  # type: ignore[arg-type]
        if scheme == "docker-image" and re.fullmatch(_IMAGE, rest):
            return PlaceName("docker-image", (rest,))
        if scheme == "ssh":
            return _parse_host(text)
        if scheme == "k8s":
            return _parse_pod(text, rest)
    is_image = scheme == "docker-image" and colon
    raise _build_refusal(text, "no image has such a name" if is_image else f"a place is {_FORMS}")


def _parse_container(text: str, scheme: Scheme, rest: str) -> PlaceName:
    name, _, folder = rest.partition(":")
    if not re.fullmatch(_CONTAINER, name):
        raise _build_refusal(text, "no container has such a name: letters, digits and _ . - only")
    return PlaceName(scheme, (name,), _check_folder(text, folder))


def _parse_pod(text: str, rest: str) -> PlaceName:
    names, _, folder = rest.partition(":")
    parts = [unquote(part) for part in names.split("/")]
    if len(parts) not in (3, 4) or not all(re.fullmatch(_POD_PART, part) for part in parts):
        raise _build_refusal(text, "a pod is k8s:CONTEXT/NAMESPACE/POD or …/POD/CONTAINER")
    return PlaceName("k8s", (*parts, *[""] * (4 - len(parts))), _check_folder(text, folder))


def _parse_host(text: str) -> PlaceName:
    try:
        address = urlsplit(text)
        port = address.port
    except ValueError:
        raise _build_refusal(text, "a machine is ssh://USER@HOST:PORT/PATH") from None
    user, host = unquote(address.username or ""), address.hostname or ""
    # A host's case is kept: it may be a name in the settings of ssh.
    named = address.netloc.rpartition("@")[2].partition(":")[0]
    host = named if named.lower() == host else host
    is_plain = text.startswith("ssh://") and not (address.query or address.fragment)
    if address.password is not None:
        raise _build_refusal(
            "ssh://…", "a password has no place there: ssh asks keys and agents itself"
        )
    if not (is_plain and re.fullmatch(_HOST, host)) or (user and not re.fullmatch(_USER, user)):
        raise _build_refusal(text, "a machine is ssh://USER@HOST:PORT/PATH")
    if port is not None and not 0 < port <= _LAST_PORT:
        raise _build_refusal(text, "there is no such port")
    path = unquote(address.path, errors="surrogateescape")
    if path == "/" or "\0" in path:
        path = "" if path == "/" else "\0"
    return PlaceName("ssh", (user, host, str(port or "")), _check_folder(text, path))


def _check_folder(text: str, folder: str) -> str:
    if "\0" in folder or (folder and not folder.startswith("/")):
        raise _build_refusal(text, "its folder is no absolute path")
    return folder.rstrip("/") or folder[:1]


def _build_refusal(text: str, why: str) -> ConfigurationError:
    visible = text if text.isprintable() else ascii(text)
    return ConfigurationError(f"{visible[:200]} is no place: {why}")
