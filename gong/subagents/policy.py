"""The permissions of a sub-agent: those of its parent, of now, in its own folder (C34).

    the parent's mode      of the sub-agent's type         holds
    ---------------------  ------------------------------  --------------
    any                    none                            the parent's
    locked                 any                             locked
    any other              plan or locked                  the type's

A sub-agent that was given a folder is restricted to it, as a session is to its project: what is
outside, also of its parent's folders, has to be asked. What has to be asked is asked where the
parent asks, with the sub-agent's id; where the parent asks nobody it is refused. What a person
allows for the session holds for both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..policy.approval import find_mode
from ..policy.modes import PermissionMode, parse_mode
from ..policy.permissions import PermissionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.model.entries import Approval

    from ..env.sandbox.sandbox import Sandbox
    from ..policy.approval import ApprovalAnswer, ApprovalRequest, Asker, Consultant
    from ..policy.decision import Policy, Verdict
    from ..tools.tool import PreparedCall


class ChildPolicy:
    """Decides about the calls of one sub-agent as its parent's policy would."""

    def __init__(
        self,
        find_policy: Callable[[], Policy],
        agent: str,
        cwd: str | None = None,
        mode: PermissionMode | None = None,
        *,
        is_confined: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Take the parent's policy of now; `cwd` is a folder other than the parent's.

        With `is_confined` only what is in its folder is inside. `sandbox` is that of its
        environment.
        """
        self.sandbox = sandbox
        self._find_policy, self._agent = find_policy, agent
        self._cwd, self._mode, self._is_confined = cwd, mode, is_confined
        self.consult: Consultant | None = None
        """Hooks, which are asked first."""
        self.ask: Asker | None = None
        """Nobody of its own: the parent's is asked."""
        self.timeout: float | None = None

    @property
    def mode(self) -> PermissionMode:
        """The mode of now."""
        mode = parse_mode(find_mode(self._find_policy()))
        return mode if self._mode is None or mode is PermissionMode.LOCKED else self._mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        self._mode = mode

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Decide about a call."""
        return await self.resolve()(prepared)

    async def ask_outside(self, prepared: PreparedCall, refused: Sequence[str]) -> Approval | None:
        """Ask where the parent asks whether a call may leave the sandbox."""
        policy = self.resolve()
        if not isinstance(policy, PermissionPolicy):
            return None
        return await policy.ask_outside(prepared, refused)

    def resolve(self) -> Policy:
        """Return the policy that decides now."""
        parent = self._find_policy()
        if isinstance(parent, ChildPolicy):
            parent = parent.resolve()
        if not isinstance(parent, PermissionPolicy):
            return parent
        ask = parent.ask
        return replace(
            parent,
            cwd=self._cwd or parent.cwd,
            folders=() if self._is_confined else parent.folders,
            is_confined=self._is_confined or parent.is_confined,
            mode=self.mode,
            sandbox=self.sandbox,
            ask=None if ask is None else _NamedAsker(ask, self._agent),
            consult=self.consult or parent.consult,
        )


class _NamedAsker:
    """Asks where the parent asks, and says who wants to know."""

    def __init__(self, ask: Asker, agent: str) -> None:
        self._ask, self._agent = ask, agent

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer to a question about a call."""
        return await self._ask(request._replace(agent=request.agent or self._agent))
