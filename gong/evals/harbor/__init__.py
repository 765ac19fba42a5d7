"""gong inside Harbor: its agent, and environments that need no daemon of docker (docs/evals.md).

    harbor run -a gong.evals.harbor:GongAgent -e gong.evals.harbor:BubblewrapEnvironment

Harbor imports these; nothing else of gong does, and Harbor is no dependency of it.
"""

from .agent import GongAgent
from .environments import BubblewrapEnvironment, PodmanEnvironment

__all__ = ["BubblewrapEnvironment", "GongAgent", "PodmanEnvironment"]
