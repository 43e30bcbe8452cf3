"""Three ways on one problem: event-driven, penalty and Contact Dynamics, accuracy against cost.

2004, sections 1.2 to 1.4, names three ways to compute motions with contacts. Here they run on the same small systems:

- a particle on a curve: it slides down a dome, leaves it, and lands on the floor (closed form);
- a bar on the ground: it falls about its foot, which sticks, slips one way, then the other; the other end strikes;
- a small stack: three disks without friction, two on the floor and one on them, which drives them apart.

Event-driven (`events.integrate`): Runge-Kutta of order 8 between events; the right-acceleration of section 5.3 at them.
Penalty (`penalty.integrate`): contacts as springs; overlap, stiffness and step by its rules. Contact Dynamics
(`integrate`, scheme midpoint): one contact problem per step. The error is that of the final position against the
event-driven motion with the tolerance 1e-12 (on the dome also against the closed form); the cost is how often forces
and contacts were computed, and processor time.
"""

import math
import time as clock

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipkinc

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.laws import Law
from contactdynamics.systems import events, penalty
from contactdynamics.systems.motion import integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "2004, sections 1.2 to 1.4 and 5.3"
PARAMETERS = Options(
    steps=Option(3200, "steps of Contact Dynamics, in its finest run", least=100, most=1_000_000),
    overlap=Option(1e-3, "overlap allowed to the springs of the penalty method, in its finest run", "m", least=1e-5,
                   most=0.02),
    friction=Option(0.3, "friction coefficient of the bar; from 1.2 on it may jam (Painlevé)", "1", least=0, below=1.2),
    start_degrees=Option(30.0, "where the particle starts, from the top of the dome", "degrees", least=5, most=80),
)  # fmt: skip
QUICK = {"steps": 800, "overlap": 8e-3}

GRAVITY = 9.81
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9)
NAMES = {"curve": "particle on a curve", "bar": "bar on the ground", "stack": "small stack"}
WAYS = {
    "events": ("event-driven", "C2", "s"),
    "penalty": ("penalty", "C1", "^"),
    "dynamics": ("Contact Dynamics", "C0", "o"),
}
HALF = 0.5  # half length of the bar, mass 1
RADII = np.array([0.2, 0.26, 0.23])  # left, right, top


# ---- the three systems: System, q, end of the run, largest speed expected --------------------------------------------


def curve(p):
    """A particle on a dome of radius 1, above a floor at the height of its centre."""
    angle = math.radians(p["start_degrees"])  # from the top
    dome = Constraint(lambda t, q: math.hypot(*q) - 1, gradient=lambda t, q: np.array(q) / math.hypot(*q))
    floor = Constraint(lambda t, q: q[1], gradient=lambda t, q: np.array([0.0, 1.0]))
    system = System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -GRAVITY), constraints=[dome, floor])
    leave, flight = dome_times(angle)
    return system, np.array([math.sin(angle), math.cos(angle)]), leave + flight + 0.2, 4.5


def dome_times(angle):
    """When the particle leaves the dome, and how long it then flies to the floor.

    With the angle a from the top, a'^2 = 2 g (cos a0 - cos a) = 4 g (cos^2(a0/2) - cos^2(a/2)), and it leaves where
    cos a = (2/3) cos a0. With k = cos(a0/2) and cos(a/2) = k sin f: t = [F(pi/2, k) - F(f, k)] / sqrt(g).
    """
    k, y = math.cos(angle / 2), 2 / 3 * math.cos(angle)
    phase = math.asin(math.cos(math.acos(y) / 2) / k)
    leave = float(ellipkinc(math.pi / 2, k * k) - ellipkinc(phase, k * k)) / math.sqrt(GRAVITY)
    down = math.sqrt(GRAVITY * y) * math.sqrt(1 - y * y)  # u^2 = 2 g (y0 - y) = g y
    return leave, (-down + math.sqrt(down**2 + 2 * GRAVITY * y)) / GRAVITY


def curve_end(p, until):
    """Closed form of the final position: the dome, a parabola, then the floor at the horizontal speed."""
    angle = math.radians(p["start_degrees"])
    y = 2 / 3 * math.cos(angle)
    return np.array([math.sqrt(1 - y * y) + math.sqrt(GRAVITY * y) * y * (until - dome_times(angle)[0]), 0.0])


def bar(p):
    """A bar of length 1 and mass 1 with its foot on the ground, 1.2 rad above it."""

    def end(sign):
        def frame(t, q):
            x, y = sign * HALF * math.cos(q[2]), sign * HALF * math.sin(q[2])
            return np.array([[0.0, 1.0, x], [1.0, 0.0, -y]])

        return Constraint(
            lambda t, q: q[1] + sign * HALF * math.sin(q[2]), contact_map=frame, law=Law(friction=p["friction"])
        )

    system = System(
        inertia=[1.0, 1.0, 1 / 12], force=lambda t, q, u: (0.0, -GRAVITY, 0.0), constraints=[end(-1), end(1)]
    )
    return system, np.array([0.0, HALF * math.sin(1.2), 1.2]), 0.7, 4.5


def stack(p):
    """Two disks on the floor and one on them; translations (x, y) of each. The disks are smooth: they do not turn."""

    def pair(a, b):
        def gradient(t, q):
            d = q[2 * b : 2 * b + 2] - q[2 * a : 2 * a + 2]
            row, d = np.zeros(6), d / math.hypot(*d)
            row[2 * a : 2 * a + 2], row[2 * b : 2 * b + 2] = -d, d
            return row

        return Constraint(
            lambda t, q: math.hypot(q[2 * b] - q[2 * a], q[2 * b + 1] - q[2 * a + 1]) - RADII[a] - RADII[b],
            gradient=gradient,
        )

    def floor(a):
        row = np.eye(6)[2 * a + 1]
        return Constraint(lambda t, q: q[2 * a + 1] - RADII[a], gradient=lambda t, q: row)

    masses = np.repeat((RADII / 0.2) ** 2, 2)
    system = System(
        inertia=masses,
        force=lambda t, q, u: -GRAVITY * masses * (0.0, 1.0, 0.0, 1.0, 0.0, 1.0),
        constraints=[pair(0, 1), pair(0, 2), pair(1, 2), floor(0), floor(1), floor(2)],
    )
    left, right = np.array([0.0, RADII[0]]), np.array([2 * math.sqrt(RADII[0] * RADII[1]), RADII[1]])
    # The top disk touches both: the intersection of two circles.
    a, b, d = RADII[0] + RADII[2], RADII[1] + RADII[2], math.hypot(*(right - left))
    along = (a * a - b * b + d * d) / (2 * d)
    e = (right - left) / d
    top = left + along * e + math.sqrt(a * a - along * along) * np.array([-e[1], e[0]])
    return system, np.concatenate([left, right, top]), 0.55, 3.0


SYSTEMS = {"curve": curve, "bar": bar, "stack": stack}


# ---- the runs --------------------------------------------------------------------------------------------------------


def build(p):
    """Each system by the three methods, at several costs."""
    return {name: compare(make(p), p) for name, make in SYSTEMS.items()}


def compare(problem, p):
    """Reference and the runs of the three ways: (setting, cost, seconds, error, what was returned)."""
    system, q, until, speed = problem
    rest = np.zeros(len(system.start(q, np.zeros(len(q))).u))
    exact = events.integrate(system, q, rest, until=until, tolerance=1e-12, max_step=until / 20)
    integrate(system, q, rest, step=until / 20, until=until)  # compile before the clock runs

    def timed(run):
        begin = clock.process_time()
        motion = run()
        return motion, clock.process_time() - begin, float(np.abs(motion.q[-1] - exact.q[-1]).max())

    runs = {"events": [], "penalty": [], "dynamics": []}
    for tolerance in TOLERANCES:
        motion, seconds, error = timed(
            lambda tol=tolerance: events.integrate(system, q, rest, until=until, tolerance=tol, max_step=until / 8)
        )
        runs["events"].append((tolerance, motion.evaluations, seconds, error, motion))
    for overlap in p["overlap"] * np.array([4.0, 2.0, 1.0]):
        motion, seconds, error = timed(
            lambda d=overlap: penalty.integrate(
                system, q, rest, until=until, overlap=float(d), speed=speed, steps_per_contact=25
            )
        )
        runs["penalty"].append((float(overlap), motion.evaluations, seconds, error, motion))
    for steps in (p["steps"] / np.array([32, 16, 8, 4, 2, 1])).round().astype(int):
        motion, seconds, error = timed(lambda n=steps: integrate(system, q, rest, step=until / n, until=until))
        runs["dynamics"].append((int(steps), int(steps), seconds, error, motion))
    return {"exact": exact, "runs": runs, "until": until}


def slope(runs, against):
    """Order of convergence: slope of log error against log ``against`` by least squares."""
    errors = np.array([max(run[3], 1e-300) for run in runs])
    return float(np.polyfit(np.log(against), np.log(errors), 1)[0])


def price(runs, goal):
    """The least cost of a run whose error, and that of all finer runs, is below ``goal``; None if there is none."""
    good = [r[1] for k, r in enumerate(runs) if all(later[3] <= goal for later in runs[k:])]
    return min(good, default=None)


def check(outcome, p):
    """Each method against the exact motion, its order, and what an accuracy costs."""
    results, rows = {}, []
    for name, part in outcome.items():
        runs = part["runs"]
        order = slope(runs["dynamics"], [1 / r[0] for r in runs["dynamics"]])
        soft = slope(runs["penalty"], [r[0] for r in runs["penalty"]])
        best = {way: min(r[3] for r in runs[way]) for way in WAYS}
        kinds = [event.kind for event in part["exact"].events]
        results[name] = {
            way: {
                "setting": [r[0] for r in runs[way]],
                "evaluations": [r[1] for r in runs[way]],
                "cpu_seconds": [round(r[2], 4) for r in runs[way]],
                "error": [r[3] for r in runs[way]],
            }
            for way in WAYS
        } | {"order_dynamics": order, "order_penalty": soft, "events_met": kinds, "evaluations_for_1e-3": {
            way: price(runs[way], 1e-3) for way in WAYS}}  # fmt: skip
        at = f"{NAMES[name]}: "
        rows += [
            Row(at + "event-driven, error at the tolerance 1e-9", "0", best["events"], best["events"] < 1e-6,
                "own reference"),
            Row(at + "Contact Dynamics, order in the step", "1", order, 0.5 < order < 2, "closed form"),
            Row(at + "penalty, error at the smallest overlap", "small", best["penalty"],
                best["penalty"] < 0.01 + 2 * p["overlap"], "own reference"),
            Row(at + "Contact Dynamics, error at the finest step", "converges", best["dynamics"],
                best["dynamics"] < 0.02 * math.sqrt(800 / p["steps"]), "own reference"),
        ]  # fmt: skip
    known = float(np.abs(outcome["curve"]["exact"].q[-1] - curve_end(p, outcome["curve"]["until"])).max())
    results["closed_form_error"] = known
    rows.insert(
        0, Row("particle on a curve: event-driven against the closed form", "0", known, known < 1e-7, "closed form")
    )
    return Verdict(results, rows)


# ---- pictures --------------------------------------------------------------------------------------------------------


def figure(outcome, p):
    """The systems, and error against cost."""
    figure, axes = plt.subplots(3, 3, figsize=(13.5, 11), layout="constrained", height_ratios=(1.1, 1, 1))
    drawings = {"curve": draw_curve, "bar": draw_bar, "stack": draw_stack}
    for column, (name, part) in enumerate(outcome.items()):
        drawings[name](axes[0, column], part["exact"])
        axes[0, column].set(title=NAMES[name], aspect="equal", xlabel="x, m", ylabel="y, m")
        for row, (which, label) in enumerate(((1, "evaluations of forces and contacts"), (2, "processor time, s"))):
            ax = axes[row + 1, column]
            for way, (title, colour, marker) in WAYS.items():
                runs = part["runs"][way]
                ax.loglog(
                    [r[which] for r in runs], [r[3] for r in runs], marker + "-", color=colour, ms=4, lw=1, label=title
                )
            ax.set(xlabel=label, ylabel="error of the final position, m")
            ax.grid(alpha=0.3)
    figure.legend(*axes[1, 0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
    return figure


def draw_curve(ax, motion):
    """The particle on the curve."""
    a = np.linspace(0, math.pi / 2, 60)
    ax.fill(np.append(np.sin(a), 0), np.append(np.cos(a), 0), color="0.88")
    ax.plot(np.sin(a), np.cos(a), color="0.5", lw=1)
    ax.axhline(0.0, color="0.5", lw=1)
    ax.plot(*motion.q.T, "k", lw=1)
    for event in motion.events:
        if event.kind in ("release", "impact"):
            ax.plot(*motion.at(event.time)[0], "ro", ms=4)
            ax.annotate({"release": "leaves", "impact": "lands"}[event.kind], motion.at(event.time)[0], (6, 6),
                        textcoords="offset points", fontsize=9)  # fmt: skip
    ax.set_ylim(-0.08, 1.15)


def draw_bar(ax, motion):
    """The falling bar."""
    for k in np.linspace(0, len(motion.times) - 1, 15).round().astype(int):
        x, y, a = motion.q[k]
        shade = str(0.8 - 0.8 * k / (len(motion.times) - 1))
        c, s = HALF * math.cos(a), HALF * math.sin(a)
        ax.plot([x - c, x + c], [y - s, y + s], color=shade, lw=1.3)
    ax.axhline(0.0, color="0.5", lw=1)
    ax.set_ylim(-0.08, 1.05)


def draw_stack(ax, motion):
    """The three disks, before and after."""
    for k, style in ((0, ":"), (-1, "-")):
        for radius, centre in zip(RADII, motion.q[k].reshape(3, 2), strict=True):
            ax.add_patch(plt.Circle(centre, radius, fill=False, ls=style, lw=1.2))
    for a in range(3):
        ax.plot(motion.q[:, 2 * a], motion.q[:, 2 * a + 1], "r", lw=0.8)
    ax.axhline(0.0, color="0.5", lw=1)
    ax.autoscale_view()
