"""What rules and mode say about files that a call reads or edits, named or not.

A link is judged by its own name, and by where it leads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from ..shell.expansion import Argument
from .commands.effects import is_guarded
from .commands.invocation import PathContext, is_inside
from .files.file_trees import may_hold_credentials
from .files.own_files import OWN_REASON, is_own_file
from .files.real_paths import LinkResolver, find_real_path, list_names
from .files.searched_files import list_copied_files
from .modes import PermissionMode
from .refusals import format_danger
from .rules import build_path_rule, is_path_covered
from .ruling import COVERED, READING, Ruling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .access import AccessRules
    from .commands.finding import CommandFinding
    from .rules import PermissionRule

MAX_FILES = 16
"""Maximum files that a call does not name and that are judged: no question shows more."""


@dataclass(frozen=True, slots=True)
class FileJudge:
    """Judges files by one state of mode and rules."""

    access: AccessRules
    places: PathContext
    """The folders that calls are judged against."""
    own_folders: tuple[str, ...] = ()
    """Where gong keeps its settings, keys, answers about trust, and tapes."""
    unnamed: dict[str, list[str]] = field(default_factory=dict)
    """What was found of files that a call reads unnamed, by the call; kept by who asks twice."""

    def judge(self, family: str, path: str) -> Ruling:
        """Judge a file that is read or edited; a link is judged by where it leads, too."""
        names = list_names(path, self._named_folders)
        both = tuple(dict.fromkeys((path, *names)))
        floor = self._find_file_danger(family, both)
        if floor:
            text = format_danger([f"{path}: {floor}"], self.access.locale)
            return Ruling("deny", f"{path}: {floor}", by="danger", text=text)
        if family == "edit" and is_own_file(path, self.own_folders):
            return self.judge_own_file(path)
        if self.access.mode is PermissionMode.BYPASS:
            return Ruling("allow")
        target_note = "" if path in names else f" ({names[0]})"
        what = f"{'edits' if family == 'edit' else 'reads'} {path}{target_note}"

        def find(rules: Sequence[PermissionRule]) -> PermissionRule | None:
            mine = (rule for rule in rules if rule.tool == family)
            if rules is self.access.allow:  # a link in an allowed folder allows nothing elsewhere
                allows = partial(self.is_covered, below=False)
                return next((rule for rule in mine if any(allows(rule, p) for p in names)), None)
            return next(
                (rule for rule in mine if any(self.is_covered(rule, p) for p in both)), None
            )

        def ask() -> Ruling:
            return self._ask_about_file(family, what, both, build_path_rule(family, names[0]))

        return self.access.decide(find, what, ask, changes=family == "edit")

    @property
    def _named_folders(self) -> tuple[str, ...]:
        return (self.places.start, self.places.home, *self.places.roots)

    def _find_file_danger(self, family: str, both: Sequence[str]) -> str:
        """Return why the floor refuses a file; empty where it does not."""
        arguments = [Argument(path) for path in both]
        if family == "edit" and any(map(self.places.is_protected, arguments)):
            return "writes to the system, a device, or what decides who may log in"
        unread = self.access.mode in {PermissionMode.BYPASS, PermissionMode.DONT_ASK}
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
        if family == "read":
            return READING
        accepts = self.access.mode is PermissionMode.ACCEPT_EDITS
        is_free = accepts and all(map(self._is_plain_edit, both))
        ruling = Ruling("allow") if is_free else Ruling("ask", what, offered=(rule,))
        return COVERED if self.is_inside_border(both) else ruling

    def is_inside_border(self, paths: Iterable[str]) -> bool:
        """Whether a sandbox covers a change of files, so that nobody need be asked about it.

        It covers no file that is sensitive, or that other programs obey.
        """
        if not self.access.relaxes:
            return False
        return not any(is_guarded(Argument(path), self.places) for path in paths)

    def judge_unnamed(self, call: str, paths: Iterable[str]) -> list[Ruling]:
        """Judge files that a call reads but does not name: sensitive ones, and those of rules."""
        if self.access.mode is PermissionMode.BYPASS:
            return []
        if call not in self.unnamed:
            self.unnamed[call] = [*islice(self._choose_unnamed_files(paths), MAX_FILES)]
        parts = [self.judge("read", path) for path in self.unnamed[call]]
        return [part for part in parts if part != READING]

    def _choose_unnamed_files(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the files that have to be judged; the others may be read unasked."""
        rules = self.access.reading_rules
        resolve = LinkResolver().resolve
        for path in dict.fromkeys(paths):
            target = resolve(path)
            both = (path,) if target == path else (path, target)
            is_named = any(self.is_covered(rule, path) for rule in rules for path in both)
            if is_named or self._is_asked_about(both, target):
                yield path

    def _is_asked_about(self, both: Sequence[str], target: str) -> bool:
        """Whether the mode asks about a file, or denies it: a quick answer for one of thousands."""
        asks = self.access.mode is not PermissionMode.DONT_ASK
        if any(map(may_hold_credentials, both)) and any(
            map(self._is_sensitive if asks else self._is_secret, both)
        ):
            return True
        return asks and len(both) > 1 and not self._may_read(target)

    def judge_linked_secrets(self, paths: Iterable[str]) -> list[Ruling]:
        """Refuse private keys behind links, where nobody is asked about what is read."""
        resolve = LinkResolver().resolve
        secrets = (path for path in paths if self._is_secret(resolve(path)))
        return [self.judge("read", path) for path in islice(secrets, 1)]

    def judge_own_file(self, path: str) -> Ruling:
        """Ask about a change of one of gong's own files, unless a rule names this very file."""
        denied = (rule for rule in self.access.rules.deny if rule.tool == "edit")
        if rule := next((rule for rule in denied if self.is_covered(rule, path)), None):
            return self.access.build_denial(rule)
        for rule in self.access.allow:
            names_it = "(" in rule.text and not set(rule.text).intersection("*?[")
            if rule.tool == "edit" and names_it and self.is_covered(rule, path, below=False):
                return self.access.build_allowance(rule)
        return self.ask_about_own(f"edits {path}: {OWN_REASON}")

    def ask_about_own(self, why: str) -> Ruling:
        """Ask about what changes gong's own files, or refuse it in modes that change nothing."""
        if self.access.mode in {PermissionMode.PLAN, PermissionMode.LOCKED}:
            return self.access.build_refusal(self.access.mode, why)
        return Ruling("ask", why, by="own", can_have_rule=False)

    def is_plain_change(self, action: CommandFinding) -> bool:
        """Whether accept_edits may run a plain command for files unasked."""
        edits: list[str] | None = [*action.edits]
        if edits and action.words[0] in {"cp", "mv"}:
            edits = list_copied_files(edits)
        if not edits:
            return False
        both = {each for path in (*action.edits, *edits) for each in (path, find_real_path(path))}
        return all(map(self._is_plain_edit, both))

    def _is_plain_edit(self, path: str) -> bool:
        """Whether accept_edits may edit a file unasked."""
        inside = self._is_inside_roots(path)
        return inside and not is_guarded(Argument(path), self.places)

    def is_covered(self, rule: PermissionRule, path: str, *, below: bool = True) -> bool:
        """Whether a rule is about a path; with `below` also if it names a folder above it."""
        return is_path_covered(rule, path, self.places.start, self.places.home, below=below)

    def _is_inside_roots(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.places.roots)

    def _is_sensitive(self, path: str) -> bool:
        argument = Argument(path)
        return self.places.is_sensitive(argument) or self.places.is_secret(argument)

    def _may_read(self, path: str) -> bool:
        return self._is_inside_roots(path) or self.places.is_public(path)

    def _is_secret(self, path: str) -> bool:
        return self.places.is_secret(Argument(path))
