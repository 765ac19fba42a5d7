"""Which repository a folder is a checkout of, and who works there: git's settings, read once.

A repository is known by where its remote is, as `host/owner/name`, so that every checkout of it has
the same name, whatever machine it is on and however it is fetched:

    git@example.org:team/app.git          example.org/team/app
    ssh://git@example.org:2222/team/app   example.org/team/app
    https://user:token@Example.org/team/app.git/?x=y
                                          example.org/team/app
    /srv/git/app.git, file:///srv/git/app /srv/git/app: known on this machine only
    ext::…, a remote without a host       none

The remote is that of the branch that is checked out, else `origin`, else the only one. Nothing is
imported but what every command has, because `tape ls` and the start of `gong chat` ask.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS_COMMAND = (
    *("git", "config", "-z", "--get-regexp"),
    r"^(remote\..*\.url|branch\..*\.remote|url\..*\.insteadof|user\.(name|email))$",
)
"""Prints the settings that `parse_git_settings` reads; it runs no program that they name."""
PERSON_VARIABLE = "TAPE_PERSON"
"""The variable that says who works: `Name <email>`, or `off`."""
_OFF = "off"
"""What records nobody."""
_MAX_CHARS = 1_000
_HEAD_MARK = "ref: refs/heads/"
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)")
_SCP = re.compile(
    r"(?:[^/:@\[]*@)?(?:\[(?P<bracketed>[^\]/]+)\]|(?P<plain>[^/:\[\]]+)):(?P<path>.+)"
)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::(?!1)")
_HOST = re.compile(r"[\w.-]+|\[[0-9a-fA-F:.]+\]")
_OTHER_DOORS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
"""Hosts that are others on the port of https."""


class GitSettings(NamedTuple):
    """What git's settings say of a folder."""

    remotes: Mapping[str, str]
    """Name of each remote → its first URL, as it is written."""
    upstreams: Mapping[str, str]
    """Name of a branch → its remote."""
    rewrites: Mapping[str, str]
    """Beginning of a URL → what replaces it (`url.BASE.insteadOf`)."""
    name: str = ""
    email: str = ""

    @property
    def person(self) -> str | None:
        """`Name <email>`, or what of it is known."""
        email = f"<{self.email}>" if self.email else ""
        return f"{self.name} {email}".strip() or None

    def find_repository(self, top: str, branch: str | None) -> str | None:
        """Return the repository that is checked out at `top`, on a branch; None if unknown."""
        url = self._choose_url(branch)
        return None if url is None else name_repository(self._rewrite(url), top)

    def _choose_url(self, branch: str | None) -> str | None:
        upstream = self.upstreams.get(branch or "", ".")  # a dot is this repository itself
        if upstream in self.remotes:
            return self.remotes[upstream]
        if ":" in upstream or "/" in upstream:  # it may be a URL instead of a name
            return upstream
        only = next(iter(self.remotes.values())) if len(self.remotes) == 1 else None
        return self.remotes.get("origin", only)

    def _rewrite(self, url: str) -> str:
        """Return the URL as git resolves it: the longest beginning that is replaced counts."""
        begins = [begin for begin in self.rewrites if url.startswith(begin)]
        if not begins:
            return url
        longest = max(begins, key=len)
        return self.rewrites[longest] + url[len(longest) :]


NO_SETTINGS = GitSettings({}, {}, {})


class WorkFacts(NamedTuple):
    """What a tape says of where it began, so that others find it."""

    repository: str | None = None
    """`host/owner/name`, or the path of a remote that is a folder."""
    person: str | None = None
    """`Name <email>`."""


def parse_git_settings(output: bytes) -> GitSettings:
    """Return the settings that `SETTINGS_COMMAND` printed."""
    known = {"name": "", "email": ""}
    remotes: dict[str, str] = {}
    upstreams: dict[str, str] = {}
    rewrites: dict[str, str] = {}
    for item in output.decode("utf-8", "replace").split("\0"):
        key, _, value = item.partition("\n")
        section, _, rest = key.partition(".")
        middle, _, last = rest.rpartition(".")
        match section:
            case "remote" if value:
                remotes.setdefault(middle, value)
            case "branch":
                upstreams[middle] = value
            case "url" if value:
                rewrites[value] = middle
            case "user" if last in known:
                known[last] = " ".join(value.split())
    return GitSettings(remotes, upstreams, rewrites, **known)


def name_repository(url: str, top: str = "") -> str | None:
    """Return the name of the repository at a URL, without credentials; None for odd ones.

    A path is relative to `top`; without it a relative one has no name.
    """
    url = url.strip()
    if not url or len(url) > _MAX_CHARS or not url.isprintable() or _HELPER.match(url):
        return None
    if match := _URL.fullmatch(url.partition("?")[0].partition("#")[0]):
        if match["scheme"].lower() == "file":
            return _name_folder(_decode_path(match["path"]), "")
        return _join_name(match["authority"].rpartition("@")[2], _decode_path(match["path"]))
    if match := _SCP.fullmatch(url):
        host = (match["bracketed"] or match["plain"]).rpartition("@")[2]
        if host.count(":") > 1:
            host = f"[{host}]"
        if match["path"].startswith("\\"):  # a drive
            return None
        return _join_name(host, match["path"])
    return None if "://" in url else _name_folder(url, top)


def _join_name(authority: str, path: str) -> str | None:
    """Return host and path of a remote as one name; None where one of them is missing."""
    host = authority if authority.endswith("]") else re.sub(r":\d*$", "", authority)
    host = host.lower().rstrip(".")
    path = _trim_path(path)
    if not _HOST.fullmatch(host) or not path or not path.isprintable():
        return None
    return f"{_OTHER_DOORS.get(host, host)}/{path}"


def _name_folder(path: str, top: str) -> str | None:
    """Return the absolute path of a remote that is a folder."""
    if not path.startswith("/") and not top:
        return None
    path = os.path.normpath(os.path.join(top, path))
    trimmed = _trim_path(path.removesuffix("/.git"))
    return f"/{trimmed}" if trimmed and trimmed.isprintable() else None


def _trim_path(path: str) -> str:
    parts = [part for part in path.split("/") if part]
    return "/".join(parts).removesuffix(".git").rstrip("/")


def _decode_path(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote  # noqa: PLC0415 (few URLs need it)

    return unquote(text)


def read_checked_out_branch(top: str) -> str | None:
    """Return the branch that is checked out at the top of a repository; None if there is none."""
    place = f"{top}/.git"
    if link := _read_text(place):  # of a worktree or a submodule
        place = os.path.join(top, link.partition("gitdir:")[2].strip())
    line = _read_text(f"{place}/HEAD").strip()
    return line.removeprefix(_HEAD_MARK) if line.startswith(_HEAD_MARK) else None


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_CHARS)
    except OSError:
        return ""


def read_git_settings(folder: str, environ: Mapping[str, str]) -> GitSettings:
    """Return what git's settings say of a folder; nothing where git is missing or refuses."""
    words = ("git", "-C", folder, *SETTINGS_COMMAND[1:])
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as output:
        silent = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        actions = [(os.POSIX_SPAWN_DUP2, writer, 1), silent]
        try:
            pid = os.posix_spawnp("git", words, environ, file_actions=actions)
        except OSError:
            return NO_SETTINGS
        finally:
            os.close(writer)
        data = output.read()
    os.waitpid(pid, 0)
    return parse_git_settings(data)


def find_repository(top: str, environ: Mapping[str, str]) -> str | None:
    """Return the repository that is checked out at `top`, as its tapes name it."""
    settings = read_git_settings(top, environ)
    return settings.find_repository(top, read_checked_out_branch(top))


def choose_person(given: str | None, settings: GitSettings) -> str | None:
    """Return who works: the one that is given, else that of git; None where that is `off`."""
    if given:
        return None if given.strip().lower() == _OFF else " ".join(given.split())
    return settings.person


def find_work_facts(
    top: str | None, environ: Mapping[str, str], person: str | None = None
) -> WorkFacts:
    """Return the facts of a session that begins in the repository at `top`, or outside of one.

    `person` is the one that is given, or `off`; without it $TAPE_PERSON or git says who works.
    """
    person = person or environ.get(PERSON_VARIABLE)
    if top is None and person:
        return WorkFacts(None, choose_person(person, NO_SETTINGS))
    settings = read_git_settings(top or "/", environ)
    repository = settings.find_repository(top, read_checked_out_branch(top)) if top else None
    return WorkFacts(repository, choose_person(person, settings))
