"""Trial 10: chatter of a body dragged along a wall with friction.

1986, sections 13 to 15 and plates 14 to 16. A plane body of three freedoms (X, Y, theta) touches the wall y = 0 by a
circle; springs pull its point D after a centre that moves at constant speed, and a constant torque CR presses it
against the wall. The torque alone decides what the motion becomes. The regime is told from the second half of the
motion, never from the torque:

- "permanent contact": the contact is never left (CR = -700, an oscillation with two frequencies);
- "periodic": one shock per period (CR = -200, the chalk that draws a dotted line);
- "two shocks", "three shocks", "four shocks": so many kinds of shock in turn (CR = -100: two);
- "erratic": shocks without such a rhythm (CR = -50);
- "tips over": theta has become negative (CR = -800);
- "undetermined": too few shocks to tell; run longer.

The plates print initial values for CR = -700, -200 and -100; other torques start from those of the nearest one. At
the steps of the plates an instant of shock is known to a step only, and the motions are sensitive to it: shocks are
therefore judged by their means, and step=2e-5 gives sharp ones.
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.laws import Law
from contactdynamics.state import STICKING
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plates 14, 15 and 16"
PARAMETERS = Options(
    torque=Option(-200.0, "torque CR that presses the body against the wall; mass 1", "1", least=-1e4, most=1e4),
    step=Option(0.0005, "time step", "s", least=1e-6, most=0.01),
    duration=Option(8.0, "simulated time; the regime is told from its second half", "s", least=3, most=1000),
    compare=Option(True, "whether to run the midpoint scheme too"),
)
QUICK = {"duration": 4.0, "compare": False}

ARM, RADIUS, FRICTION = -1.73205, 1.0, 0.5  # a, b: A = G + a (-sin theta, cos theta), circle of radius b around A
GRIP = (0.0, 1.6)  # DX, DY, in the axes of the body
SPEED, HEIGHT, STIFFNESS = 30.0, 2.7, (200.0, 2000.0)  # VR, YR, (RX, RY); XR(0) = 0; unit mass, GI = 1, no gravity
STARTS = {  # captions of plates 14, 15, 16: (X, Y, TH), (U, V, OM)
    -700.0: ((0.343836, 2.15387, 0.841469), (41.3281, -4.9483, 3.85829)),
    -200.0: ((1.0967, 2.16282, 0.840773), (28.4148, 13.0379, -7.21756)),
    -100.0: ((1.14612, 2.13286, 0.886816), (27.5273, 6.34844, -0.534209)),
}
PLATES = {-700.0: 14, -200.0: 15, -100.0: 16}
REPORTED = {
    -800.0: "tips over",
    -700.0: "permanent contact",
    -200.0: "periodic",
    -100.0: "two shocks",
    -50.0: "erratic",
}
STEPS = {-800.0: 0.002, -700.0: 0.002, -200.0: 0.001, -100.0: 0.0005, -50.0: 0.0005}  # of the plates, or the nearest
INTERVAL = {-700.0: 0.008, -200.0: 0.008, -100.0: 0.0075}  # s between two drawn positions

LIFT = 1e-3 * RADIUS  # a separation less than this is the algorithm's: the tangent leaves a curved boundary by O(h^2)
RHYTHMS = {1: "periodic", 2: "two shocks", 3: "three shocks", 4: "four shocks"}
REPEATS = 6  # of each kind of shock, at least, to call them a kind
ALIKE = 0.3  # shocks of one kind differ by less than this, in velocity and in interval, relative to the mean size


def nearest_plate(torque: float) -> float:
    """The torque, of those of the plates, whose initial values serve for ``torque``."""
    return min(STARTS, key=lambda printed: abs(printed - torque))


def system(parameters) -> System:
    """The body of section 14 with the springs and the torque of trial 10; q = (X, Y, theta)."""
    torque = parameters["torque"]

    def force(t, q, u):
        sine, cosine = math.sin(q[2]), math.cos(q[2])
        arm_x, arm_y = GRIP[0] * cosine - GRIP[1] * sine, GRIP[0] * sine + GRIP[1] * cosine  # GD
        pull_x = STIFFNESS[0] * (SPEED * t - q[0] - arm_x)
        pull_y = STIFFNESS[1] * (HEIGHT - q[1] - arm_y)
        return pull_x, pull_y, torque + arm_x * pull_y - arm_y * pull_x

    wall = Constraint(
        gap=lambda t, q: q[1] + ARM * math.cos(q[2]) - RADIUS,  # eq. 14.1
        contact_map=lambda t, q: ((0.0, 1.0, -ARM * math.sin(q[2])), (1.0, 0.0, q[1])),  # eq. 14.3
        boundary=lambda t, q: (0.0, 0.0),
        law=Law(friction=FRICTION),
        name="wall",
    )
    return System(inertia=[1.0, 1.0, 1.0], force=force, constraints=[wall])


def initial(parameters):
    """(q, u) of the nearest plate; that of plate 14 lies 3e-4 inside the wall and is raised onto it."""
    (x, y, angle), velocity = STARTS[nearest_plate(parameters["torque"])]
    return (x, max(y, RADIUS - ARM * math.cos(angle)), angle), velocity


def build(parameters):
    """The motion of the plate, and where asked a short twin by the midpoint scheme."""
    duration, step = parameters["duration"], parameters["step"]
    chatter, start = system(parameters), initial(parameters)
    motion = integrate(chatter, *start, step=step, until=duration, scheme="planar_friction")
    twin = integrate(chatter, *start, step=step, until=0.25, scheme="midpoint") if parameters["compare"] else None
    return {"motion": motion, "twin": twin}


# ---- reading a motion ------------------------------------------------------------------------------------------------


def lowest_point_velocity(motion: Motion) -> np.ndarray:
    """(N+1, 2) velocity of M1, the particle of the circle that is lowest at that instant."""
    angle, (u, v, spin) = motion.q[:, 2], motion.u.T
    return np.column_stack([u - spin * (ARM * np.cos(angle) - RADIUS), v - spin * ARM * np.sin(angle)])


def offset(motion: Motion) -> np.ndarray:
    """(N+1,) X - XR, the lag of G behind the centre of the springs."""
    return motion.q[:, 0] - SPEED * motion.times


def in_contact(motion: Motion) -> np.ndarray:
    """(N,) whether a step belongs to an episode of contact: an impulse acts, or the gap stays below LIFT until one."""
    pressed = motion.impulses[:, 0, 0] > 0
    bounds = np.flatnonzero(np.diff(pressed)) + 1
    highest = np.maximum.reduceat(motion.gaps[:, 0], np.append(0, bounds))
    lengths = np.diff(np.concatenate([[0], bounds, [len(pressed)]]))
    return pressed | np.repeat(highest < LIFT, lengths)


class Shocks(NamedTuple):
    """The shocks of the second half of a motion: beginnings of episodes of contact (K of them)."""

    times: np.ndarray  # (K,) s
    before: np.ndarray  # (K, 2) velocity of M1 just before
    after: np.ndarray  # (K, 2) and just after
    lasting: np.ndarray  # (K,) steps of the episode of contact that follows
    sticking: np.ndarray  # (K,) share of them that stick


def shocks_of(motion: Motion) -> Shocks:
    """The shocks after the transient."""
    contact, count = in_contact(motion), len(motion.gaps)
    edges = np.diff(contact.astype(int))
    begins, ends = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
    ends = ends[ends > (begins[0] if len(begins) else count)]
    begins = begins[: len(ends)]  # an episode cut by the end of the motion is left out
    late = begins >= count // 2
    begins, ends = begins[late], ends[late]
    velocity, sticks = lowest_point_velocity(motion), motion.status[:, 0] == STICKING
    share = np.array([sticks[i:j].mean() for i, j in zip(begins, ends, strict=True)])
    return Shocks((begins + 0.5) * motion.step, velocity[begins], velocity[begins + 1], ends - begins, share)


def spread(shocks: Shocks, kinds: int) -> float:
    """How much the shocks number k, k + kinds, k + 2 kinds... differ: in velocity or in interval, the worse."""
    intervals = np.diff(shocks.times)
    worst = 0.0
    for values in (shocks.before, intervals[:, None]):
        size = math.sqrt((values**2).sum(axis=1).mean())
        classes = [values[k::kinds] for k in range(kinds)]
        squares = sum(((part - part.mean(axis=0)) ** 2).sum() for part in classes)
        worst = max(worst, math.sqrt(squares / (len(values) - kinds)) / size)
    return worst


def rhythm(shocks: Shocks) -> int:
    """The number of kinds of shock that take turns, 0 when there is no such rhythm.

    The smallest number whose spread is below ALIKE and at most twice the least one (so that a doubled period counts).
    """
    numbers = [kinds for kinds in RHYTHMS if len(shocks.times) >= REPEATS * kinds]
    spreads = {kinds: spread(shocks, kinds) for kinds in numbers}
    least = min(spreads.values())
    fitting = [kinds for kinds in numbers if spreads[kinds] < ALIKE and spreads[kinds] <= 2 * least]
    return min(fitting, default=0)


def regime_of(motion: Motion, shocks: Shocks) -> tuple[str, int]:
    """The regime in words, and the number of kinds of shock."""
    if motion.q[:, 2].min() < 0:
        return "tips over", 0
    if in_contact(motion)[len(motion.gaps) // 2 :].all():
        return "permanent contact", 0
    if len(shocks.times) < REPEATS:
        return "undetermined", 0
    kinds = rhythm(shocks)
    return RHYTHMS.get(kinds, "erratic"), kinds


def main_frequency(values: np.ndarray, step: float) -> float:
    """The highest peak of the spectrum (Hann window, parabola through the logarithms of three points), Hz."""
    power = np.abs(np.fft.rfft((values - values.mean()) * np.hanning(len(values))))
    top = int(power[1:-1].argmax()) + 1
    left, centre, right = np.log(power[top - 1 : top + 2])
    return (top + 0.5 * (left - right) / (left - 2 * centre + right)) / (len(values) * step)


def two_frequency_share(motion: Motion, fast: float, slow: float) -> float:
    """Share of the variance of theta and X - XR carried by the frequencies j fast + k slow, |j| <= 3, |k| <= 4."""
    half = slice(len(motion.gaps) // 2, None, max(1, round(0.004 / motion.step)))
    combinations = {(j, k) for j in range(4) for k in range(-4, 5) if j or k > 0}
    phases = 2 * np.pi * np.outer(motion.times[half], [j * fast + k * slow for j, k in sorted(combinations)])
    basis = np.hstack([np.ones((len(phases), 1)), np.cos(phases), np.sin(phases)])
    shares = []
    for values in (motion.q[half, 2], offset(motion)[half]):
        rest = values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
        shares.append(1 - rest.var() / values.var())
    return min(shares)


# ---- check -----------------------------------------------------------------------------------------------------------


def check(outcome, parameters):
    """The regime of the drag, its periods and shocks, as the report has them."""
    motion, torque = outcome["motion"], parameters["torque"]
    shocks = shocks_of(motion)
    regime, kinds = regime_of(motion, shocks)
    results = {
        "regime": regime,
        "period": None,
        "velocity_before_shock": [],
        "velocity_after_shock": [],
        "contact_after_shock": [],
        "contact_fraction": in_contact(motion)[len(motion.gaps) // 2 :].mean(),
        "shocks": len(shocks.times),
        "lowest_angle": motion.q[:, 2].min(),
    }
    if kinds:
        results |= _kinds_of_shock(shocks, kinds)
    if regime == "permanent contact":
        half = slice(len(motion.gaps) // 2, None)
        fast, slow = (main_frequency(x[half], motion.step) for x in (motion.q[:, 2], offset(motion)))
        share = two_frequency_share(motion, fast, slow)
        results |= {"period": 1 / fast, "slow_period": 1 / slow, "two_frequency_share": share}
    rows = []
    if torque in REPORTED and parameters["step"] <= STEPS[torque]:
        rows.append(Row("regime", REPORTED[torque], regime, regime == REPORTED[torque], "published"))
        if rows[0].passed:
            rows += STATEMENTS[torque](motion, results)
    return Verdict(results, rows + _general_rows(outcome, results))


def _kinds_of_shock(shocks: Shocks, kinds: int) -> dict:
    """Means over each kind of shock, in the order of increasing horizontal velocity, and the period."""
    order = sorted(range(kinds), key=lambda k: shocks.before[k::kinds, 0].mean())
    whole = (len(shocks.times) - 1) // kinds * kinds  # intervals of whole periods
    return {
        "period": (shocks.times[whole] - shocks.times[0]) / (whole // kinds),
        "velocity_before_shock": [shocks.before[k::kinds].mean(axis=0) for k in order],
        "velocity_after_shock": [shocks.after[k::kinds].mean(axis=0) for k in order],
        "contact_after_shock": [float(np.median(shocks.lasting[k::kinds])) for k in order],  # steps
        "sticking_after_shock": [shocks.sticking[k::kinds].mean() for k in order],
        "spread_of_shocks": spread(shocks, kinds),
    }


def _general_rows(outcome, results) -> list[Row]:
    """What holds at any torque and step."""
    motion, twin = outcome["motion"], outcome["twin"]
    closure = np.abs(motion.ledger.closure).max() / motion.ledger.kinetic.max()
    approach = -lowest_point_velocity(motion)[:, 1].min()
    violation = max(0.0, -motion.gaps.min())
    depth = violation / (approach * motion.step)  # at most 1 + O(step^2): the gap cannot close further in a step
    normal, tangential = motion.impulses[:, 0].T
    outside = (np.abs(tangential) - FRICTION * normal).max()
    work = motion.ledger.contact_work.sum()
    results |= {"violation": violation, "closure": closure}
    rows = [
        Row("error of the energy ledger, relative", 0, closure, closure < 1e-12, "identity"),
        Row("violation / (step x fastest approach)", "at most 1", depth, depth <= 1.01, "identity"),
        Row("impulse outside the friction cone", 0, outside, outside <= 1e-12 * normal.max(), "identity"),
        Row("work of the contact", "not positive", work, work <= 0, "identity"),
    ]
    if twin is not None:
        difference = np.abs(twin.q - motion.q[: len(twin.q)]).max()
        results["difference_of_schemes"] = difference
        rows.append(Row("schemes of 1986 and of 2003 differ by", 0, difference, difference < 1e-9, "own reference"))
    return rows


def _plate_14(motion, results):
    fast, slow, share = results["period"], results["slow_period"], results["two_frequency_share"]
    return [
        Row("period of theta, period of X - XR", "the second longer", (fast, slow), fast < 0.5 * slow, "published"),
        Row("share of two frequencies in the motion", "all: doubly periodic", share, share > 0.99, "published"),
    ]


def _plate_15(motion, results):
    before, after = results["velocity_before_shock"][0], results["velocity_after_shock"][0]
    lasting = results["contact_after_shock"][0]
    return [
        Row("horizontal velocity before the shock", "about -14", before[0], abs(before[0] + 14) < 0.5, "published"),
        Row(
            "horizontal velocity after the shock", 0, after[0], abs(after[0]) < 1, "published"
        ),  # 1 is 0.5 mm of the plate
        Row("vertical velocity after the shock", 0, after[1], abs(after[1]) < 1, "published"),
        Row("steps of contact after the shock", "ceases at once", lasting, lasting <= 1, "published"),
    ]


def _plate_16(motion, results):
    lasting, sticking = results["contact_after_shock"], max(results["sticking_after_shock"])
    slowest = lowest_point_velocity(motion)[len(motion.gaps) // 2 :, 0].min()
    return [
        Row("steps of contact after the one shock", "lifts off at once", min(lasting), min(lasting) <= 1, "published"),
        Row("steps of contact after the other", "an episode", max(lasting), max(lasting) > 5, "published"),
        Row("share of sticking in contact", "0: slip", sticking, sticking == 0, "published"),
        Row("least horizontal velocity of M1", "never 0", slowest, slowest > 0, "published"),
    ]


def _tipping(motion, results):
    angle = motion.q[-1, 2]
    return [Row("angle at the end", "negative", angle, angle < 0, "published")]


STATEMENTS = {-800.0: _tipping, -700.0: _plate_14, -200.0: _plate_15, -100.0: _plate_16, -50.0: lambda m, r: []}


# ---- the plates ------------------------------------------------------------------------------------------------------

SPAN = 0.5  # s, of the successive positions
LENGTH = GRIP[1] - ARM  # of the segment drawn from A along Gy1: it ends in D


def figure(outcome, parameters):
    """The plate of the torque: positions, and what shows its regime."""
    motion, torque = outcome["motion"], parameters["torque"]
    shocks = shocks_of(motion)
    regime, kinds = regime_of(motion, shocks)
    title = f"CR = {torque:g}, step {motion.step:g}: {regime}"
    if torque in PLATES:
        title = f"1986, plate {PLATES[torque]}. {title}"
    if regime in ("permanent contact", "tips over"):
        figure, (top, low) = plt.subplots(2, 1, figsize=(11, 5.8), height_ratios=(1.6, 1), layout="constrained")
        _draw_relative_trajectory(low, motion, SPAN if regime == "tips over" else 4.0)
    elif regime == "periodic":
        figure, (top, middle, low) = plt.subplots(
            3, 1, figsize=(11, 11), height_ratios=(1.2, 1, 2), layout="constrained"
        )
        _draw_sliding(middle, motion)
        _draw_hodograph(low, motion, shocks, kinds)
    else:
        figure, (top, low) = plt.subplots(2, 1, figsize=(11, 9), height_ratios=(1, 1.6), layout="constrained")
        _draw_hodograph(low, motion, shocks, kinds)
    _draw_positions(top, motion, INTERVAL[nearest_plate(torque)])
    figure.suptitle(title, fontweight="bold")
    return figure


def _draw_positions(axes, motion, interval):
    """The body at the start, then the segment AD at the intervals of the plate."""
    every = max(1, round(interval / motion.step))
    spacing = f"every {1e3 * every * motion.step:g} ms"
    x, y, angle = motion.q[: round(SPAN / motion.step) + 1 : every].T
    foot = np.array([x - ARM * np.sin(angle), y + ARM * np.cos(angle)])  # A
    tip = foot + LENGTH * np.array([-np.sin(angle), np.cos(angle)])
    axes.plot([foot[0], tip[0]], [foot[1], tip[1]], color="k", lw=0.6)
    axes.plot(*foot, ".", color="tab:red", ms=3)
    _draw_body(axes, foot[:, 0], angle[0])
    axes.axhline(0, color="k", lw=1.5)
    axes.axhline(RADIUS, color="0.6", lw=0.6, ls="--")
    axes.set(aspect="equal", xlabel="x", ylabel="y", title=f"positions of the segment AD {spacing}")


def _draw_body(axes, centre, angle):
    """Outline of the body: the circle of contact, its flanks up to D, and the points G and D."""
    turn = np.linspace(np.pi, 2 * np.pi, 60)
    local = np.column_stack([RADIUS * np.cos(turn), RADIUS * np.sin(turn)])
    local = np.vstack([[-RADIUS, LENGTH], local, [RADIUS, LENGTH], [-RADIUS, LENGTH]])
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    axes.fill(*(centre[:, None] + rotation @ local.T), facecolor="0.9", edgecolor="k", lw=1, zorder=0)
    points = centre[:, None] + rotation @ np.array([[0, 0, 0], [0, -ARM, LENGTH]])
    axes.plot(*points, "o", color="k", ms=3.5)
    for name, point in zip("AGD", points.T, strict=True):
        axes.annotate(name, point, xytext=(-11, -3), textcoords="offset points")


def _draw_sliding(axes, motion):
    count = round(SPAN / motion.step) + 1
    axes.plot(motion.times[:count], lowest_point_velocity(motion)[:count, 0], color="k", lw=1)
    axes.axhline(0, color="0.6", lw=0.6)
    axes.set(xlabel="t", ylabel="$v_x$", xlim=(0, SPAN), title="horizontal velocity of the lowest point")


def _draw_hodograph(axes, motion, shocks, kinds):
    """The velocity of M1 as a curve, its jumps in red: the last period, or one second of a motion without one."""
    velocity = lowest_point_velocity(motion)
    if kinds:
        first, last = (round(t / motion.step - 0.5) for t in (shocks.times[-1 - kinds], shocks.times[-1]))
    else:
        first, last = len(velocity) - round(1 / motion.step), len(velocity) - 1
    axes.plot(*velocity[first : last + 1].T, color="k", lw=1)
    inside = (shocks.times > first * motion.step) & (shocks.times < last * motion.step)
    jumps = np.stack([shocks.before[inside], shocks.after[inside]])  # (2, K, 2)
    axes.plot(*jumps.transpose(2, 0, 1), color="tab:red", lw=1.5)
    axes.axhline(0, color="0.6", lw=0.6)
    axes.axvline(0, color="0.6", lw=0.6)
    axes.set(aspect="equal", xlabel="$v_x$", ylabel="$v_y$", title="velocity of the lowest point")


def _draw_relative_trajectory(axes, motion, span):
    count = round(span / motion.step) + 1
    axes.plot(offset(motion)[:count], motion.q[:count, 1], color="k", lw=0.7)
    axes.set(aspect="equal", xlabel="X - XR", ylabel="Y", title="relative trajectory of G")
