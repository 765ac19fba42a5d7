"""The options of `gong chat`: what they mean together, and what they are read to."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from tape.text import clean_words

from ..errors import ConfigurationError
from ..project import locate_folder
from .options import load_settings, merge_permissions, parse_tool_names, print_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..config import Settings
    from ..llm.models import EffortChoice
    from ..sdk.objects import JsonSchema
    from .printing import OutputFormat
    from .session import StartFrom

MAX_COMMAND_SECONDS = 600.0
"""`tools.limits.MAX_TIMEOUT_MS`, which loads slowly: in a terminal the prompt stands first."""


class Continuation(NamedTuple):
    """The session to continue, from the flags."""

    ref: str
    forks: bool = False
    """Start a new branch there."""
    carries: bool = False
    """Summarise the old branch's work on the new branch."""
    compacts: bool = False
    """Summarise older messages first."""
    start: StartFrom | None = None


class ChatOptions(NamedTuple):
    """The values of the options as click read them, each by the name it has there."""

    words: tuple[str, ...]
    prompt: str | None
    output: OutputFormat
    schema: str | None
    newest: bool
    resumed: str | None
    """The REF of --resume; empty for a list to choose from."""
    session: str | None
    fork: str | None
    place: str | None
    carry: bool
    compact: bool
    model: str | None
    effort: EffortChoice | None
    start: StartFrom | None
    max_turns: int | None
    max_rounds: int | None
    max_cost: float | None
    max_seconds: float | None
    command_seconds: float | None
    tools: str | None
    no_tools: bool
    afk: bool
    verbose: bool
    base: str | None
    base_file: str | None
    appended: str | None
    store: str | None
    full_screen: bool
    history: int
    no_session: bool
    reviews: bool
    review_every: int | None
    review_strict: Literal["strict", "normal", "loose"] | None
    permission: str | None
    yolo: bool
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    add_dir: tuple[str, ...]
    sandbox: Literal["off", "read-only", "workspace-write"] | None
    env_place: str | None

    def find_past(self) -> Continuation | None:
        """Return the session to continue, None for a new one; raises UsageError."""
        named = (
            self.newest,
            self.resumed is not None,
            self.session is not None,
            self.fork is not None,
        )
        if sum(named) > 1:
            raise click.UsageError("-c, --resume, --session and --fork cannot be combined")
        ref = "" if self.newest else self.session if self.session is not None else self.fork
        if self.resumed:
            ref = self.resumed
        for option, is_given in (("--from", self.start is not None), ("--compact", self.compact)):
            if is_given and ref is None:
                raise click.UsageError(
                    f"{option} needs a session to continue: -c, --session or --fork"
                )
        if self.carry and self.fork is None:
            raise click.UsageError(
                "--carry needs --fork: it summarises the branch that --fork leaves"
            )
        if ref is None:
            return None
        return Continuation(ref, self.fork is not None, self.carry, self.compact, self.start)

    def choose_store(self, past: Continuation | None) -> str | None:
        """Return the store that is named, or one that is deleted at the end; raises UsageError."""
        if not self.no_session:
            return self.store
        if past is not None or self.store is not None:
            raise click.UsageError(
                "--no-session cannot be combined with -c, --session, --fork or --store"
            )
        from tempfile import TemporaryDirectory  # few sessions are in no store

        return click.get_current_context().with_resource(TemporaryDirectory(prefix="gong-"))

    def list_tools(self) -> tuple[str, ...] | None:
        """Return the tools to offer, None for those of the settings; raises UsageError."""
        if self.no_tools and self.tools is not None:
            raise click.UsageError("--tools and --no-tools cannot be combined")
        return () if self.no_tools else parse_tool_names(self.tools)

    def locate_folder(self) -> str:
        """Return the folder to work in, absolute."""
        return locate_folder() if self.place is None else os.path.realpath(self.place)

    def list_first_lines(self) -> list[str]:
        """Return what a conversation begins with, as if it had been typed and entered."""
        first = " ".join(self.words)
        return ["/resume"] * (self.resumed == "") + [first] * bool(first.strip())

    @property
    def typed_prompt(self) -> str:
        """What -p and the words say, without standard input."""
        return " ".join(part for part in (self.prompt, " ".join(self.words)) if part)

    def read_prompt(self) -> str | None:
        """Return what to answer, from -p, the words and standard input; None to converse.

        standard input   -p    words   standard output   result
        ---------------  ----  ------  ----------------  -----------------------------------
        a terminal       no    none    any               converse
        a terminal       no    some    a terminal        converse; words are the first message
        a terminal       no    some    no terminal       answer the words
        a terminal       yes   any     any               answer -p and the words
        no terminal      any   any     any               answer -p, the words, and what it holds
        """
        first = " ".join(self.words)
        closed = sys.stdin is None
        typed = not closed and sys.stdin.isatty()
        if self.prompt is None and typed and (not first or (sys.stdout and sys.stdout.isatty())):
            return None
        input_text = "" if typed or closed else _read_standard_input()
        parts = (self.typed_prompt, input_text.rstrip("\n"))
        text = "\n\n".join(part for part in parts if part.strip())
        text = clean_words(text)
        if not text:
            raise ConfigurationError(
                "the prompt is empty: say what to do, as in gong chat -p 'list .'"
            )
        return text

    def read_schema(self, *, is_answering: bool) -> JsonSchema | None:
        """Return the JSON Schema of --json-schema; raises UsageError, ConfigurationError."""
        schema_option = self.schema
        if schema_option is None:
            return None
        if not is_answering:
            raise click.UsageError("--json-schema needs -p: it is about one answer")
        from ..sdk.objects import parse_object_schema  # only with --json-schema

        text: str | bytes = schema_option
        try:
            if not schema_option.lstrip().startswith("{"):
                text = Path(schema_option).read_bytes()
            return parse_object_schema(text)
        except OSError as error:
            raise ConfigurationError(f"{schema_option} cannot be read: {error.strerror}") from error
        except ConfigurationError as error:
            raise click.UsageError(f"--json-schema: {error}") from error

    def read_settings(
        self, folder: str, tools: Sequence[str] | None, store: str | None
    ) -> Settings:
        """Return the settings of a folder with those of the options; raises ConfigurationError."""
        from msgspec.structs import replace  # in a terminal the prompt stands first

        seconds = self.command_seconds
        settings = load_settings(
            folder,
            max_turns=self.max_turns,
            max_rounds=self.max_rounds,
            max_cost=self.max_cost,
            max_seconds=self.max_seconds,
            default_command_timeout_ms=seconds and max(round(seconds * 1000), 1),
            tools=tools,
            store=store,
            sandbox=self.sandbox,
        )
        permissions = merge_permissions(
            settings.permissions,
            permission=self.permission,
            yolo=self.yolo,
            allow=self.allow,
            deny=self.deny,
            add_dir=self.add_dir,
        )
        review = settings.review
        every = self.review_every or (1 if self.reviews else review.every)
        strictness = self.review_strict or review.strictness
        review = replace(review, every=every, strictness=strictness)
        return replace(settings, permissions=permissions, review=review)


def _read_standard_input() -> str:
    """Return all of standard input; after two seconds without any, say what is waited for."""
    stream = sys.stdin.buffer
    if not select.select([stream], [], [], 2.0)[0]:
        print_warning("waiting for standard input (end it with Ctrl+D or < /dev/null)")
    return stream.read().decode("utf-8", "replace")
