"""How thin a structure may be: by limit analysis, held from rest, and how a thinner one falls (`dome`, `vault`)."""

import math
from typing import NamedTuple

import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.experiments.runner import Option, Row, recorded
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes.scene import Scene

GRAVITY, RADIUS = 9.81, 5.0  # m/s^2; of the mean line, m
STILL = 1e-3  # of the thickness: what stands moves less than this while it is held


class Fall(NamedTuple):
    """How a structure fell."""

    frames: list
    first: int  # number of the stone that was the first to move by a tenth of the thickness
    time: float  # when, s; nan where nothing did
    names: dict  # number of a stone: what it is called

    def results(self) -> dict:
        """Which stone was the first, and when, s; None where nothing fell."""
        when = None if math.isnan(self.time) else self.time
        return {"first_to_fall": self.names.get(self.first, "nothing"), "first_motion": when}


def falls(fall: Fall, thin: float, bound: float) -> Row:
    """That a structure ``thin`` times the limit ``bound``, over the radius, has moved by a tenth of its thickness."""
    first, last = fall.frames[0].positions, fall.frames[-1].positions
    share = float(np.linalg.norm(last - first, axis=1).max()) / (thin * bound * RADIUS)
    return Row(f"falls at {thin:g} of the limit: moved / thickness", "> 0.1", share, share > 0.1, "own reference")


def options(what: str) -> dict:
    """The options that the thinnest ``what`` of any form is asked with."""
    return {
        "friction": Option(0.7, "friction coefficient", "1", least=0.05, most=5),
        "accuracy": Option(0.01, "to which the thickness is found, over itself", "1", least=1e-4, most=0.2),
        "hold": Option(1.0, f"time for which a {what} is held", "s", least=0.1, most=20),
        "thin": Option(0.9, f"thickness of the {what} that falls, over the limit", "1", least=0.3, most=0.99),
        "falling": Option(1.5, "time at most for which it falls", "s", least=0.1, most=20),
        "step": Option(2e-3, "time step", "s", least=1e-5, most=5e-3),
    }


def stone_scene(friction: float) -> Scene:
    """An empty scene of stone."""
    scene = Scene(gravity=(0, 0, -GRAVITY))
    scene.material("stone", density=2000.0)
    scene.contact("stone", "stone", friction=friction)
    return scene


def touching(scene: Scene):
    """The frame of a scene with the contacts that may push."""
    sim = Simulation(scene, time_step=1e-3)
    return sim.frame()._replace(contacts=sim.is_equilibrium(tolerance=1.0, max_iterations=1).contacts)


def bisect(stands, low: float, high: float, accuracy: float) -> float:
    """The least ratio from which on ``stands`` holds, within ``accuracy`` of it; nan where not even ``high`` does."""
    if not stands(high):
        return math.nan
    while high - low > accuracy * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def limit(make, low: float, high: float, accuracy: float) -> float:
    """The thinnest that forces within the laws can hold; ``make(ratio)`` gives a scene."""
    found = bisect(lambda ratio: bool(analysis.balance(touching(make(ratio)))), low, high, accuracy)
    if math.isnan(found):
        raise InputError(f"Not even a thickness of {high:g} radii stands; give more friction.")
    return found


def moves(make, ratio: float, p) -> float:
    """How far a stone has moved while it was held from rest, over the thickness; ends where it is much."""
    sim = Simulation(make(ratio), time_step=p["step"], tolerance=1e-4, max_iterations=2000, on_failure="ignore")
    start, moved = sim.positions, 0.0
    while sim.time < p["hold"] and moved < 0.02:
        sim.step()
        moved = float(np.abs(sim.positions - start).max()) / (ratio * RADIUS)
    return moved


def held(make, bound: float, p) -> tuple[float, list]:
    """The thinnest that stands when it is held from rest, and the trials (ratio, moved)."""
    trials = []

    def stands(ratio):
        trials.append((ratio, moves(make, ratio, p)))
        return trials[-1][1] <= STILL

    return bisect(stands, 0.9 * bound, 1.4 * bound, p["accuracy"]), trials


def fall(make, ratio: float, names: dict, p) -> Fall:
    """Let a structure of this ``ratio`` fall; ``names`` of its stones by number."""
    sim = Simulation(make(ratio), time_step=p["step"], tolerance=1e-3, max_iterations=500, on_failure="ignore")
    start, first, when, frames = sim.positions, -1, math.nan, [sim.frame()]
    marks = iter((0.02, 0.06, 0.2))  # of the radius
    mark = next(marks)
    with recorded(sim, until=p["falling"]):
        while sim.time < p["falling"] and mark < 1:
            sim.step()
            moved = np.linalg.norm(sim.positions - start, axis=1)
            if first < 0 and moved.max() > 0.1 * ratio * RADIUS:
                first, when = int(np.argmax(moved)), sim.time
            if moved.max() > mark * RADIUS:
                frames.append(sim.frame())
                mark = next(marks, 1.0)
    frames.append(sim.frame())
    return Fall(frames[:4], first, when, names)
