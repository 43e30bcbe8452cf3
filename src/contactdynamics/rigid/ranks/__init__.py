"""Several processes on one scene, by MPI: see `team`."""

import contextvars

from ...errors import InputError
from ..equations.contract import GROUPS
from ..order import group_count
from ..threads import Team, cores

PAYS = 4000  # contacts or bodies from which "auto" takes all cores
FEWEST = 20_000  # contacts from which processes share them: to wait for each other takes longer than to sweep fewer
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


def workers(threads, ranks, bodies: int) -> Team:
    """The workers of a simulation: ``threads`` of this process, or of each process of the communicator ``ranks``.

    "auto": as many as there are cores and groups of contacts, of which each of so many ``bodies`` may have three, where
    contacts or bodies are more than `PAYS`.
    """
    auto, world = threads == "auto", None
    if ranks is not None or SHARED.get() is not None:
        from .world import known

        world = SHARED.get() if ranks is None else known(ranks)
    count = 1 if world is None else world.ranks
    if auto:
        threads = max(1, min(len(cores()), group_count(3 * bodies)) // count)
    if count * threads > GROUPS:
        times = f" of {threads} threads each" if threads > 1 else ""
        raise InputError(
            f"A scene got {count} ranks{times}, and is cut into {GROUPS} groups of slabs at most; start "
            f"{GROUPS // threads} processes at most."
        )
    least = PAYS if auto else 0
    if count == 1:
        return Team(int(threads), least)
    from .team import RankTeam

    return RankTeam(world, int(threads), FEWEST)
