"""What a person types besides plain text: files, pastes, pictures, shell commands, other editors.

    typed or pressed        does
    ----------------------  ---------------------------------------------------------------
    @path                   gives the file to the model with the prompt
    a long paste            is folded to a placeholder
    a picture's path, Ctrl+V, /image PATH   puts a placeholder; the picture goes along
    !command, !!command     runs in the shell; with !! the model gets it with the next words
    Ctrl+G, /editor         opens the prompt in $VISUAL or $EDITOR

The session takes the words themselves: see `app`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import SearchDirection, start_search

from tape.errors import TapeError

from ...checkpoints.file_recorder import find_local_environment
from ...env.wrappers import is_place
from ...errors import GongError
from ...policy.permissions import find_denied_reading
from ...tools.command import describe_border
from ..draw.lines import INDENT, StyledLine, clip_line, escape_text
from ..draw.styles import THEMES
from .completion import build_completer
from .file_names import list_local_files, list_place_files
from .input_history import open_history
from .keys import KeyMap
from .mentions import locate_file, read_mentions
from .menu import CompletionMenu
from .paste import DraftParts, delete_after, delete_before
from .pictures import (
    CLIPBOARD_ADVICE,
    PictureRules,
    attach_picture,
    build_picture,
    find_dropped_picture,
    read_clipboard_picture,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.filters import FilterOrBool
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    from ...agent.documents import AttachedDocument
    from ...assembly.open_session import OpenSession
    from ..draw.terminal import Terminal
    from .mentions import MentionedFiles

_TAIL_BYTES, _TAIL_LINES = 8_000, 5
"""How much is shown of what a command of the user prints, while it runs."""


_COUNTED_LINES = 100
"""From so many on it is said how many lines an output has."""


class PromptInput:
    """What stands behind the text of the prompt, in one conversation."""

    def __init__(
        self,
        host: OpenSession,
        commands: Mapping[str, tuple[str, str]],
        terminal: Callable[[], Terminal],
        say: Callable[[str], None],
    ) -> None:
        """`terminal` returns where it is typed, `say` shows a remark.

        `commands` is the argument of each slash command, and what it does.

        Raises ConfigurationError for settings of keys that are wrong.
        """
        self._host, self._terminal, self.say = host, terminal, say
        self.keys = KeyMap(host.models.settings.keys)
        self._parts = DraftParts()
        self._folder = host.session.setup.env.working_directory
        env = host.session.setup.env
        self._local = find_local_environment(env)
        self.menu = CompletionMenu(self._draft)
        self._tasks: set[asyncio.Task[None]] = set()
        self._tails: list[tuple[str, bytearray]] = []
        """The end of what each running command of the user has printed."""
        self.history: History = open_history(host.library.store.tapes.parent, self._folder)
        self.completer: Completer = DummyCompleter()
        if self._local is not None:
            list_files = partial(list_local_files, self._local, self._folder)
            self.completer = build_completer(host, list_files, commands)
        elif is_place(env):
            list_there = partial(list_place_files, env, asyncio.get_running_loop())
            self.completer = build_completer(host, list_there, commands)

    def _draft(self) -> Buffer:
        return self._terminal().draft

    def expand_text(self, text: str) -> str:
        """Return a draft with the pasted texts in the place of their placeholders."""
        return self._parts.expand_text(text)

    def fold_text(self, text: str) -> str:
        """Return a text as it is shown: long pasted texts as their placeholders."""
        return self._parts.fold_text(text)

    def attach_documents(self, text: str) -> None:
        """Give the files and pictures that words name to the model with them."""
        for document in self._parts.list_pictures(text):
            self._host.session.attach(document)
        if not self.is_elsewhere:
            self._attach_mentions(self._read_mentions(text))

    async def attach_from_place(self, text: str) -> None:
        """Give the files that words name, and that are in another place, to the model with them."""
        from .place_mentions import read_place_mentions  # only in a place

        env = self._host.session.setup.env
        self._attach_mentions(
            await read_place_mentions(
                self._parts.fold_text(text), env, self._read_rules(), self._find_denied
            )
        )

    def _attach_mentions(self, mentions: MentionedFiles) -> None:
        for document in mentions.documents:
            self._host.session.attach(document)
        if mentions.remarks:
            self.say("\n".join(mentions.remarks))

    @property
    def is_elsewhere(self) -> bool:
        """Whether the files that words name are in another place."""
        return is_place(self._host.session.setup.env)

    def attach_again(self, texts: Sequence[str]) -> None:
        """Attach the documents of queued words again, after one of them was withdrawn."""
        documents = self._host.session.run_state.documents
        documents[:] = [
            document for document in documents if document.id
        ]  # outputs wait for any words
        for text in texts:
            for document in self._parts.list_pictures(text):
                self._host.session.attach(document)
            if self.is_elsewhere:
                continue
            for document in self._read_mentions(text).documents:
                self._host.session.attach(document)

    def _read_mentions(self, text: str) -> MentionedFiles:
        text = self._parts.fold_text(text)
        return read_mentions(text, self._folder, self._read_rules(), find_denied=self._find_denied)

    def _find_denied(self, path: str) -> str:
        return find_denied_reading(self._host.session.setup.policy, path)

    def _read_rules(self) -> PictureRules:
        return PictureRules.from_session(self._host.models.settings, self._host.session.setup.model)

    def add_keys(self, keys: KeyBindings) -> None:
        """Bind pasting, deleting of placeholders, the menu of completions, and own actions."""
        typing = ~is_searching
        self.bind_action(keys, "editor", self.open_editor, typing)
        self.bind_action(keys, "paste_image", self.paste_picture, typing)
        self.bind_action(keys, "model", self.choose_model, typing)
        self._bind_own_actions(keys)
        draft, parts = self._draft, self._parts
        keys.add(Keys.BracketedPaste)(self._paste)
        is_behind = Condition(lambda: parts.measure_before(draft()) > 0)
        is_before = Condition(lambda: parts.measure_after(draft()) > 0)
        for key in ("backspace", "c-w"):
            keys.add(key, filter=is_behind)(lambda _: delete_before(draft(), parts))
        keys.add("delete", filter=is_before)(lambda _: delete_after(draft(), parts))
        keys.add("left", filter=is_behind)(
            lambda _: draft().cursor_left(parts.measure_before(draft()))
        )
        keys.add("right", filter=is_before)(
            lambda _: draft().cursor_right(parts.measure_after(draft()))
        )
        self.menu.add_keys(keys, lambda: draft().validate_and_handle())

    def bind_action(
        self,
        keys: KeyBindings,
        action: str,
        run: Callable[[], object],
        condition: FilterOrBool = True,
    ) -> None:
        """Have the keys of an action run it; those that the settings took from it do nothing."""
        for key in self.keys.list_keys(action):
            keys.add(*key, filter=condition)(lambda _: run())
        for key in self.keys.list_unused_keys(action):
            keys.add(*key, filter=condition)(lambda _: None)

    def _bind_own_actions(self, keys: KeyBindings) -> None:
        """Bind what prompt-toolkit does, where the settings give it other keys."""
        draft, typing = self._draft, ~is_searching
        is_empty = Condition(lambda: not draft().text)
        actions: dict[str, tuple[Callable[[], object], FilterOrBool]] = {
            "history": (partial(start_search, direction=SearchDirection.BACKWARD), typing),
            "quit": (lambda: self._terminal().leave(), typing & is_empty),
            "suspend": (lambda: self._terminal().suspend(), True),
        }
        for action, (run, condition) in actions.items():
            if action in self.keys.changed:
                self.bind_action(keys, action, run, condition)
        if "submit" in self.keys.changed:
            for key in self.keys.list_keys("submit"):
                keys.add(*key, filter=typing)(lambda _: draft().validate_and_handle())
            for key in self.keys.list_unused_keys("submit"):
                keys.add(*key, filter=typing)(lambda _: draft().insert_text("\n"))

    def _paste(self, event: KeyPressEvent) -> None:
        path = find_dropped_picture(event.data)
        if path is not None and locate_file(self._folder, path).is_file():
            self.add_picture(path)
        else:
            self._draft().insert_text(self._parts.fold_paste(event.data))

    def add_picture(self, name: str) -> None:
        """Put the placeholder of a picture in a file into the prompt, or say why not."""
        path = locate_file(self._folder, name)
        try:
            self._put_picture(*attach_picture(path, path.name, self._read_rules()), path.name)
        except OSError as error:
            self.say(f"{name} cannot be read: {error.strerror or error}")

    def _put_picture(self, document: AttachedDocument | None, remark: str, name: str) -> None:
        if document is None:
            self.say(remark)
            return
        self._draft().insert_text(f"{self._parts.add_picture(document, name)} ")

    def paste_picture(self) -> None:
        """Put the picture in the clipboard into the prompt, or say why not."""
        self._start(self._read_clipboard())

    async def _read_clipboard(self) -> None:
        env, data = self._local, None
        if env is not None:
            data = await asyncio.to_thread(read_clipboard_picture, env, self._folder)
        if data is None:
            self.say(CLIPBOARD_ADVICE)
        else:
            self._put_picture(*build_picture(data, "clipboard", self._read_rules()), "clipboard")

    def open_editor(self) -> None:
        """Write the prompt in another program."""
        self._start(self._edit_draft())

    async def _edit_draft(self) -> None:
        try:
            await self._terminal().edit_draft()
        except OSError as error:
            self.say(f"{error}; $VISUAL or $EDITOR names an editor")

    def start_program(self, words: Sequence[str]) -> None:
        """Let another program have the terminal until it ends."""
        self._start(self._run_program(words))

    async def _run_program(self, words: Sequence[str]) -> None:
        code = await self._terminal().run_program(words)
        self.say("done: /model chooses a model" if code == 0 else f"ended with exit code {code}")

    def copy_text(self, text: str) -> None:
        """Copy a text by means of the terminal."""
        self._terminal().copy_text(text)
        self.say(f"copied {len(text):,} characters, if the terminal lets programs copy (OSC 52)")

    def use_theme(self, name: str) -> None:
        """Draw what follows in another theme; an empty name says which there are."""
        terminal = self._terminal()
        if name:
            terminal.theme = name
            self.say(f'theme {name}; theme = "{name}" in [terminal] of config.toml keeps it')
            return
        listed = (f"{theme} *" if theme == terminal.theme else theme for theme in THEMES)
        self.say(f"themes: {', '.join(listed)}; /theme NAME uses one")

    def choose_model(self) -> None:
        """Begin the command that changes the model, and offer models."""
        if not self._draft().text:
            self._draft().insert_text("/model ")
            self._draft().start_completion()

    def run_shell(self, line: str) -> None:
        """Run a line such as `!ls`, and show what it prints; with `!!` the model gets it too."""
        is_shared = line.startswith("!!")
        self._start(self._run_command(line.lstrip("!").strip(), is_shared=is_shared))

    async def _run_command(self, command: str, *, is_shared: bool) -> None:
        tail = bytearray()
        tail_row = (command, tail)
        self._tails.append(tail_row)

        def show(chunk: bytes) -> None:
            tail.extend(chunk)
            del tail[:-_TAIL_BYTES]
            self._terminal().refresh()

        try:
            env = self._host.session.setup.env
            done = await env.exec_command(command, on_output=show)
        except (GongError, OSError) as error:
            self.say(str(error))
            return
        except asyncio.CancelledError:
            self._keep_output(command, tail.decode("utf-8", "replace"), "stopped", is_shared)
            raise
        finally:
            # by identity: the same command may run twice
            self._tails = [row for row in self._tails if row is not tail_row]
        output = done.output.decode("utf-8", "replace")
        ending = " ".join((f"exit code {done.exit_code}", *describe_border(done)))
        self._keep_output(command, output, ending, is_shared)

    def _keep_output(self, command: str, output: str, end: str, is_shared: bool) -> None:
        """Show what a command has printed, and record it."""
        count = len(output.rstrip("\n").split("\n"))
        lines = f", {count:,} lines" if count >= _COUNTED_LINES else ""
        self.say(f"{output.rstrip()}\n[{end}{lines}]".lstrip("\n"))
        try:
            self._host.session.record_command(command, output, end, shared=is_shared)
        except (GongError, TapeError, OSError) as error:
            self.say(f"this is not on the tape: {error}")
        else:
            if is_shared:
                self.say("the model gets this with your next prompt")

    def render_output(self, columns: int) -> list[StyledLine]:
        """Return the last lines of what the user's commands have printed so far."""
        lines: list[StyledLine] = []
        for command, tail in self._tails:
            rows = bytes(tail).decode("utf-8", "replace").rstrip().split("\n")[-_TAIL_LINES:]
            clipped = [clip_line(escape_text(row), max(columns - 2, 8)) for row in rows]
            lines.append(StyledLine(clip_line(f"$ {escape_text(command)}", columns), "call"))
            lines += [StyledLine(f"{INDENT}{row}", "result") for row in clipped if row]
        return lines

    @property
    def is_running(self) -> bool:
        """Whether a command of the user runs."""
        return bool(self._tasks)

    def stop_commands(self) -> None:
        """Stop the commands that the user runs."""
        for task in self._tasks:
            task.cancel()

    async def end_commands(self) -> None:
        """Stop them, and return once what they printed is on the tape."""
        self.stop_commands()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
