"""The error tree of the agent; each error knows its exit code on the command line (tape.md §8).

GongError                      1
├── ConfigurationError         2  a setting or flag that cannot be; names the key and its file
├── UnknownModel               2  no provider answers to this name
├── FolderGone                 1  the folder the session works in is no longer there
├── SessionBusy                5  a prompt while another one is being answered
├── SessionClosed              1  a prompt to a session that has ended
├── NothingToCompact           1  what a compaction would leave out is too little, or nothing
│   └── NotSmaller          1  a summary would make the next request no smaller
├── NothingToUndo              1  no compaction or handoff that could be taken back
├── SummaryUnusable            1  what a model gave as a summary is none
├── NoObject                   1  an answer is not an object of the shape that was asked for
└── ModelError                 1  a model call failed; `provider`, `status`, `retryable` say how
    ├── AuthenticationError    6  the key is missing or refused
    ├── AccessDenied           6  the key may not do this
    ├── ModelNotFound          3  the provider does not know the model
    ├── InvalidRequest         1  the provider refused the request as malformed
    │   ├── MalformedHistory   1  it is the order or pairing of the messages that was refused
    │   └── UnsupportedToolChoice  1  it cannot be told that a tool must, or must not, be called
    ├── RedirectRefused        2  the address sends the call on to another one
    ├── AnswerTooLarge         1  the answer is larger than any real one: the rest was not read
    ├── ContextLengthExceeded  1  the request does not fit the window
    ├── ContentFiltered        1  the provider's filter stopped it
    ├── QuotaExceeded          1  no money or quota left: waiting does not help
    ├── RateLimited           75  too many requests; `retry_after` in seconds
    ├── ServerError           75  the provider failed (5xx, overloaded)
    ├── NetworkError          75  no connection, or it broke
    ├── RequestTimeout        75  no answer in time
    ├── StreamError           75  the answer stopped or made no sense on the way
    ├── Aborted              130  the caller stopped the answer
    └── ScriptEnded            1  a scripted model was asked for more answers than it has
"""

from __future__ import annotations


class GongError(Exception):
    """Something went wrong in the agent; the text says what to do."""

    exit_code = 1


class ConfigurationError(GongError):
    """A setting or flag that cannot be; the text names the key and its file."""

    exit_code = 2


class UnknownModel(ConfigurationError):
    """No provider answers to this model name."""


class FolderGone(GongError):
    """The folder the session works in is no longer there."""


class SessionBusy(GongError):
    """A prompt while another one is being answered: steer, follow up, or wait."""

    exit_code = 5


class SessionClosed(GongError):
    """A prompt to a session that has ended."""


class NothingToCompact(GongError):
    """What a compaction would leave out is too little, or nothing."""


class NotSmaller(NothingToCompact):
    """With a summary in place of older messages the next request would be no smaller."""


class NothingToUndo(GongError):
    """No compaction or handoff on the branch that could be taken back."""


class NoObject(GongError):
    """An answer is not an object of the shape that was asked for; `text` is what came."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class ModelError(GongError):
    """A model call failed; `status` is the HTTP status, `retry_after` is in seconds."""

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider, self.status, self.code = provider, status, code
        self.retry_after = retry_after


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
    """The order or pairing of the messages was refused: mended, they may be sent once more."""


class UnsupportedToolChoice(InvalidRequest):
    """The provider cannot be told that a tool must, or must not, be called."""


class RedirectRefused(ModelError):
    """The address sends the call on to another one, which was not given the key."""

    exit_code = 2


class AnswerTooLarge(ModelError):
    """An answer is larger than any real one; what came before is kept, the rest was not read."""


class ContextLengthExceeded(ModelError):
    """The request does not fit the model's window."""


class ContentFiltered(ModelError):
    """The provider's filter stopped the answer."""


class QuotaExceeded(ModelError):
    """No money or quota left: waiting does not help."""


class RateLimited(ModelError):
    """Too many requests; `retry_after` says how long to wait, in seconds."""

    exit_code = 75
    retryable = True


class ServerError(ModelError):
    """The provider failed (5xx, overloaded)."""

    exit_code = 75
    retryable = True


class NetworkError(ModelError):
    """No connection, or it broke before an answer began."""

    exit_code = 75
    retryable = True


class RequestTimeout(ModelError):
    """No answer in time."""

    exit_code = 75


class StreamError(ModelError):
    """The answer stopped, or made no sense, on the way."""

    exit_code = 75
    retryable = True


class Aborted(ModelError):
    """The caller stopped the answer with its `abort_signal`; the connection is closed."""

    exit_code = 130


class ScriptEnded(ModelError):
    """A scripted model was asked for more answers than it has."""
