"""What rules and mode say about a command line: its dangers, the whole line, each of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..shell.expansion import Argument
from .commands.configured import find_extending_file
from .commands.effects import build_run_action
from .commands.finding import CommandFinding, DangerLevel, clip_text
from .commands.judge import judge_command_line
from .file_judge import MAX_FILES
from .files.links import find_followed_paths, find_linked_paths
from .files.own_files import OWN_REASON, find_own_changes, find_own_command
from .files.repositories import is_in_other_repository
from .files.searched_files import find_unnamed_files
from .modes import PermissionMode
from .refusals import format_danger, format_refusal
from .rules import (
    PermissionRule,
    build_action_rule,
    find_touching_rule,
    is_action_covered,
    is_line_covered,
)
from .ruling import COVERED, Ruling, choose_strictest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..git_programs import GitProgram
    from .access import AccessRules
    from .commands.analysis import CommandAnalysis
    from .commands.invocation import Invocation, PathContext
    from .file_judge import FileJudge
    from .files.tracked_files import ListChanged


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Judges command lines by one state of mode and rules."""

    access: AccessRules
    places: PathContext
    """The folders that calls are judged against."""
    files: FileJudge
    find_git_programs: Callable[[], Sequence[GitProgram]] = lambda: ()
    """Returns the programs that the repository names for git and that the user did not trust."""
    list_changed: ListChanged = lambda _top, _words: None
    """Tells which files of a repository a diff of git shows."""
    commands: dict[str, CommandAnalysis] = field(default_factory=dict)
    """Command lines as they were analysed; kept by who asks twice, for rules change nothing."""

    def judge(self, line: str) -> list[Ruling]:
        """Return the decision about each part of a command line; none if it only reads."""
        if line not in self.commands:
            self.commands[line] = judge_command_line(line, self.places)
        judged = self.commands[line]
        floor = self._judge_danger(judged)
        uses = [use for each in judged.uses.values() for use in each]
        if floor is not None and floor.decision == "deny":
            # who allows it once after reading it must know of all that it does
            more = self._judge_parts(line, judged, uses) if self.access.has_person else []
            return [floor, *more]
        own = self._judge_own_changes(judged.actions, uses)
        if self.access.mode is PermissionMode.BYPASS:
            roots = self.places.roots
            linked = find_linked_paths(uses, judged.inputs, roots)
            followed = find_followed_paths(uses, roots, deep=True)
            return [*own, *self.files.judge_linked_secrets(chain(linked, followed))]
        dangers = [] if floor is None else [floor]
        return [*dangers, *self._judge_parts(line, judged, uses), *own]

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
        elif self.access.mode is PermissionMode.LOCKED and not actions:
            parts = [self._judge_locked_readers(judged)]
        else:
            parts = [self._judge_action(action) for action in actions]
        parts += (self._judge_git_program(program) for program in programs)
        if judged.removes:  # in a text that no rule shows
            parts = [part._replace(offered=(), can_have_rule=False) for part in parts]
        is_open = self.access.find_open_rule("bash") is not None
        rules = self.access.rules
        if is_open and not any(rule.tool == "read" for rule in (*rules.deny, *rules.ask)):
            return parts
        deep = self.access.mode is PermissionMode.DONT_ASK  # there no question stops at the link
        unnamed = find_unnamed_files(
            uses,
            judged.inputs,
            self.places.roots,
            self.list_changed,
            every=bool(self.access.reading_rules),
            deep=deep,
        )
        more_parts = self.files.judge_unnamed(line, unnamed)
        return [*parts, *(part for part in more_parts if not is_open or part.by == "rule")]

    def _judge_own_changes(
        self, actions: Sequence[CommandFinding], uses: Sequence[Invocation]
    ) -> list[Ruling]:
        """Ask about what changes gong's own rights or records, whatever the mode."""
        changed = dict.fromkeys(find_own_changes(actions, uses, self.files.own_folders))
        parts = [self.files.judge_own_file(path) for path in islice(changed, MAX_FILES)]
        if command := find_own_command(actions, uses):
            parts.append(self.files.ask_about_own(f"{clip_text(command)}: changes {OWN_REASON}"))
        return parts

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
            if any(invocation.name == "git" for invocation in uses)
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
        rule = self.access.find_open_rule("bash")
        if rule is not None:
            return self.access.build_allowance(rule)
        ruling = COVERED if self.access.relaxes else Ruling("ask", why, can_have_rule=False)
        return self.access.decide_unnamed(why, lambda: ruling)

    def _judge_danger(self, judged: CommandAnalysis) -> Ruling | None:
        """Return what the floor says: nothing, a refusal, or a question that no rule answers."""
        dangers = [finding for finding in judged.findings if finding.level is DangerLevel.DANGEROUS]
        if not dangers:
            return None
        every = tuple(_list_dangers(dangers))
        if all(finding.asks for finding in dangers) and self.access.has_person:
            return Ruling("ask", "; ".join(every), by="danger", can_have_rule=False, reasons=every)
        lines = _list_dangers([finding for finding in dangers if not finding.asks] or dangers)
        text = format_danger(lines, self.access.locale)
        return Ruling("deny", "; ".join(lines), by="danger", text=text, reasons=every)

    def _judge_line(
        self, line: str, judged: CommandAnalysis, actions: Sequence[CommandFinding]
    ) -> Ruling | None:
        """Return what is decided about a command line as a whole, None where its parts decide."""
        uses = [use for each in judged.uses.values() for use in each]

        def find_any(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            return find_touching_rule(rules, line, uses) or self._find_path_rule(rules, judged)

        changing = next((action for action in actions if not action.reads), None)
        rule = find_any(self.access.rules.deny)
        if rule is not None:
            return self.access.build_denial(rule)
        if changing is not None and self.access.mode is PermissionMode.PLAN:
            return self.access.build_refusal("plan", changing.description)
        rule = find_any(self.access.rules.ask)
        if rule is not None:
            return self.access.build_question(rule)
        # No rule denies or asks: the whole line may be allowed, else its parts decide
        whole = next((rule for rule in self.access.allow if is_line_covered(rule, line)), None)
        if whole is not None:
            return self.access.build_allowance(whole)
        if self.access.mode is PermissionMode.DONT_ASK:
            return self._refuse_unclear(actions)
        return None

    def _refuse_unclear(self, actions: Sequence[CommandFinding]) -> Ruling | None:
        """Refuse what cannot be read, where it could be what a rule denies."""
        rule = next(filter(_is_about_commands, self.access.rules.deny), None)
        unclear = next(filter(_is_unclear, actions), None)
        if rule is None or unclear is None:
            return None
        why = f"{unclear.part}: cannot be compared with rules that deny"
        text = format_refusal("headless", self.access.locale, why=why)
        return Ruling("deny", why, rule.text, "rule", text=text)

    def _judge_locked_readers(self, judged: CommandAnalysis) -> Ruling:
        """Judge a command line that only reads in locked mode: a rule has to name each program."""
        uses = [use for each in judged.uses.values() for use in each]
        rules = [find_touching_rule(self.access.allow, "", (use,)) for use in uses]
        if rules and rules[0] is not None and all(rules):
            return self.access.build_allowance(rules[0])
        return self.access.build_refusal("locked", "it is a command")

    def _find_path_rule(
        self, rules: Sequence[PermissionRule], judged: CommandAnalysis
    ) -> PermissionRule | None:
        """Return a rule about files that a command line writes, or names."""
        written = {path for action in judged.actions for path in (*action.paths, *action.edits)}
        named = {
            path
            for uses in judged.uses.values()
            for use in uses
            for argument in (*use.arguments, *use.read)
            if argument.text and argument.text[:1] != "-"
            for path in use.places.paths(argument)
        }
        for rule in rules:
            paths = {"edit": written, "read": named}.get(rule.tool, ())
            if not rule.is_open and any(self.files.is_covered(rule, path) for path in paths):
                return rule
        return None

    def _judge_action(self, action: CommandFinding) -> Ruling:
        """Judge a part of a command, after the rules that deny and ask."""
        why = action.description
        if action.kind == "write":
            # A redirection is an edit of its files
            rule = self.access.find_open_rule("bash")
            if rule is not None:
                return self.access.build_allowance(rule)
            if action.hidden:
                ruling = COVERED if self._is_inside_border(action) else Ruling("ask", why)
                return self.access.decide_unnamed(why, lambda: ruling)
            parts = [self._judge_written(path) for path in action.paths]
            return choose_strictest(parts)
        rule = is_action_covered(self.access.allow, action)
        if rule is not None:
            return self.access.build_allowance(rule)

        def ask() -> Ruling:
            accepts = self.access.mode is PermissionMode.ACCEPT_EDITS
            if accepts and self.files.is_plain_change(action):
                return Ruling("allow")
            if self._is_inside_border(action):
                return COVERED
            if action.removes:
                return Ruling("ask", why, can_have_rule=False)
            rule = build_action_rule(action)
            return Ruling("ask", why, offered=(rule,) if rule else ())

        return self.access.decide_unnamed(why, ask)

    def _judge_written(self, path: str) -> Ruling:
        """Judge a file that a redirection writes: in a sandbox its border decides where."""
        ruling = self.files.judge("edit", path)
        asks = ruling.decision == "ask" and ruling.by == "mode"
        return COVERED if asks and self.files.is_inside_border((path,)) else ruling

    def _is_inside_border(self, action: CommandFinding) -> bool:
        """Whether a sandbox covers what a part of a command does.

        It does not cover reading, nor what names a file that is sensitive or that others obey, nor
        what could be what a rule denies or asks about.
        """
        if not self.access.relaxes or action.reads:
            return False
        rules = self.access.rules
        if _is_unclear(action) and any(map(_is_about_commands, (*rules.deny, *rules.ask))):
            return False
        words = (*action.words, *action.shown, *action.edits, *action.paths)
        named = (word for text in words for word in (text, text.strip("'\"")))
        inner = all(self._is_inside_border(each) for each in action.inner)
        return inner and self.files.is_inside_border(named)


def _list_configured_uses(judged: CommandAnalysis) -> Iterator[CommandFinding]:
    """Yield an action for each reading command that a file of its folder makes do more."""
    for command, uses in judged.uses.items():
        for use in uses:
            file = find_extending_file(use)
            if file is not None:
                reason = f"{file} makes {use.name} do more than read"
                yield build_run_action(Argument(use.name), use, (), command.source, reason)


def _is_unclear(action: CommandFinding) -> bool:
    """Whether no rule of words can say whether it is about this part."""
    return action.kind == "other" or action.hidden


def _is_about_commands(rule: PermissionRule) -> bool:
    """Whether a rule is about what a command could do: run, change, or read."""
    return rule.tool in {"bash", "edit", "read"}


def _list_dangers(dangers: Sequence[CommandFinding]) -> list[str]:
    """Return what is dangerous and why, each once."""
    return list(dict.fromkeys(finding.description for finding in dangers))
