"""The same stage as for the agent, with skills beside it."""

from tests.gong.agent.conftest import Stage, stage  # noqa: F401 (a fixture)

__all__ = ["Stage"]
