"""May a call run? Modes, rules and people, above the danger floor.

The order of decisions; the first that speaks decides:

    1  danger floor     what cannot be undone is refused; in default mode a person may allow it once
    2  bypass mode      allows everything else
    3  deny rules
    4  plan mode        refuses what may change something
    5  ask rules
    6  allow rules      those of the settings and flags, then those of this session
    7  the mode         see the table in docs/permissions.md
    8  a hook           one at PermissionRequest, in place of the person
    9  a person         or, without a person to ask, a refusal

A call is taken apart (`call_judge`): each part of a command, each file is judged on its own. A call
is denied where one of its parts is, asked about where one is, and allowed where all are.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape.model.entries import NO_JSON, Approval
from tape.remote import locate_copies

from ..errors import ConfigurationError
from ..git_programs import list_changed_files, may_name_programs
from ..private_files import locate_config_file, locate_state_folder
from ..tools.tool import encode_details
from .approval import (
    ANSWERS,
    LASTING_ANSWERS,
    ApprovalAnswer,
    ApprovalRequest,
    Asker,
    Consultant,
    RuleScope,
)
from .decision import Verdict
from .modes import PermissionMode, parse_mode
from .refusals import Locale, choose_locale, format_declined, format_refusal
from .rules import (
    NO_RULES,
    PermissionRule,
    RuleSet,
    escape_pattern,
    find_family,
    is_path_covered,
    parse_rule,
)
from .ruling import Ruling, choose_strictest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..config import PermissionSettings
    from ..env.protocol import ExecutionEnvironment
    from ..env.sandbox.sandbox import Sandbox
    from ..git_programs import GitProgram
    from ..tools.tool import PreparedCall, ToolOutcome
    from .call_judge import CallJudge
    from .commands.analysis import CommandAnalysis
    from .commands.invocation import PathContext
    from .files.place_names import PlaceNames
    from .files.tracked_files import ListChanged


_LOOKED_AT = {"bash", "read", "edit"}
"""Families of tools whose arguments are taken apart, and compared with what is on the disk."""


def _follow_wish(ruling: Ruling, prepared: PreparedCall) -> Ruling:
    """Return a ruling as a hook wishes it: it may ask for more, and for less only than the mode.

    A question also says what the tool's own server says of it, which decides nothing.
    """
    if prepared.wish == "ask" and ruling.decision == "allow":
        why = prepared.wish_reason or "a hook wants this call to be approved"
        return Ruling("ask", why, by="hook")
    if prepared.wish == "allow" and ruling.decision == "ask" and ruling.by == "mode":
        return Ruling("allow", prepared.wish_reason, by="hook")
    if ruling.decision == "ask" and prepared.tool.remark:
        return ruling._replace(why=f"{ruling.why} ({prepared.tool.remark})")
    return ruling


@dataclass(slots=True)
class PermissionPolicy:
    """Decides about calls, and asks a person where it has to.

    `mode` and `granted` may be changed at any time; they hold from the next call.
    """

    cwd: str
    """Where the session works; absolute, as are the others."""
    home: str
    mode: PermissionMode = PermissionMode.DEFAULT
    rules: RuleSet = NO_RULES
    folders: tuple[str, ...] = ()
    """Further folders of the session."""
    is_confined: bool = False
    """Whether temporary folders around `cwd` are outside of it, as any other folder is."""
    ask: Asker | None = None
    """Asks a person; None in a run without one."""
    consult: Consultant | None = None
    """Asked first about what a person would be asked about, even if there is none."""
    timeout: float | None = None
    """Seconds to wait for an answer; None waits for ever."""
    save: Callable[[str, RuleScope], None] | None = None
    """Called with each rule that a person allows for good, and where it holds."""
    locale: Locale = "en"
    exported: frozenset[str] = frozenset()
    """Names of the variables that commands inherit."""
    own_folders: tuple[str, ...] = ()
    """Where gong keeps its settings, keys, answers about trust, and tapes."""
    find_git_programs: Callable[[], Sequence[GitProgram]] = lambda: ()
    """Returns the programs that the repository names for git and that the user did not trust."""
    list_changed: ListChanged = lambda _top, _words: None
    """Tells which files of a repository a diff of git shows."""
    sandbox: Sandbox | None = None
    """The sandbox that gong and its commands are in."""
    granted: list[PermissionRule] = field(default_factory=list)
    """Rules that a person allowed for this session."""
    run_rules: RuleSet = NO_RULES
    """Rules of the skills that are used, until the run ends: to allow and to deny."""
    open_names: Callable[[], PlaceNames] | None = None
    """Opens what a judgement knows of names in the place where calls act; None on this machine."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def move_to(self, folder: str, home: str, env: ExecutionEnvironment) -> None:
        """Judge calls that act in another place: in a folder there, and with its links.

        What gong keeps is not there, nor are the programs that a repository here names for git.
        """
        self.cwd, self.home, self.folders, self.own_folders = folder, home, (), ()
        self.exported, self.find_git_programs = frozenset(), lambda: ()
        self.list_changed = lambda _top, _words: None
        from .files.place_names import PlaceNames  # only in a place

        self.open_names = partial(PlaceNames, env, asyncio.get_running_loop(), {})

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders in which files may be read unasked, and edited in accept_edits."""
        if self.open_names is not None:
            from .files.real_paths import ELSEWHERE

            place = ELSEWHERE.get() or self.open_names()
            named = (self.cwd, *self.folders, "/tmp")
            return tuple(dict.fromkeys((*named, *map(place.find_real, named))))
        temporary = {"/tmp", tempfile.gettempdir()}
        if self.is_confined:
            places = {self.cwd, os.path.realpath(self.cwd)}
            around = {str(parent) for place in places for parent in Path(place).parents}
            temporary -= {
                folder for folder in temporary if {folder, os.path.realpath(folder)} & around
            }
        own = (self.cwd, *self.folders, *sorted(temporary))
        return tuple(dict.fromkeys((*own, *map(os.path.realpath, own))))

    @property
    def places(self) -> PathContext:
        """The folders that a call is judged against."""
        from .commands.invocation import PathContext  # a tenth of the time of a start
        from .files.real_paths import find_real_path, match_files
        from .files.repositories import find_repository

        repository = find_repository(self.cwd)
        return PathContext(
            self.cwd,
            self.home,
            self.roots,
            (self.cwd,),
            None if repository is None else repository.top,
            find_real_path,
            match_files,
            self.exported,
        )

    def find_denied_reading(self, path: str) -> str:
        """Return the rule that denies to read an absolute path, or where it leads; "" if none."""
        from .files.real_paths import ELSEWHERE, list_names  # few prompts name files

        token = ELSEWHERE.set(None if self.open_names is None else self.open_names())
        try:
            names = (posixpath.normpath(path), *list_names(path, (self.cwd, *self.folders)))
        finally:
            ELSEWHERE.reset(token)
        for rule in (*self.rules.deny, *self.run_rules.deny):
            if rule.tool == "read" and any(
                is_path_covered(rule, name, self.cwd, self.home) for name in names
            ):
                return rule.text
        return ""

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Decide about a call; ask a person where the rules and the mode say so."""
        call_id, name, arguments = prepared.call.id, prepared.tool.name, prepared.values
        commands: dict[str, CommandAnalysis] = {}
        ruling = _follow_wish(await self.judge_in_time(name, arguments, commands), prepared)
        prepared.only_reads = next((analysis.only_reads for analysis in commands.values()), None)
        if ruling.decision == "allow":
            return self._allow(call_id, ruling)
        if ruling.decision == "deny" and not (ruling.once and self.ask is not None):
            approval = Approval(call_id, "deny", ruling.by, ruling.rule, ruling.why)
            return Verdict(False, ruling.text, approval)
        if self.consult is not None and ruling.decision == "ask":
            request = ApprovalRequest(call_id, name, arguments, ruling)
            if (decided := await self.consult(request)) is not None:
                reason = decided.reason or "no reason was given"
                denied = "" if decided.decision == "allow" else f"Blocked by a hook: {reason}"
                return Verdict(decided.decision == "allow", denied, decided)
        if self.ask is None:
            text = format_refusal("headless", self.locale, why=ruling.why)
            approval = Approval(call_id, "deny", "headless", ruling.rule, ruling.why)
            return Verdict(False, text, approval)
        return await self._ask_person(prepared, name, arguments, commands)

    async def _ask_person(
        self,
        prepared: PreparedCall,
        name: str,
        arguments: dict[str, Any],
        commands: dict[str, CommandAnalysis],
    ) -> Verdict:
        """Ask about one call at a time: an answer to the one before may answer this one."""
        ask = self.ask  # of now: a person who leaves while this waits its turn answers no
        assert ask is not None, "somebody is there to ask"
        call_id = prepared.call.id
        async with self._asking:
            ruling = await self.judge_in_time(name, arguments, commands)
            ruling = _follow_wish(ruling, prepared)
            if ruling.decision == "allow":
                return self._allow(call_id, ruling)
            preview = await self._preview_call(prepared, name, arguments)
            if preview is not None and preview.is_error:
                return Verdict(False, failure=preview)
            details = NO_JSON if preview is None else encode_details(preview)
            request = ApprovalRequest(call_id, name, arguments, ruling, details)
            try:
                async with asyncio.timeout(self.timeout):
                    answer = await ask(request)
            except TimeoutError:
                text = format_refusal("timeout", self.locale, why=f"{self.timeout:g} s")
                return Verdict(False, text, Approval(call_id, "deny", "timeout", reason=ruling.why))
            if answer.decision not in ANSWERS:  # of an asker that is not ours
                raise ConfigurationError(f"{answer.decision!r} is not a decision about a call")
            if answer.decision == "edit":
                return Verdict(False, arguments=answer.arguments or arguments)
            if answer.decision == "no":
                text = format_declined(answer.reason, self.locale)
                approval = Approval(call_id, "deny", "user", reason=answer.reason or None)
                return Verdict(False, text, approval)
            rule = self._keep_grant(answer, ruling)
            return Verdict(True, approval=Approval(call_id, "allow", "user", rule))

    async def ask_outside(self, prepared: PreparedCall, refused: Sequence[str]) -> Approval | None:
        """Ask whether a command that failed at the border of a sandbox runs again, outside of it.

        Nobody is asked in a run without a person, and in modes that ask nothing.
        """
        modes = {PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS}
        if self.ask is None or self.mode not in modes:
            return None
        what = ", ".join(refused)
        why = f"the sandbox refused {what}: run it again outside of the sandbox?"
        call_id, reason = prepared.call.id, f"outside of the sandbox, which refused {what}"
        ruling = Ruling("ask", why, by="sandbox", can_have_rule=False, reasons=(why,))
        request = ApprovalRequest(call_id, prepared.tool.name, prepared.values, ruling)
        async with self._asking:
            try:
                async with asyncio.timeout(self.timeout):
                    answer = await self.ask(request)
            except TimeoutError:
                return Approval(call_id, "deny", "timeout", reason=reason)
        if answer.decision in {"no", "edit"}:
            return Approval(call_id, "deny", "user", reason=answer.reason or reason)
        return Approval(call_id, "allow", "user", reason=reason)

    async def _preview_call(
        self, prepared: PreparedCall, name: str, arguments: Mapping[str, Any]
    ) -> ToolOutcome | None:
        """Return what a call would change, or why it cannot do so; None where that is not known.

        A call that fails tells the model what is in its files: it is tried before the question
        only where all of them may be read unasked.
        """
        if prepared.preview is None:
            return None
        from .call_judge import list_call_paths  # as in `judge`

        for path in list_call_paths(name, "edit", arguments):
            ruling = await self.judge_in_time("read", {"path": path})
            if ruling.decision != "allow":
                return None
        return await prepared.preview()

    def _allow(self, call_id: str, ruling: Ruling) -> Verdict:
        """Return what is allowed, with what decided it."""
        by = "mode" if self.mode is PermissionMode.BYPASS and ruling.by != "hook" else ruling.by
        return Verdict(True, approval=Approval(call_id, "allow", by, ruling.rule))

    def _keep_grant(self, answer: ApprovalAnswer, ruling: Ruling) -> str | None:
        """Keep the offered rules for the session, or for good; return them as one text."""
        if answer.decision not in LASTING_ANSWERS or not ruling.offered:
            return None
        self.granted += map(parse_rule, ruling.offered)
        scope = LASTING_ANSWERS[answer.decision]
        if scope is not None and self.save is not None:
            for text in ruling.offered:
                self.save(text, scope)
        return ", ".join(ruling.offered)

    async def judge_in_time(
        self,
        name: str,
        arguments: Mapping[str, Any],
        commands: dict[str, CommandAnalysis] | None = None,
    ) -> Ruling:
        """Judge a call beside the event loop; what takes too long is asked about, or refused.

        A call of no command and no file is judged by its name, at once. `commands` is as `judge`
        has it.
        """
        if find_family(name) not in _LOOKED_AT:
            return self.judge(name, arguments)
        from .deadline import judge_in_time

        why = f"{name}: it takes too long to judge"
        late = Ruling("ask", why, by="danger")
        if self.mode not in {PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS}:
            text = format_refusal("headless", self.locale, why=why)
            late = Ruling("deny", why, by="danger", text=text)
        return await judge_in_time(
            partial(self.judge, name, arguments, commands), late, _load_judge
        )

    def judge(
        self,
        name: str,
        arguments: Mapping[str, Any],
        commands: dict[str, CommandAnalysis] | None = None,
    ) -> Ruling:
        """Return what the rules and the mode say about a call; nothing is run, no question asked.

        `commands` holds command lines that were analysed, and takes what is analysed now.
        """
        from .files.real_paths import ELSEWHERE

        token = ELSEWHERE.set(None if self.open_names is None else self.open_names())
        try:
            return self._judge(name, arguments, commands)
        finally:
            ELSEWHERE.reset(token)

    def _judge(
        self,
        name: str,
        arguments: Mapping[str, Any],
        commands: dict[str, CommandAnalysis] | None,
    ) -> Ruling:
        from .access import AccessRules
        from .call_judge import CallJudge
        from .command_judge import CommandJudge
        from .file_judge import FileJudge

        granted = tuple(self.granted)
        run = self.run_rules
        allow = (*self.rules.allow, *granted, *run.allow)
        rules = replace(self.rules, deny=(*self.rules.deny, *run.deny)) if run.deny else self.rules
        sandbox = self.sandbox
        access = AccessRules(
            *(self.mode, rules, allow, granted, self.locale),
            border=None if sandbox is None else sandbox.border,
            relaxes=sandbox is not None and sandbox.covers_all,
        )
        places = self.places
        files = FileJudge(access, places, self.own_folders)
        line = CommandJudge(
            access,
            places,
            files,
            self.find_git_programs,
            self.list_changed,
            {} if commands is None else commands,
        )
        judge = CallJudge(access, files, line)
        parts = judge.judge(name, arguments)
        ruling = self._choose_ruling(parts)
        if ruling.decision != "ask":
            return ruling
        offered = self._choose_offers(name, arguments, parts, judge)
        return ruling._replace(offered=offered)

    def _choose_offers(
        self, name: str, arguments: Mapping[str, Any], parts: Sequence[Ruling], judge: CallJudge
    ) -> tuple[str, ...]:
        """Return rules that allow this very call, one for each part; nothing where one has none.

        What the rules of the parts do not allow may be allowed by a rule that is the whole line.
        """
        asking_parts = [part for part in parts if part.decision == "ask"]
        if any(part.by == "rule" for part in asking_parts):
            return ()  # a rule to ask is stronger than any that could be offered
        offers = [rule for part in asking_parts for rule in part.offered]
        choices = [tuple(offers)] if all(part.offered for part in asking_parts) else []
        from .call_judge import find_command

        line = find_command(arguments)
        if (
            find_family(name) == "bash"
            and line
            and all(part.can_have_rule for part in asking_parts)
        ):
            files = (rule for rule in offers if rule.startswith("Read("))
            choices.append((f"Bash({escape_pattern(line.strip())})", *files))
        for offered in choices:
            texts = tuple(dict.fromkeys(offered))
            try:
                more = tuple(map(parse_rule, texts))
            except ConfigurationError:
                continue
            again = judge.allow_more(more)
            if self._choose_ruling(again.judge(name, arguments)).decision == "allow":
                return texts
        return ()

    def _choose_ruling(self, parts: Sequence[Ruling]) -> Ruling:
        """Return the ruling about a call from those about its parts: the strictest one."""
        worst = choose_strictest(parts)
        refused = worst.by == "danger" and worst.decision == "deny"
        ruled_out = any(part.by == "rule" and part.decision == "deny" for part in parts)
        once = refused and self.mode is PermissionMode.DEFAULT and not ruled_out
        if worst.decision != "ask" and not once:
            return worst._replace(offered=(), once=False, reasons=())
        reasons = _list_reasons([worst, *(part for part in parts if part.decision == "ask")])
        why = "; ".join(reasons) if worst.decision == "ask" else worst.why
        return worst._replace(why=why, offered=(), once=once, reasons=reasons)


def _list_reasons(parts: Sequence[Ruling]) -> tuple[str, ...]:
    """Return why a call is asked about, the part of highest severity first, each part once."""
    first, *others = parts
    reasons = dict.fromkeys(first.reasons or (first.why,))
    named = {reason.partition(": ")[0] for reason in reasons if first.by == "danger"}
    more = (why for part in others for why in part.reasons or (part.why,))
    return (
        *reasons,
        *dict.fromkeys(w for w in more if w.partition(": ")[0] not in named and w not in reasons),
    )


def _load_judge() -> None:
    """Load what every judgement needs: modules, tables, the grammar of bash."""
    from . import call_judge, command_judge  # noqa: F401 (a tenth of the time of a start)
    from .danger import classify_command

    classify_command("true", "/", "/")


def find_denied_reading(policy: object, path: str) -> str:
    """Return the rule of a policy that denies to read an absolute path; "" if it has no rules."""
    return policy.find_denied_reading(path) if isinstance(policy, PermissionPolicy) else ""


def build_policy(
    settings: PermissionSettings, cwd: str, environ: Mapping[str, str]
) -> PermissionPolicy:
    """Return the policy of a session in a folder, with nobody to ask.

    Raises ConfigurationError for a wrong rule or mode.
    """
    home = environ.get("HOME", "/")
    folders = map(posixpath.expanduser, settings.folders)
    return PermissionPolicy(
        cwd,
        home,
        parse_mode(settings.mode),
        RuleSet.parse(settings.allow, settings.deny, settings.ask),
        tuple(posixpath.normpath(posixpath.join(cwd, folder)) for folder in folders),
        locale=choose_locale(environ),
        exported=frozenset(environ),
        own_folders=(
            str(locate_config_file(environ).parent),
            str(locate_state_folder(environ)),
            environ.get("TAPE_HOME") or posixpath.join(home, ".tape"),
            locate_copies(environ),
        ),
        find_git_programs=partial(_find_git_programs, cwd, environ),
        list_changed=partial(_list_changed, environ),
    )


def _find_git_programs(cwd: str, environ: Mapping[str, str]) -> tuple[GitProgram, ...]:
    if not may_name_programs(cwd):
        return ()
    from ..trust import list_untrusted_git_programs  # few repositories name any

    return list_untrusted_git_programs(cwd, environ)


def _list_changed(
    environ: Mapping[str, str], top: str, words: Sequence[str]
) -> frozenset[str] | None:
    from ..trust import ask_git  # few commands ask for it

    return list_changed_files(top, words, partial(ask_git, Path(top), environ))
