"""The rigid block that rocks on a table: closed forms, the smooth motion between impacts, and the scene.

Half width b, half height h, R = hypot(b, h), alpha = atan(b / h), I_0 = 4/3 m R^2 about a corner, p^2 = 3 g / (4 R).
While it rocks about a corner that does not slide, with tilt theta (positive to the left, s its sign) and ground
acceleration a to the right,

    theta'' = -p^2 (s sin(alpha - |theta|) - (a / g) cos(alpha - |theta|))   (Housner 1963, without small angles).
"""

import contextlib
import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad, solve_ivp

from contactdynamics.experiments.runner import recorded
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes.loads import Drive
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.polygons import Rectangle

GRAVITY = 9.81


class Block(NamedTuple):
    """A block of width 2 b and height 2 h."""

    width: float
    height: float

    @property
    def slenderness(self) -> float:
        """Height over width."""
        return self.height / self.width

    @property
    def alpha(self) -> float:
        """Tilt at which the centre stands over the corner: the block topples beyond, rad."""
        return math.atan2(self.width, self.height)

    @property
    def rate(self) -> float:
        """p, 1/s."""
        return math.sqrt(3 * GRAVITY / (2 * math.hypot(self.width, self.height)))


def impact_ratio(slenderness, friction) -> float:
    """Angular velocity after over before the impact of the other corner, Moreau's law, restitution 0.

    s = height / width. The new corner sticks where friction >= 3 s / (4 s^2 + 1): (2 s^2 - 1) / (2 (s^2 + 1)), which is
    Housner's 1 - 3/2 sin^2 alpha. It slides otherwise: (s^2 - 2 + 3 f s) / (s^2 + 4 - 3 f s). A block whose ratio would
    be negative stops, for both corners stay on the table.
    """
    s = np.asarray(slenderness, dtype=float)
    bound = 3 * s / (4 * s**2 + 1)
    sticks, used = friction >= bound, np.minimum(friction, bound)
    sliding = (s**2 - 2 + 3 * used * s) / (s**2 + 4 - 3 * used * s)
    ratio = np.where(sticks, (2 * s**2 - 1) / (2 * (s**2 + 1)), sliding)
    return np.maximum(0.0, ratio)[()]


def housner_period(block: Block, tilt: float) -> float:
    """T = 4 / p arccosh(1 / (1 - tilt / alpha)): period of a slender block released at ``tilt``, without loss."""
    return 4 / block.rate * math.acosh(1 / (1 - tilt / block.alpha))


def quarter(block: Block, tilt: float) -> float:
    """Time from the release at ``tilt`` to the impact, without small angles.

    theta'^2 = 2 p^2 (cos(alpha - theta) - cos(alpha - tilt)); theta = tilt - u^2 removes the root at the release.
    """

    def slowness(u):
        drop = math.cos(block.alpha - tilt + u * u) - math.cos(block.alpha - tilt)
        limit = math.sin(tilt - block.alpha)  # of drop / u^2 for u -> 0, up to its sign
        speed = math.sqrt(2 * (abs(drop) / (u * u) if u > 1e-6 else abs(limit)))
        return 2 / (block.rate * speed)

    return quad(slowness, 0.0, math.sqrt(tilt), epsabs=1e-12)[0]


def scene(
    block: Block, *, friction: float, tilt: float = 0.0, spin: float = 0.0, ground=None, gravity: float = GRAVITY
) -> Scene:
    """The block on a table, tilted about its left lower corner; ``ground`` is the velocity of the table.

    With a ``spin`` it turns about that corner; without friction nothing holds the corner, and the centre has no
    horizontal velocity.
    """
    out = Scene(gravity=(0.0, -gravity))
    out.material("stone", density=2400.0)
    out.contact("stone", "stone", friction=friction)
    table = Rectangle(6 * block.height, 0.2 * block.height)
    motion = {"fixed": True} if ground is None else {"motion": Drive(velocity=ground)}
    out.add(table, material="stone", position=(0.0, -0.1 * block.height), **motion)
    b, h = 0.5 * block.width, 0.5 * block.height
    c, s = math.cos(tilt), math.sin(tilt)
    centre = np.array([-b + c * b - s * h, s * b + c * h])
    arm = centre + np.array([b, 0.0])
    out.add(Rectangle(block.width, block.height), material="stone", position=centre, rotation=tilt,
            velocity=(-spin * arm[1] * (friction > 0), spin * arm[0]), spin=spin)  # fmt: skip
    return out


def simulate(model: Scene, step: float, until: float, tolerance: float = 1e-8, name: str = ""):
    """Times, tilts and spins (K,) of a scene's block, and the simulation, recorded where it has a ``name``."""
    sim = Simulation(model, time_step=step, tolerance=tolerance)
    stone = sim.body(1)
    times, tilts, spins = [0.0], [stone.rotation], [stone.spin]
    with recorded(sim, until=until, name=name) if name else contextlib.nullcontext():
        for _ in range(round(until / step)):
            sim.step()
            times.append(sim.time)
            tilts.append(stone.rotation)
            spins.append(stone.spin)
            if abs(tilts[-1]) > 1.2:
                break
    return np.array(times), np.array(tilts), np.array(spins), sim


def smooth_motion(block: Block, acceleration, until: float, *, tilt: float = 0.0, ratio: float | None = None):
    """Tilt over time by the smooth equation between impacts, each of which multiplies the spin: the reference.

    ``acceleration`` of the ground as a function of t. A block at rest starts when |a| exceeds g / slenderness.
    """
    ratio = float(impact_ratio(block.slenderness, math.inf)) if ratio is None else ratio
    times, tilts = [0.0], [tilt]
    t, state, side = 0.0, np.array([tilt, 0.0]), 1.0 if tilt > 0 else 0.0
    while t < until:
        if side == 0.0:  # at rest: wait until the ground pulls hard enough
            grid = np.arange(t, until, 1e-4)
            pull = np.array([acceleration(x) for x in grid]) / GRAVITY * block.slenderness
            go = np.flatnonzero(np.abs(pull) > 1)
            if not len(go):
                times.append(until)
                tilts.append(0.0)
                break
            t, side = float(grid[go[0]]), float(np.sign(pull[go[0]]))
            state = np.zeros(2)

        def rate(x, y, side=side):
            lean = block.alpha - side * y[0]
            pull = acceleration(x) / GRAVITY
            return y[1], -(block.rate**2) * (side * math.sin(lean) - pull * math.cos(lean))

        def impact(x, y, side=side, t=t):
            return side * y[0] + (1e-12 if x <= t + 1e-6 else 0.0)

        def toppled(x, y):
            return abs(y[0]) - 1.2

        impact.terminal, impact.direction, toppled.terminal = True, -1, True
        run = solve_ivp(rate, (t, until), state, events=(impact, toppled), rtol=1e-9, atol=1e-11, max_step=0.004)
        times += run.t[1:].tolist()
        tilts += run.y[0, 1:].tolist()
        t, state = float(run.t[-1]), run.y[:, -1]
        if len(run.t_events[1]):
            break
        if len(run.t_events[0]):
            state = np.array([0.0, ratio * state[1]])
            side = -side if abs(state[1]) > 1e-4 else 0.0
    return np.array(times), np.array(tilts)
