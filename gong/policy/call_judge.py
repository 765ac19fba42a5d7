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
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tape.files.calls import parse_named_call

from ..shell.expansion import Argument
from .commands.configured import find_extending_file
from .commands.effects import build_run_action, is_guarded
from .commands.finding import CommandFinding, DangerLevel, clip_text
from .commands.invocation import PathContext, is_inside
from .commands.judge import judge_command_line
from .files.file_trees import may_hold_credentials
from .files.links import find_followed_paths, find_linked_paths
from .files.named_paths import list_meant_paths
from .files.own_files import OWN_REASON, find_own_changes, find_own_command, is_own_file
from .files.real_paths import (
    LinkResolver,
    find_real_path,
    has_wildcard,
    list_names,
    match_files,
)
from .files.repositories import is_in_other_repository
from .files.searched_files import find_searched_files, find_unnamed_files, list_copied_files
from .modes import PermissionMode
from .refusals import Locale, format_danger, format_refusal
from .rules import (
    PermissionRule,
    RuleSet,
    build_action_rule,
    build_path_rule,
    find_family,
    find_touching_rule,
    is_action_covered,
    is_domain_covered,
    is_line_covered,
    is_path_covered,
    is_skill_covered,
    is_tool_covered,
)
from .ruling import READING, Ruling, choose_strictest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..git_programs import GitProgram
    from .commands.analysis import CommandAnalysis
    from .commands.invocation import Invocation
    from .files.tracked_files import ListChanged

    FindRule = Callable[[Sequence[PermissionRule]], PermissionRule | None]


_HARMLESS_TOOLS = {"tape_search", "tape_read", "compact", "todo", "todo_write", "todowrite"}
_HARMLESS_TOOLS |= {
    "bash_output",
    "kill_shell",
    "taskstop",
    "update_plan",
    "plan",
    "ask",
    "ask_user",
    "enter_plan_mode",
    "exit_plan_mode",
    "taskoutput",
    "structured_output",
    *("task", "spawn_agent", "send_input", "wait", "close_agent"),
    "skill",
}
"""Tools that change nothing but the session itself."""
_READ_PATHS: tuple[str, ...] = (
    "path",
    "file_path",
    "absolute_path",
    "dir_path",
    "directory",
    "filePath",
    "paths",
)
_READ_PATHS += ("file_paths", "target_file", "root", "folder", "notebook_path", "dir", "file")


_SEARCHING_TOOLS = {"grep", "grep_search", "search_file_content", "grep_files", "search_files"}
"""Tools that show lines of files which the call does not name."""
_GLOBS = ("glob", "glob_filter", "include")
_MAX_FILES = 16
"""So many files that a call does not name are judged: more would be no question to read."""


@dataclass(frozen=True, slots=True)
class CallJudge:
    """Judges calls by one state of mode and rules."""

    places: PathContext
    """The folders that calls are judged against."""
    mode: PermissionMode
    rules: RuleSet
    allow: tuple[PermissionRule, ...]
    """Those of `rules`, and more: of the session, or offered."""
    granted: tuple[PermissionRule, ...] = ()
    """Which of them a person allowed for this session."""
    locale: Locale = "en"
    own_folders: tuple[str, ...] = ()
    """Where gong keeps its settings, keys, answers about trust, and tapes."""
    find_git_programs: Callable[[], Sequence[GitProgram]] = lambda: ()
    """Returns the programs that the repository names for git and that the user did not trust."""
    list_changed: ListChanged = lambda _top, _words: None
    """Tells which files of a repository a diff of git shows."""
    commands: dict[str, CommandAnalysis] = field(default_factory=dict)
    """Command lines as they were analysed; kept by who asks twice, for rules change nothing."""
    unnamed: dict[str, list[str]] = field(default_factory=dict)
    """What was found of files that a call reads unnamed, by the call; kept by who asks twice."""

    def judge(self, name: str, arguments: Mapping[str, Any]) -> list[Ruling]:
        """Return the decision about each part of a call; none where it has none that matters."""
        family, line = find_family(name), find_command(arguments)
        if family == "bash" and line is not None:
            return self._judge_command(line)
        if family in {"read", "edit"}:
            start, home = self.places.start, self.places.home
            named = [
                place
                for one in _list_call_paths(name, family, arguments)
                for place in list_meant_paths(one, start, home)
            ]
            paths = [*dict.fromkeys(named)] or [start]
            parts = [self._judge_file(family, one) for one in paths]
            if name.lower().startswith("read"):  # it may know wildcards
                wild = (each for one in paths if has_wildcard(one) for each in match_files(one))
                parts += self._judge_unnamed_files("", wild)
            if name.lower() in _SEARCHING_TOOLS:
                chosen = next((arguments[one] for one in _GLOBS if arguments.get(one)), None)
                glob = chosen if isinstance(chosen, str) else None
                every = bool(self._reading_rules)
                found = (
                    each for one in paths for each in find_searched_files(one, glob, every=every)
                )
                parts += self._judge_unnamed_files("", found)
            return parts
        return [self._judge_other(name, family, arguments)]

    def _decide(
        self, find: FindRule, why: str, by_mode: Callable[[], Ruling], *, changes: bool
    ) -> Ruling:
        """Return the first decision of the table, after the floor; `by_mode` is its last line."""
        rule = find(self.rules.deny)
        if rule is not None:
            return self._build_denial(rule)
        if changes and self.mode is PermissionMode.PLAN:
            return self._refuse("plan", why)
        rule = find(self.rules.ask)
        if rule is not None:
            return _build_question(rule)
        rule = find(self.allow)
        return (
            self._build_allowance(rule) if rule is not None else self._decide_unnamed(why, by_mode)
        )

    def _decide_unnamed(self, why: str, by_mode: Callable[[], Ruling]) -> Ruling:
        """Decide about what no rule names."""
        if self.mode is PermissionMode.LOCKED:
            return self._refuse("locked", why)
        return Ruling("allow") if self.mode is PermissionMode.DONT_ASK else by_mode()

    # commands

    def _judge_command(self, line: str) -> list[Ruling]:
        if line not in self.commands:
            self.commands[line] = judge_command_line(line, self.places)
        judged = self.commands[line]
        floor = self._judge_danger(judged)
        uses = [use for each in judged.uses.values() for use in each]
        if floor is not None and floor.decision == "deny":
            # who allows it once after reading it must know of all that it does
            more = self._judge_parts(line, judged, uses) if self._has_person else []
            return [floor, *more]
        own = self._judge_own_changes(judged.actions, uses)
        if self.mode is PermissionMode.BYPASS:
            roots = self.places.roots
            linked = find_linked_paths(uses, judged.inputs, roots)
            followed = find_followed_paths(uses, roots, deep=True)
            return [*own, *self._judge_linked_secrets(chain(linked, followed))]
        asked = [] if floor is None else [floor]
        return [*asked, *self._judge_parts(line, judged, uses), *own]

    def _judge_parts(
        self, line: str, judged: CommandAnalysis, uses: Sequence[Invocation]
    ) -> list[Ruling]:
        """Judge the parts of a command line by rules and mode."""
        more = (*self._list_other_repositories(judged), *_list_configured_uses(judged))
        actions = tuple(dict.fromkeys((*judged.actions, *more)))
        programs = [*self._list_git_programs(judged)]
        decided = self._judge_line(line, judged, (*actions, *programs))
        if decided is not None and decided.decision != "allow":
            return [decided]
        if decided is not None:
            parts = [decided]
        elif self.mode is PermissionMode.LOCKED and not actions:
            parts = [self._judge_locked_readers(judged)]
        else:
            parts = [self._judge_action(one) for one in actions]
        parts += (self._judge_git_program(one) for one in programs)
        if judged.removes:  # in a text that no rule shows
            parts = [one._replace(offered=(), for_good=False) for one in parts]
        is_open = any(one.tool == "bash" and one.is_open for one in self.allow)
        if is_open and not any(one.tool == "read" for one in (*self.rules.deny, *self.rules.ask)):
            return parts
        deep = self.mode is PermissionMode.DONT_ASK  # there no question stops at the link
        unnamed = find_unnamed_files(
            uses,
            judged.inputs,
            self.places.roots,
            self.list_changed,
            every=bool(self._reading_rules),
            deep=deep,
        )
        more_parts = self._judge_unnamed_files(line, unnamed)
        return [*parts, *(one for one in more_parts if not is_open or one.by == "rule")]

    def _judge_own_changes(
        self, actions: Sequence[CommandFinding], uses: Sequence[Invocation]
    ) -> list[Ruling]:
        """Ask about what changes gong's own rights or records, whatever the mode."""
        changed = dict.fromkeys(find_own_changes(actions, uses, self.own_folders))
        parts = [self._judge_own_file(path) for path in islice(changed, _MAX_FILES)]
        if command := find_own_command(actions, uses):
            parts.append(self._ask_about_own(f"{clip_text(command)}: changes {OWN_REASON}"))
        return parts

    def _judge_own_file(self, path: str) -> Ruling:
        """Ask about a change of one of gong's own files, unless a rule names this very file."""
        denied = (one for one in self.rules.deny if one.tool == "edit")
        if rule := next((one for one in denied if self._is_covered(one, path)), None):
            return self._build_denial(rule)
        for rule in self.allow:
            names_it = "(" in rule.text and not set(rule.text).intersection("*?[")
            if rule.tool == "edit" and names_it and self._is_covered(rule, path, below=False):
                return self._build_allowance(rule)
        return self._ask_about_own(f"edits {path}: {OWN_REASON}")

    def _ask_about_own(self, why: str) -> Ruling:
        if self.mode in {PermissionMode.PLAN, PermissionMode.LOCKED}:
            return self._refuse(self.mode, why)
        return Ruling("ask", why, by="own", for_good=False)

    def _judge_linked_secrets(self, paths: Iterable[str]) -> list[Ruling]:
        """Refuse private keys behind links, where nobody is asked about what is read."""
        resolve = LinkResolver().resolve
        secrets = (path for path in paths if self._is_secret(resolve(path)))
        return [self._judge_file("read", path) for path in islice(secrets, 1)]

    def _list_other_repositories(self, judged: CommandAnalysis) -> Iterator[CommandFinding]:
        """Yield an action for each use of git in another repository, which no word of it shows."""
        for command, uses in judged.uses.items():
            for use in uses:
                if use.name == "git" and is_in_other_repository(use, self.places.start):
                    reason = "uses git in another repository, whose settings may run programs"
                    yield CommandFinding(
                        DangerLevel.ASK, command.source, reason, hidden=True, reads=True
                    )

    def _list_git_programs(self, judged: CommandAnalysis) -> Iterator[CommandFinding]:
        """Yield an action for each use of git that may run programs which nobody trusted."""
        commands = [
            command
            for command, uses in judged.uses.items()
            if any(one.name == "git" for one in uses)
        ]
        if not commands or not (programs := self.find_git_programs()):
            return
        names = clip_text(", ".join(key for key, _ in programs))
        reason = f"git runs or reads what the repository's settings name ({names}): see gong trust"
        for command in commands:
            yield CommandFinding(DangerLevel.ASK, command.source, reason, hidden=True)

    def _judge_git_program(self, action: CommandFinding) -> Ruling:
        """Judge git where it may run what nobody trusted: no rule shows what that would be."""
        why = action.description
        rule = next((one for one in self.allow if one.tool == "bash" and one.is_open), None)
        if rule is not None:
            return self._build_allowance(rule)
        return self._decide_unnamed(why, lambda: Ruling("ask", why, for_good=False))

    def _judge_danger(self, judged: CommandAnalysis) -> Ruling | None:
        """Return what the floor says: nothing, a refusal, or a question that no rule answers."""
        dangers = [one for one in judged.findings if one.level is DangerLevel.DANGEROUS]
        if not dangers:
            return None
        every = tuple(_list_dangers(dangers))
        if all(one.asks for one in dangers) and self._has_person:
            return Ruling("ask", "; ".join(every), by="danger", for_good=False, reasons=every)
        lines = _list_dangers([one for one in dangers if not one.asks] or dangers)
        text = format_danger(lines, self.locale)
        return Ruling("deny", "; ".join(lines), by="danger", text=text, reasons=every)

    @property
    def _has_person(self) -> bool:
        return self.mode in {PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS}

    def _judge_line(
        self, line: str, judged: CommandAnalysis, actions: Sequence[CommandFinding]
    ) -> Ruling | None:
        """Return what is decided about a command line as a whole, None where its parts decide."""
        uses = [use for each in judged.uses.values() for use in each]

        def find_any(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            return find_touching_rule(rules, line, uses) or self._find_path_rule(rules, judged)

        changing = next((one for one in actions if not one.reads), None)
        rule = find_any(self.rules.deny)
        if rule is not None:
            return self._build_denial(rule)
        if changing is not None and self.mode is PermissionMode.PLAN:
            return self._refuse("plan", changing.description)
        rule = find_any(self.rules.ask)
        if rule is not None:
            return _build_question(rule)
        # No rule denies or asks: the whole line may be allowed, else its parts decide
        whole = next((one for one in self.allow if is_line_covered(one, line)), None)
        if whole is not None:
            return self._build_allowance(whole)
        if self.mode is PermissionMode.DONT_ASK:
            return self._refuse_unclear(actions)
        return None

    def _refuse_unclear(self, actions: Sequence[CommandFinding]) -> Ruling | None:
        """Refuse what cannot be read, where it could be what a rule denies."""
        rule = next((one for one in self.rules.deny if one.tool in {"bash", "edit", "read"}), None)
        unclear = next((one for one in actions if one.kind == "other" or one.hidden), None)
        if rule is None or unclear is None:
            return None
        why = f"{unclear.part}: cannot be compared with rules that deny"
        text = format_refusal("headless", self.locale, why=why)
        return Ruling("deny", why, rule.text, "rule", text=text)

    def _judge_locked_readers(self, judged: CommandAnalysis) -> Ruling:
        """Judge a command line that only reads in locked mode: a rule has to name each program."""
        uses = [use for each in judged.uses.values() for use in each]
        rules = [find_touching_rule(self.allow, "", (use,)) for use in uses]
        if rules and rules[0] is not None and all(rules):
            return self._build_allowance(rules[0])
        return self._refuse("locked", "it is a command")

    def _find_path_rule(
        self, rules: Sequence[PermissionRule], judged: CommandAnalysis
    ) -> PermissionRule | None:
        """Return a rule about files that a command line writes, or names."""
        written = {path for one in judged.actions for path in (*one.paths, *one.edits)}
        named = {
            path
            for uses in judged.uses.values()
            for use in uses
            for one in (*use.arguments, *use.read)
            if one.text and one.text[:1] != "-"
            for path in use.places.paths(one)
        }
        for rule in rules:
            paths = {"edit": written, "read": named}.get(rule.tool, ())
            if not rule.is_open and any(self._is_covered(rule, one) for one in paths):
                return rule
        return None

    def _is_covered(self, rule: PermissionRule, path: str, *, below: bool = True) -> bool:
        return is_path_covered(rule, path, self.places.start, self.places.home, below=below)

    def _judge_action(self, action: CommandFinding) -> Ruling:
        """Judge a part of a command, after the rules that deny and ask."""
        why = action.description
        if action.kind == "write":
            # A redirection is an edit of its files
            rule = next((one for one in self.allow if one.tool == "bash" and one.is_open), None)
            if rule is not None:
                return self._build_allowance(rule)
            if action.hidden:
                return self._decide_unnamed(why, lambda: Ruling("ask", why))
            parts = [self._judge_file("edit", path) for path in action.paths]
            return choose_strictest(parts)
        rule = is_action_covered(self.allow, action)
        if rule is not None:
            return self._build_allowance(rule)

        def ask() -> Ruling:
            if self.mode is PermissionMode.ACCEPT_EDITS and self._is_plain_change(action):
                return Ruling("allow")
            if action.removes:
                return Ruling("ask", why, for_good=False)
            rule = build_action_rule(action)
            return Ruling("ask", why, offered=(rule,) if rule else ())

        return self._decide_unnamed(why, ask)

    # files

    def _judge_file(self, family: str, path: str) -> Ruling:
        """Judge a file that is read or edited; a link is judged by where it leads, too."""
        names = list_names(path, self._named_folders)
        both = tuple(dict.fromkeys((path, *names)))
        floor = self._find_file_danger(family, both)
        if floor:
            text = format_danger([f"{path}: {floor}"], self.locale)
            return Ruling("deny", f"{path}: {floor}", by="danger", text=text)
        if family == "edit" and is_own_file(path, self.own_folders):
            return self._judge_own_file(path)
        if self.mode is PermissionMode.BYPASS:
            return Ruling("allow")
        leads = "" if path in names else f" ({names[0]})"
        what = f"{'edits' if family == 'edit' else 'reads'} {path}{leads}"

        def find(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            mine = (one for one in rules if one.tool == family)
            if rules is self.allow:  # a link in an allowed folder allows nothing elsewhere
                allows = partial(self._is_covered, below=False)
                return next((one for one in mine if any(allows(one, p) for p in names)), None)
            return next((one for one in mine if any(self._is_covered(one, p) for p in both)), None)

        def ask() -> Ruling:
            return self._ask_about_file(family, what, both, build_path_rule(family, names[0]))

        return self._decide(find, what, ask, changes=family == "edit")

    @property
    def _named_folders(self) -> tuple[str, ...]:
        return (self.places.start, self.places.home, *self.places.roots)

    def _judge_unnamed_files(self, call: str, paths: Iterable[str]) -> list[Ruling]:
        """Judge files that a call reads but does not name: sensitive ones, and those of rules."""
        if self.mode is PermissionMode.BYPASS:
            return []
        if call not in self.unnamed:
            self.unnamed[call] = [*islice(self._choose_unnamed_files(paths), _MAX_FILES)]
        parts = [self._judge_file("read", path) for path in self.unnamed[call]]
        return [one for one in parts if one != READING]

    @property
    def _reading_rules(self) -> list[PermissionRule]:
        """Rules that ask about files that are read, or deny it: each name may be one of theirs."""
        asking = (*self.rules.deny, *self.rules.ask)
        return [one for one in asking if one.tool == "read" and not one.is_open]

    def _choose_unnamed_files(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the files that have to be judged; the others may be read unasked."""
        rules = self._reading_rules
        resolve = LinkResolver().resolve
        for path in dict.fromkeys(paths):
            leads = resolve(path)
            both = (path,) if leads == path else (path, leads)
            is_named = any(self._is_covered(rule, one) for rule in rules for one in both)
            if is_named or self._is_asked_about(both, leads):
                yield path

    def _is_asked_about(self, both: Sequence[str], leads: str) -> bool:
        """Whether the mode asks about a file, or denies it: a quick answer for one of thousands."""
        asks = self.mode is not PermissionMode.DONT_ASK
        if any(map(may_hold_credentials, both)) and any(
            map(self._is_sensitive if asks else self._is_secret, both)
        ):
            return True
        return asks and len(both) > 1 and not self._may_read(leads)

    def _is_inside_roots(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.places.roots)

    def _find_file_danger(self, family: str, both: Sequence[str]) -> str:
        """Return why the floor refuses a file; empty where it does not."""
        arguments = [Argument(one) for one in both]
        if family == "edit" and any(map(self.places.is_protected, arguments)):
            return "writes to the system, a device, or what decides who may log in"
        unread = self.mode in {PermissionMode.BYPASS, PermissionMode.DONT_ASK}
        if unread and any(map(self.places.is_secret, arguments)):
            return "reads a private key or password"
        return ""

    def _ask_about_file(self, family: str, what: str, both: Sequence[str], rule: str) -> Ruling:
        """Decide by the modes in which a person sits."""
        if family == "read" and all(map(self.places.is_public, both)):
            return READING
        later = next(filter(None, map(self.places.find_later_reason, both)), "")
        if family == "edit" and later:
            return Ruling("ask", f"{what}: {later}", offered=(rule,))
        if not all(map(self._is_inside_roots, both)):
            return Ruling("ask", f"{what}, outside of the folders", offered=(rule,))
        if any(map(self._is_sensitive, both)):
            return Ruling("ask", f"{what}, a sensitive file", offered=(rule,))
        accepts = self.mode is PermissionMode.ACCEPT_EDITS and all(map(self._is_plain_edit, both))
        if family == "read":
            return READING
        return Ruling("allow") if accepts else Ruling("ask", what, offered=(rule,))

    def _is_sensitive(self, path: str) -> bool:
        argument = Argument(path)
        return self.places.is_sensitive(argument) or self.places.is_secret(argument)

    def _may_read(self, path: str) -> bool:
        return self._is_inside_roots(path) or self.places.is_public(path)

    def _is_secret(self, path: str) -> bool:
        return self.places.is_secret(Argument(path))

    def _is_plain_change(self, action: CommandFinding) -> bool:
        """Whether accept_edits may run a plain command for files unasked."""
        edits: list[str] | None = [*action.edits]
        if edits and action.words[0] in {"cp", "mv"}:
            edits = list_copied_files(edits)
        if not edits:
            return False
        both = {each for one in (*action.edits, *edits) for each in (one, find_real_path(one))}
        return all(map(self._is_plain_edit, both))

    def _is_plain_edit(self, path: str) -> bool:
        """Whether accept_edits may edit a file unasked."""
        inside = self._is_inside_roots(path)
        return inside and not is_guarded(Argument(path), self.places)

    # other tools

    def _judge_other(self, name: str, family: str, arguments: Mapping[str, Any]) -> Ruling:
        if self.mode is PermissionMode.BYPASS:
            return Ruling("allow")
        address = arguments.get("url")
        host = _find_host(address) if isinstance(address, str) else ""
        fetches, harmless = family == "webfetch", name.lower() in _HARMLESS_TOOLS

        def find(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            if fetches:
                mine = (one for one in rules if one.tool == family)
                return next((one for one in mine if is_domain_covered(one, host)), None)
            if family == "skill":
                skill = str(arguments.get("skill", ""))
                return next((one for one in rules if is_skill_covered(one, skill)), None)
            return next((one for one in rules if is_tool_covered(one, name)), None)

        asks = family == "skill" and find(self.rules.ask) is not None
        if harmless and find(self.rules.deny) is None and not asks:
            return READING
        why = f"fetches from {host}" if fetches else f"{name} is not known to only read"
        offered: tuple[str, ...] = (name,)
        if fetches:
            offered = (f"WebFetch(domain:{host})",) if host else ()
        elif "__" in name and not name.startswith("mcp__"):
            offered = (f"mcp__{name}",)
        return self._decide(
            find, why, lambda: Ruling("ask", why, offered=offered), changes=not fetches
        )

    # what all have in common

    def _build_allowance(self, rule: PermissionRule) -> Ruling:
        by = "session" if rule in self.granted else "rule"
        return Ruling("allow", f"allowed by {rule.text}", rule.text, by)

    def _build_denial(self, rule: PermissionRule) -> Ruling:
        text = format_refusal("rule", self.locale, rule=rule.text)
        return Ruling("deny", f"the rule {rule.text} denies it", rule.text, "rule", text=text)

    def _refuse(self, kind: str, why: str) -> Ruling:
        return Ruling("deny", why, text=format_refusal(kind, self.locale, why=why))


def _list_configured_uses(judged: CommandAnalysis) -> Iterator[CommandFinding]:
    """Yield an action for each reading command that a file of its folder makes do more."""
    for command, uses in judged.uses.items():
        for use in uses:
            file = find_extending_file(use)
            if file is not None:
                reason = f"{file} makes {use.name} do more than read"
                yield build_run_action(Argument(use.name), use, (), command.source, reason)


def _build_question(rule: PermissionRule) -> Ruling:
    return Ruling("ask", f"the rule {rule.text} asks", rule.text, "rule")


def _list_dangers(dangers: Sequence[CommandFinding]) -> list[str]:
    """Return what is dangerous and why, each once."""
    return list(dict.fromkeys(one.description for one in dangers))


def find_command(arguments: Mapping[str, Any]) -> str | None:
    """Return the command line of a call; a list of words is one as a shell would read it."""
    for key in ("command", "cmd", "script"):
        given = arguments.get(key)
        if isinstance(given, str):
            return given
        if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
            return shlex.join(given)
    return None


def _list_call_paths(name: str, family: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths a call of a file tool names, as it names them."""
    found = []
    if family == "edit":
        for one in parse_named_call(name, dict(arguments)):
            found += [one.path, *([one.source] if one.source else [])]
    for key in _READ_PATHS:
        given = arguments.get(key)
        many = given if isinstance(given, list | tuple) else [given]
        found += [one for one in many if isinstance(one, str) and one]
    chosen = arguments.get("glob") or arguments.get("include")
    if family == "read" and isinstance(chosen, str) and "*" not in chosen:
        found.append(posixpath.join(*(found[:1] or ["."]), chosen.lstrip("/")))
    pattern = arguments.get("pattern")
    if family == "read" and isinstance(pattern, str) and name.lower() in {"glob", "find"}:
        start = pattern.split("*")[0].rpartition("/")[0]
        if pattern.startswith(("/", "~", "..")) or "../" in pattern:
            found.append(start or "/")
    return found


def _find_host(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
