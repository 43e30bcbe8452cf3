"""Trial 6: a particle thrown into a conical vase, which it leaves over the rim (INEL).

1986, section 15 and plate 7: free flight, inelastic shock on the cone 9 x^2 + 9 y^2 <= 4 z^2, sliding without friction,
exit at the rim z = 45, a parabola, inelastic shock on the plane z = 0. The wall exists only where z < 45 and
x^2 + y^2 < 900: the particle starts above the rim, outside the mathematical cone, and ends outside the vase.

The plate does not print the anticipation of the tangent cone. A_V = 0.5, the best value of trial 5, keeps the distance
to the wall constant ("neither violation nor cessation of contact"); with A_V = 0 the violation grows and would be
seen. The price is the angular momentum about z, which A_V = 0 conserves to rounding (the impulse acts in the meridian
plane of q_m) and A_V = 0.5 loses in proportion to the step, as INEL loses energy. The exact motion is drawn too.
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from contactdynamics.errors import InputError
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plate 7"
PARAMETERS = Options(
    step=Option(0.002, "time step", "s", least=1e-6, most=0.004),
)
QUICK = {}

GRAVITY, RIM_Z, RIM_R = 981.0, 45.0, 30.0
START, SPEED, UNTIL = np.array([45.0, 25.0, 70.0]), np.array([-170.0, -30.0, 60.0]), 1.3
MARK = 0.1  # 50 steps of the plate
SLANT = math.sqrt(13.0)  # inward normal of the cone in (r, z): (-3, 2) / SLANT
PEN = 0.5  # a pen line on a drawing of 1 mm per unit


def beyond_rim(r, z):
    """Where the wall is switched off: over the vase and outside it."""
    return z >= RIM_Z or r >= RIM_R


def wall_gap(t, q):
    """Distance to the cone, negative beyond it; where the wall is switched off, the distance to the rim."""
    r, z = math.hypot(q[0], q[1]), q[2]
    if beyond_rim(r, z):
        return math.hypot(r - RIM_R, z - RIM_Z)
    return (2 * z - 3 * r) / SLANT


def wall_gradient(t, q):
    """Gradient of `wall_gap`."""
    r, z = math.hypot(q[0], q[1]), q[2]
    if beyond_rim(r, z):
        radial, vertical = np.array([r - RIM_R, z - RIM_Z]) / math.hypot(r - RIM_R, z - RIM_Z)
    else:
        radial, vertical = -3 / SLANT, 2 / SLANT
    return np.array([radial * q[0] / r, radial * q[1] / r, vertical])


def thrown(step, anticipation) -> Motion:
    """The motion by INEL."""
    system = System(
        inertia=[1.0, 1.0, 1.0],
        force=lambda t, q, u: (0.0, 0.0, -GRAVITY),
        potential=lambda t, q: GRAVITY * q[2],
        constraints=[
            Constraint(wall_gap, gradient=wall_gradient, name="vase"),
            Constraint(lambda t, q: q[2], gradient=lambda t, q: (0.0, 0.0, 1.0), name="plane"),
        ],
    )
    motion = integrate(system, q=START, u=SPEED, step=step, until=UNTIL, scheme="inel", anticipation=anticipation)
    if not motion.impulses[:, 1].any():
        raise InputError(
            f"With step={step:g} INEL loses so much that the particle stays in the vase; give step<=0.004."
        )
    return motion


class Exact(NamedTuple):
    """The exact motion."""

    shock: float  # s, on the cone
    rim: float  # s, exit
    plane: float  # s, second shock
    loss: float  # share of the kinetic energy lost in the first shock
    lowest: float  # smallest z on the cone
    path: np.ndarray  # (k, 3) for drawing; its last point is at t = 1.3


def flight(t, q, u):
    """Positions (..., 3) after a free flight of the times ``t``."""
    t = np.asarray(t)[..., None]
    return q + t * u - 0.5 * GRAVITY * t**2 * np.array([0.0, 0.0, 1.0])


def slide(start, q, u):
    """Motion on the cone up to the rim: time of exit, positions (k, 3), velocity at the exit.

    There z = 3 r / 2, and L = r^2 phi' is constant: (13/4) r'' = L^2 / r^3 - 3 g / 2.
    """

    def to_rim(t, y):
        return y[0] - RIM_R

    to_rim.terminal, to_rim.direction = True, 1
    r, momentum = math.hypot(q[0], q[1]), q[0] * u[1] - q[1] * u[0]
    solution = solve_ivp(
        lambda t, y: (y[1], (momentum**2 / y[0] ** 3 - 1.5 * GRAVITY) / 3.25, momentum / y[0] ** 2),
        (start, UNTIL), (r, (q[:2] @ u[:2]) / r, math.atan2(q[1], q[0])),
        method="DOP853", rtol=1e-12, atol=1e-12, events=to_rim, dense_output=True,
    )  # fmt: skip
    r, rate, phi = solution.sol(np.linspace(start, solution.t[-1], 300))
    radial, around = np.array([np.cos(phi[-1]), np.sin(phi[-1])]), np.array([-np.sin(phi[-1]), np.cos(phi[-1])])
    velocity = np.append(rate[-1] * radial + momentum / r[-1] * around, 1.5 * rate[-1])
    return solution.t[-1], np.column_stack([r * np.cos(phi), r * np.sin(phi), 1.5 * r]), velocity


def exact() -> Exact:
    """Parabola, shock, cone, parabola, plane."""
    entry = brentq(lambda t: flight(t, START, SPEED)[2] - RIM_Z, 0.1, 1.0)
    shock = brentq(lambda t: wall_gap(t, flight(t, START, SPEED)), entry + 1e-9, entry + 0.1)
    q, before = flight(shock, START, SPEED), SPEED - (0.0, 0.0, GRAVITY * shock)
    n = wall_gradient(shock, q)
    rim, sliding, u = slide(shock, q, before - (before @ n) * n)
    falling = (u[2] + math.sqrt(u[2] ** 2 + 2 * GRAVITY * RIM_Z)) / GRAVITY
    parabola = flight(np.linspace(0, falling, 100), sliding[-1], u)
    last = parabola[-1] + (UNTIL - rim - falling) * u * np.array([1.0, 1.0, 0.0])
    path = np.vstack([flight(np.linspace(0, shock, 100), START, SPEED), sliding, parabola, last])
    loss = (before @ n) ** 2 / (before @ before)
    return Exact(shock, rim, rim + falling, loss, sliding[:, 2].min(), path)


def build(parameters):
    """Motions at the step of the plate, at half of it and without anticipation, and the exact events."""
    step = parameters["step"]
    return {
        "plate": thrown(step, 0.5),
        "half_step": thrown(step / 2, 0.5),
        "no_anticipation": thrown(step, 0.0),
        "exact": exact(),
    }


class Events(NamedTuple):
    """What happened in a computed motion; indices of steps."""

    shock: int  # first impulse of the vase
    last: int  # last impulse of the vase
    plane: int  # first impulse of the plane
    wall: np.ndarray  # distances to the cone from the shock to the last impulse
    exit_z: float  # z where r = 30 on the way out
    momentum: np.ndarray  # x v - y u
    energy: np.ndarray  # total


def events(motion: Motion) -> Events:
    """What is read from a motion: shock, last contact with the vase, landing, violation, rim, momentum, energy."""
    vase, plane = (np.flatnonzero(motion.impulses[:, k, 0] > 0) for k in (0, 1))
    r, z = np.hypot(motion.q[:, 0], motion.q[:, 1]), motion.q[:, 2]
    shock, last = vase[0], vase[-1]
    out = slice(last, last + 4)
    return Events(
        int(shock), int(last), int(plane[0]),
        (2 * z - 3 * r)[shock + 1 : last + 2] / SLANT,
        float(np.interp(RIM_R, r[out], z[out])),
        motion.q[:, 0] * motion.u[:, 1] - motion.q[:, 1] * motion.u[:, 0],
        motion.ledger.kinetic + motion.ledger.potential,
    )  # fmt: skip


def measures(motion: Motion, reference: Exact) -> dict:
    """The numbers of one run."""
    e = events(motion)
    ledger, h = motion.ledger, motion.step
    lost = ledger.contact_work[:, 0, 0]
    flying = max(np.ptp(e.energy[: e.shock + 1]), np.ptp(e.energy[e.last + 1 : e.plane + 1]))
    return {
        "shock_time": (e.shock + 0.5) * h,
        "exit_time": float(motion.times[e.last + 1]),
        "plane_time": (e.plane + 0.5) * h,
        "shock_loss": -lost[e.shock] / ledger.kinetic[e.shock],
        "sliding_loss": -lost[e.shock + 1 :].sum() / ledger.kinetic[e.shock + 1],
        "flight_energy_change": flying / e.energy[0],
        "largest_violation": -e.wall.min(),
        "largest_separation": max(0.0, e.wall.max()),
        "change_of_distance_while_sliding": np.ptp(e.wall),
        "exit_z": e.exit_z,
        "lowest_z": motion.q[: e.last, 2].min(),
        "horizontal_jump_on_plane": np.abs(np.diff(motion.u[e.plane : e.plane + 2, :2], axis=0)).max(),
        "vertical_velocity_after": abs(motion.u[e.plane + 1, 2]),
        "height_on_plane": np.abs(motion.q[e.plane + 1 :, 2]).max(),
        "momentum_lost": 1 - e.momentum[-1] / e.momentum[0],
        "momentum_wandering": np.ptp(e.momentum) / e.momentum[0],
        "end": motion.q[-1],
        "end_error": float(np.linalg.norm(motion.q[-1, :2] - reference.path[-1, :2])),
    }


def check(outcome, parameters):
    """The order of events, the shock on the cone, energy and angular momentum, orders of convergence."""
    reference = outcome["exact"]
    runs = {key: measures(outcome[key], reference) for key in ("plate", "half_step", "no_anticipation")}
    plate, half, plain = runs.values()
    step = parameters["step"]
    order = events(outcome["plate"])
    early = plate["shock_time"] - reference.shock
    rows = [
        Row("order: shock on the cone, exit, shock on the plane (steps)", "in this order",
            [order.shock, order.last, order.plane], 0 < order.shock < order.last < order.plane, "published"),
        Row("time of the shock on the cone (exact value)", reference.shock, plate["shock_time"], abs(early) <= step,
            "closed form"),
        Row("change of energy in the flights", "0", plate["flight_energy_change"],
            plate["flight_energy_change"] < 1e-12, "identity"),
        Row("shock on the plane: jump of the horizontal velocity", "0", plate["horizontal_jump_on_plane"],
            plate["horizontal_jump_on_plane"] == 0, "published"),
        Row("shock on the plane: vertical velocity after", "0 (inelastic)", plate["vertical_velocity_after"],
            plate["vertical_velocity_after"] < 1e-12 * np.abs(SPEED).max(), "published"),
        Row("angular momentum, A_V = 0: relative wandering", "0", plain["momentum_wandering"],
            plain["momentum_wandering"] < 1e-12, "identity"),
    ]  # fmt: skip
    for name, key in (("angular momentum lost", "momentum_lost"), ("energy lost in sliding", "sliding_loss"),
                      ("distance to the exact end", "end_error")):  # fmt: skip
        ratio = plate[key] / half[key]
        rows.append(Row(f"{name}: step / half step", "2 (first order)", ratio, 1.6 < ratio < 2.5, "closed form"))
    if step == PARAMETERS["step"]:
        rows += plate_rows(plate, plain, reference)
    known = {name: getattr(reference, name) for name in ("shock", "rim", "plane", "loss", "lowest")}
    results = {"runs": runs, "exact": known | {"end": reference.path[-1]}}
    return Verdict(results, rows)


def plate_rows(plate, plain, reference):
    """What the text reads off the plate, at the accuracy of its pen."""
    shock, landing = plate["shock_loss"] / reference.loss, plate["plane_time"]
    return [
        Row("largest violation while sliding", f"invisible: < {PEN}", plate["largest_violation"],
            plate["largest_violation"] < PEN, "published"),
        Row("largest separation while sliding", f"invisible: < {PEN}", plate["largest_separation"],
            plate["largest_separation"] < PEN, "published"),
        Row("change of the distance to the wall while sliding", f"invisible: < {PEN}",
            plate["change_of_distance_while_sliding"], plate["change_of_distance_while_sliding"] < PEN, "published"),
        Row("the same with A_V = 0, / that of A_V = 0.5", ">> 1",
            plain["change_of_distance_while_sliding"] / plate["change_of_distance_while_sliding"],
            plain["change_of_distance_while_sliding"] > 10 * plate["change_of_distance_while_sliding"],
            "own reference"),
        Row("z at the exit", RIM_Z, plate["exit_z"], abs(plate["exit_z"] - RIM_Z) < PEN, "published"),
        Row("time of the shock on the plane (exact value)", reference.plane, landing,
            abs(landing / reference.plane - 1) < 0.01, "own reference"),
        Row("distance to the plane after landing", f"invisible: < {PEN}", plate["height_on_plane"],
            plate["height_on_plane"] < PEN, "own reference"),
        Row("kinetic energy lost in the first shock / exact", "1", shock, abs(shock - 1) < 0.03, "closed form"),
    ]  # fmt: skip


def figure(outcome, parameters):
    """The plate: the vase from the side and from above."""
    figure, (side, top) = plt.subplots(
        2, 1, figsize=(7.2, 13), sharex=True, layout="constrained", height_ratios=(84, 126)
    )
    draw(side, outcome, 2)
    side.fill([-RIM_R, 0, RIM_R], [RIM_Z, 0, RIM_Z], color="0.93", zorder=0)
    side.plot([-RIM_R, 0, RIM_R, -RIM_R], [RIM_Z, 0, RIM_Z, RIM_Z], color="0.45", lw=1)
    side.axhline(0, color="0.45", lw=1)
    side.set(ylabel="z", ylim=(-6, 78), title="vertical projection xOz")
    draw(top, outcome, 1)
    around = np.linspace(0, 2 * np.pi, 200)
    top.plot(RIM_R * np.cos(around), RIM_R * np.sin(around), color="0.45", lw=1)
    top.plot(0, 0, ".", color="0.45", ms=3)
    top.set(xlabel="x", ylabel="y", ylim=(-32, 94), title="horizontal projection xOy")
    top.legend(loc="lower right", frameon=False, fontsize=8)
    top.text(0.98, 0.97, caption(parameters), transform=top.transAxes, ha="right", va="top", fontsize=8,
             family="monospace")  # fmt: skip
    return figure


def draw(ax, outcome, axis):
    """One projection: the computed motion with its marks, and the exact one."""
    motion, path = outcome["plate"], outcome["exact"].path
    ax.plot(path[:, 0], path[:, axis], color="tab:orange", lw=0.9, label="exact")
    ax.plot(motion.q[:, 0], motion.q[:, axis], "k", lw=0.9, label="INEL, $A_V$ = 0.5")
    marks = np.arange(round(motion.times[-1] / MARK) + 1)
    at = motion.q[np.rint(marks * MARK / motion.step).astype(int)][:, [0, axis]]
    ax.plot(*at.T, "k+", ms=7, mew=0.9)
    for mark, place in zip(marks, at, strict=True):
        shift = (5, -9) if axis == 2 and mark > 10 else (4, 4)  # clear of the curves
        label = ax.annotate(f"{mark}", place, xytext=shift, textcoords="offset points", fontsize=8)
        label.set_path_effects([withStroke(linewidth=2.5, foreground="w")])
    ax.set(aspect="equal", xlim=(-34, 54))


def caption(parameters):
    """The lines printed on the plate."""
    step = parameters["step"]
    return (
        f"step {step:g}; total {round(UNTIL / step)}; mark every {round(MARK / step)}\n"
        "P = 0, Q = 0, R = -981\nX = 45, Y = 25, Z = 70\nU = -170, V = -30, W = 60"
    )
