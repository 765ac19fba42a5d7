"""What rules and mode say about each part of a call, in the order of decisions; nobody is asked.

    step            a part of a command              a file
    --------------  -------------------------------  ---------------------------------------
    danger floor    `classify_command`               the system's files, private keys
    bypass mode     allows                           allows
    deny rules      may be about any program in it   by its path, and by where a link leads
    plan mode       refuses what does not only read  refuses edits
    ask rules       as deny rules                    as deny rules
    allow rules     cover each part and all that it  by its path, and by where a link leads
                    has to show
    locked mode     refuses                          refuses
    dont_ask mode   allows                           allows
    other modes     ask; accept_edits allows plain   reads in the folders are allowed, edits only
                    commands for files               in accept_edits; sensitive files ask

The floor asks instead where a person sits (default, accept_edits) and only work of the folder would
be lost, as by `git checkout .`.
"""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from tape.files.calls import parse_named_call

from ..web.addresses import InvalidAddress, parse_address
from .files.named_paths import list_meant_paths
from .files.real_paths import find_real_path, has_wildcard, match_files
from .files.searched_files import find_searched_files
from .modes import PermissionMode
from .rules import (
    PermissionRule,
    find_family,
    is_domain_covered,
    is_skill_covered,
    is_tool_covered,
)
from .ruling import READING, Ruling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .access import AccessRules
    from .command_judge import CommandJudge
    from .file_judge import FileJudge


_HARMLESS_TOOLS = {
    "tape_search", "tape_read", "compact", "todo", "todo_write", "todowrite", "bash_output",
    "kill_shell", "taskstop", "update_plan", "plan", "ask", "ask_user", "enter_plan_mode",
    "exit_plan_mode", "taskoutput", "structured_output",
    "task", "spawn_agent", "send_input", "wait", "close_agent",
    "skill",
}  # fmt: skip
"""Tools that change nothing but the session itself."""
_READ_PATHS: tuple[str, ...] = (
    "path", "file_path", "absolute_path", "dir_path", "directory", "filePath", "paths",
    "file_paths", "target_file", "root", "folder", "notebook_path", "dir", "file",
)  # fmt: skip


_SEARCHING_TOOLS = {"grep", "grep_search", "search_file_content", "grep_files", "search_files"}
"""Tools that show lines of files which the call does not name."""
_GLOBS = ("glob", "glob_filter", "include")


@dataclass(frozen=True, slots=True)
class CallJudge:
    """Judges calls by one state of mode and rules."""

    access: AccessRules
    files: FileJudge
    commands: CommandJudge

    def allow_more(self, rules: Sequence[PermissionRule]) -> Self:
        """Return a judge that knows further rules that allow; nothing is analysed again."""
        access = replace(self.access, allow=(*self.access.allow, *rules))
        files = replace(self.files, access=access)
        return replace(
            self,
            access=access,
            files=files,
            commands=replace(self.commands, access=access, files=files),
        )

    def judge(self, name: str, arguments: Mapping[str, Any]) -> list[Ruling]:
        """Return the decision about each part of a call; none where it has none that matters."""
        family, line = find_family(name), find_command(arguments)
        if family == "bash" and line is not None:
            return self.commands.judge(line)
        if family in {"read", "edit"}:
            files, start, home = self.files, self.files.places.start, self.files.places.home
            named = [
                place
                for path in list_call_paths(name, family, arguments)
                for place in list_meant_paths(path, start, home)
            ]
            border = self.access.border
            if border is not None:  # /tmp inside is another folder, whose links lead elsewhere
                named = [border.find_inside(path) for path in named]
            paths = [*dict.fromkeys(named)] or [start]
            parts = [files.judge(family, path) for path in paths]
            if family == "edit" and border is not None:
                parts += [
                    self.access.build_border_refusal(path)
                    for path in paths
                    if not border.may_write(find_real_path(path))
                ]
            if name.lower().startswith("read"):  # it may know wildcards
                wild = (each for path in paths if has_wildcard(path) for each in match_files(path))
                parts += files.judge_unnamed("", wild)
            if name.lower() in _SEARCHING_TOOLS:
                chosen = next((arguments[key] for key in _GLOBS if arguments.get(key)), None)
                glob = chosen if isinstance(chosen, str) else None
                every = bool(self.access.reading_rules)
                searched = (
                    each for path in paths for each in find_searched_files(path, glob, every=every)
                )
                parts += files.judge_unnamed("", searched)
            return parts
        return [self._judge_other(name, family, arguments)]

    def _judge_other(self, name: str, family: str, arguments: Mapping[str, Any]) -> Ruling:
        if self.access.mode is PermissionMode.BYPASS:
            return Ruling("allow")
        address = arguments.get("url")
        host = _find_host(address) if isinstance(address, str) else ""
        fetches, harmless = family == "webfetch", name.lower() in _HARMLESS_TOOLS
        searches = family == "websearch"

        def find(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            if fetches:
                mine = (rule for rule in rules if rule.tool == family)
                return next((rule for rule in mine if is_domain_covered(rule, host)), None)
            if searches:
                return next((rule for rule in rules if rule.tool == family and rule.is_open), None)
            if family == "skill":
                skill = str(arguments.get("skill", ""))
                return next((rule for rule in rules if is_skill_covered(rule, skill)), None)
            return next((rule for rule in rules if is_tool_covered(rule, name)), None)

        asks = family == "skill" and find(self.access.rules.ask) is not None
        if harmless and find(self.access.rules.deny) is None and not asks:
            return READING
        why = f"fetches from {host}" if fetches else f"{name} is not known to only read"
        offered: tuple[str, ...] = (name,)
        if fetches:
            offered = (f"WebFetch(domain:{host})",) if host else ()
        elif searches:
            why, offered = "searches the web", ("WebSearch",)
        elif "__" in name and not name.startswith("mcp__"):
            offered = (f"mcp__{name}",)
        return self.access.decide(
            find,
            why,
            lambda: Ruling("ask", why, offered=offered),
            changes=not (fetches or searches),
        )


def find_command(arguments: Mapping[str, Any]) -> str | None:
    """Return the command line of a call; a list of words is one as a shell would read it."""
    for key in ("command", "cmd", "script"):
        words = arguments.get(key)
        if isinstance(words, str):
            return words
        if isinstance(words, list | tuple) and all(isinstance(part, str) for part in words):
            return shlex.join(words)
    return None


def list_call_paths(name: str, family: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths a call of a file tool names, as it names them."""
    paths = []
    if family == "edit":
        for call_file in parse_named_call(name, dict(arguments)):
            paths += [call_file.path, *([call_file.source] if call_file.source else [])]
    for key in _READ_PATHS:
        value = arguments.get(key)
        many = value if isinstance(value, list | tuple) else [value]
        paths += [path for path in many if isinstance(path, str) and path]
    chosen = arguments.get("glob") or arguments.get("include")
    if family == "read" and isinstance(chosen, str) and "*" not in chosen:
        paths.append(posixpath.join(*(paths[:1] or ["."]), chosen.lstrip("/")))
    pattern = arguments.get("pattern")
    if family == "read" and isinstance(pattern, str) and name.lower() in {"glob", "find"}:
        start = pattern.split("*")[0].rpartition("/")[0]
        if pattern.startswith(("/", "~", "..")) or "../" in pattern:
            paths.append(start or "/")
    return paths


def _find_host(address: str) -> str:
    """Return the host that a tool connects to; empty where there is none."""
    try:
        return parse_address(address).host
    except InvalidAddress:
        return ""
