"""The error tree of the agent; each error knows its exit code on the command line (tape.md §8).

GongError                      1
├── ConfigurationError         2  an invalid setting or flag; names the key and its file
├── UnknownModel               2  no provider has a model of this name
├── FolderGone                 1  the session's folder no longer exists
├── SessionBusy                5  a prompt while another one is running
├── SessionClosed              1  a prompt to a closed session
├── NothingToCompact           1  a compaction would free too little, or nothing
│   ├── NotSmaller             1  a summary would not make the next request smaller
│   └── CompactionCancelled    1  a hook cancelled the compaction
├── OperationCancelled         1  a hook cancelled a fork or a switch
├── NothingToUndo              1  there is no compaction or handoff to undo
├── PlaceLost                  1  the connection to another place was lost
├── FilesElsewhere             1  files to undo are in another environment
├── SummaryUnusable            1  a model's summary is unusable
├── NoObject                   1  an answer does not match the requested schema
└── ModelError                 1  a model call failed; `provider`, `status`, `retryable` say how
    ├── AuthenticationError    6  the key is missing or refused
    ├── AccessDenied           6  the key may not do this
    ├── ModelNotFound          3  the provider does not know the model
    ├── InvalidRequest         1  the provider refused the request as malformed
    │   ├── MalformedHistory   1  the order or pairing of messages was refused
    │   └── UnsupportedToolChoice  1  the provider cannot force or forbid tool calls
    ├── RedirectRefused        2  the address redirects to another one
    ├── AnswerTooLarge         1  the answer exceeds the size limit; the rest was not read
    ├── ContextLengthExceeded  1  the request does not fit the context window
    ├── ContentFiltered        1  the provider's filter stopped it
    ├── QuotaExceeded          1  credit or quota used up: waiting does not help
    ├── RateLimited           75  too many requests; `retry_after` in seconds
    ├── ServerError           75  the provider failed (5xx, overloaded)
    ├── NetworkError          75  no connection, or it was lost
    ├── RequestTimeout        75  no answer before the timeout
    ├── StreamError           75  the stream stopped early or was malformed
    ├── Aborted              130  the caller stopped the answer
    └── ScriptEnded            1  a scripted model has no answers left
"""

from __future__ import annotations


class GongError(Exception):
    """The base of the agent's errors; the text says what to do."""

    exit_code = 1


class ConfigurationError(GongError):
    """An invalid setting or flag; the text names the key and its file."""

    exit_code = 2


class UnknownModel(ConfigurationError):
    """No provider has a model of this name."""


class FolderGone(GongError):
    """The session's folder no longer exists."""


class SessionBusy(GongError):
    """A prompt while another one is running: steer, follow up, or wait."""

    exit_code = 5


class SessionClosed(GongError):
    """A prompt to a closed session."""


class NothingToCompact(GongError):
    """A compaction would free too little, or nothing."""


class NothingToRetry(GongError):
    """The last answer is complete, or there is no prompt."""


class NotSmaller(NothingToCompact):
    """A summary of older messages would not make the next request smaller."""


class CompactionCancelled(NothingToCompact):
    """A hook cancelled the compaction; the session is as it was."""


class OperationCancelled(GongError):
    """A hook cancelled a fork or a switch; nothing changed."""


class SummaryUnusable(GongError):
    """A model's summary is unusable; the text says why."""


class NothingToUndo(GongError):
    """The branch has no compaction, prompt or undo that could be undone."""


class FilesElsewhere(GongError):
    """Files that would go back were changed in another environment; nothing was done.

    `environments` are their names, `paths` the files.
    """

    def __init__(self, environments: tuple[str, ...], paths: tuple[str, ...]) -> None:
        self.environments, self.paths = environments, paths
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""  # noqa: PLR2004 (enough)
        super().__init__(
            f"nothing was undone: these files were changed in {', '.join(environments)}, not on"
            f" this machine: {', '.join(paths[:3])}{more}; add --env PLACE, or let the"
            " conversation alone go back"
        )


class PlaceLost(GongError):
    """The connection to the place where tools act was lost, or could not be made.

    `has_started` says whether what was asked for had begun there; None where that is not known.
    """

    def __init__(self, place: str, why: str, *, has_started: bool | None) -> None:
        self.place, self.why, self.has_started = place, why, has_started
        effect = {
            True: "What was running there had started; it is ended with the connection, and how far"
            " it came is not known: look before you do it again.",
            False: "Nothing was started there.",
            None: "Whether it had an effect there is not known: look before you do it again.",
        }[has_started]
        super().__init__(f"the connection to {place} is lost: {why}. {effect}")


class NoObject(GongError):
    """An answer does not match the requested schema; `text` is the answer."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class ModelError(GongError):
    """A model call failed; `status` is the HTTP status, `retry_after` is in seconds.

    `advice` says what a person can do; the message ends with it.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(f"{message}{advice}")
        self.provider, self.status, self.code = provider, status, code
        self.retry_after, self.advice = retry_after, advice


class AuthenticationError(ModelError):
    """The key is missing or refused."""

    exit_code = 6


class AccessDenied(ModelError):
    """The key may not do this."""

    exit_code = 6


class ModelNotFound(ModelError):
    """The provider does not know the model."""

    exit_code = 3


class InvalidRequest(ModelError):
    """The provider refused the request as malformed."""


class MalformedHistory(InvalidRequest):
    """The order or pairing of the messages was refused; a plainer request may succeed."""


class UnsupportedToolChoice(InvalidRequest):
    """The provider cannot force or forbid tool calls."""


class RedirectRefused(ModelError):
    """The address redirects to another one, which was not sent the key."""

    exit_code = 2


class AnswerTooLarge(ModelError):
    """An answer exceeds the size limit; its beginning is recorded, the rest was not read."""


class ContextLengthExceeded(ModelError):
    """The request does not fit the model's context window."""


class ContentFiltered(ModelError):
    """The provider's filter stopped the answer."""


class QuotaExceeded(ModelError):
    """Credit or quota is used up: waiting does not help."""


class RateLimited(ModelError):
    """Too many requests; `retry_after` says how long to wait, in seconds."""

    exit_code = 75
    retryable = True


class ServerError(ModelError):
    """The provider failed (5xx, overloaded)."""

    exit_code = 75
    retryable = True


class NetworkError(ModelError):
    """No connection, or it was lost before an answer began."""

    exit_code = 75
    retryable = True


class RequestTimeout(ModelError):
    """No answer before the timeout."""

    exit_code = 75


class StreamError(ModelError):
    """The stream stopped early or was malformed."""

    exit_code = 75
    retryable = True


class Aborted(ModelError):
    """The caller stopped the answer with its `abort_signal`; the connection is closed."""

    exit_code = 130


class ScriptEnded(ModelError):
    """A scripted model has no answers left."""
