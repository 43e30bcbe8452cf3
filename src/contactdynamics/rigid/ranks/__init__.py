"""Several processes on one scene, by MPI: see `team`."""

import contextvars

from ...errors import InputError
from ..equations.contract import GROUPS
from ..threads import Team

SHARED = contextvars.ContextVar("ranks", default=None)  # the `World` of simulations that are given none: see `cli`


def leads() -> bool:
    """Whether this process writes what a command leaves behind."""
    return SHARED.get() is None or SHARED.get().leads


def first(action) -> None:
    """Let the process that writes do something before the others go on; its error stops all."""
    if SHARED.get() is None:
        action()
    else:
        SHARED.get().first(action)


def workers(threads: int, ranks) -> Team:
    """The workers of a simulation: ``threads`` of this process, or of each process of the communicator ``ranks``."""
    if ranks is None and SHARED.get() is None:
        return Team(int(threads))
    from .team import RankTeam
    from .world import known

    world = SHARED.get() if ranks is None else known(ranks)
    if world.ranks * threads > GROUPS:
        times = f" of {threads} threads each" if threads > 1 else ""
        raise InputError(
            f"A scene got {world.ranks} ranks{times}, and is cut into {GROUPS} groups of slabs; start "
            f"{GROUPS // threads} processes at most."
        )
    return Team(int(threads)) if world.ranks == 1 else RankTeam(world, int(threads))
