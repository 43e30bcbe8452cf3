"""Another version of the package beside this one, each in processes of its own; and the stored pile, for both."""

import os
from pathlib import Path

import numpy as np

from .. import _jit
from ..errors import InputError
from ..experiments.options import Option
from ..experiments.pile import STORED
from ..files import hdf5 as storage
from ..state import FREE

BESIDE = Option("", "the folder src of another version of the package, to be measured as well")


def check(beside: str) -> None:
    """Whether there is such a folder."""
    if beside and not (Path(beside) / "contactdynamics").is_dir():
        raise InputError(f"There is no contactdynamics in {beside}; give the folder src of another version.")


def environment(source: str | None, scratch: str) -> dict:
    """Of a process that finds this version, or that in ``source``, with its machine code in a ``scratch`` folder."""
    package, cache = (source, f"{scratch}/cache") if source else (Path(__file__).parents[2], _jit._cache_root())
    return os.environ | {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1", "CONTACTDYNAMICS_CACHE": str(cache)}


def stored_pile(time: float) -> dict:
    """The grains of the stored pile in its last frame up to a ``time``, s, and its ground."""
    if not STORED.is_file():
        raise InputError(f"There is no stored pile {STORED}: it is part of the source, not of an installed package.")
    with storage.open(STORED) as recording:
        frame = recording[int(np.searchsorted(recording.times, time, side="right")) - 1]
    radii = np.zeros(len(frame.masses))
    radii[frame.ball_bodies] = frame.ball_radii
    free, ball = frame.kinds == FREE, radii > 0
    return {"floor": frame.positions[ball & ~free], "floor_radii": radii[ball & ~free], "radii": radii[free],
            "positions": frame.positions[free], "velocities": frame.velocities[free]}  # fmt: skip
