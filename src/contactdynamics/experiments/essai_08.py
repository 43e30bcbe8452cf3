"""Trial 8: a bar in a circle: contacts lost one by one, free fall, two inelastic shocks, a pendulum.

1986, section 15, plate 10: a bar AB of length 50 in a vertical plane, confined by a circle of radius 45; freedoms
(x, y, z = k theta), two unilateral constraints, INEL with correction of violation (10.8), step 0.01, one drawing every
0.05 s numbered from 0. The anticipation A_V is not printed; 1/2 is taken, with which all episodes of the text come out
at the positions it names (A_V = 0 gives position 20 for the shock of B instead of 21).

The shock of B at position 21 is an effect of the coarse step. The exact motion, integrated from event to event, keeps
more energy while A slides: A leaves the circle at t = 1.385, B hits it at 1.571 and A again at 1.622; INEL converges to
it at first order in the step. The printed initial position has A outside the circle by 2e-4 (it is rounded); it is
moved to the nearest one with both ends on the circle. The printed velocity lets B leave the circle at 0.45, and the
exact motion starts with its projection on the motions with both contacts: B would be back after 0.0003 s.

The number of drawings is not printed. This one stops at position 30, in the first swing with both contacts; continued
at the plate's step, A leaves the circle once more at the end of the swing (positions 32 to 38, by up to 2 units).
"""

import math

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from contactdynamics.experiments._plates import label_places
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.dense import project
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plate 10"
PARAMETERS = Options(
    step=Option(0.01, "time step of plate 10", "s", least=1e-5, most=0.05),
    fine_step=Option(1e-4, "time step of the motion compared with the exact one", "s", least=1e-6, most=0.005),
    anticipation=Option(0.5, "A_V: the tangent cone is taken at q + A_V h u", "1", least=-1, most=1),
)
QUICK = {"fine_step": 2e-4}

RADIUS, GRAVITY, GYRATION = 45.0, 981.0, 21.65
ENDS = {"A": -37.5, "B": 12.5}  # positions along the bar, from G
POSITION = np.array([35.72, -16.7431, 4.59648 * GYRATION])
VELOCITY = np.array([121.734, 260.301, 7.26448 * GYRATION])
DRAWN, PLATE_ENDS, FINE_ENDS = 0.05, 1.5, 1.75  # s
FIELD = np.array([0.0, -GRAVITY, 0.0])


def end_of_bar(q, arm: float) -> np.ndarray:
    """The point at the distance ``arm`` from G towards B; q (..., 3)."""
    angle = np.asarray(q)[..., 2] / GYRATION
    return np.stack([q[..., 0] + arm * np.cos(angle), q[..., 1] + arm * np.sin(angle)], axis=-1)


def gap(q, arm: float) -> float:
    """(r^2 - |P|^2) / 2 r: the inequality of the report, scaled to a length."""
    angle = q[2] / GYRATION
    x, y = q[0] + arm * math.cos(angle), q[1] + arm * math.sin(angle)
    return (RADIUS * RADIUS - x * x - y * y) / (2 * RADIUS)


def gradient(q, arm: float) -> np.ndarray:
    """Gradient of `gap` in (x, y, z)."""
    c, s = math.cos(q[2] / GYRATION), math.sin(q[2] / GYRATION)
    return np.array([q[0] + arm * c, q[1] + arm * s, arm * (q[1] * c - q[0] * s) / GYRATION]) / -RADIUS


def start() -> np.ndarray:
    """The position nearest to the printed one with both ends on the circle, by Newton's method with (10.8)."""
    q = POSITION
    for _ in range(5):
        rows = np.array([gradient(q, arm) for arm in ENDS.values()])
        q = q - rows.T @ np.linalg.solve(rows @ rows.T, [gap(q, arm) for arm in ENDS.values()])
    return q


def bar(step: float, anticipation: float, until: float) -> Motion:
    """The motion of the plate by INEL with correction of violation."""
    constraints = [
        Constraint(gap=lambda t, q, arm=arm: gap(q, arm), gradient=lambda t, q, arm=arm: gradient(q, arm), name=name)
        for name, arm in ENDS.items()
    ]
    system = System(
        inertia=[1.0, 1.0, 1.0],
        force=lambda t, q, u: FIELD,
        potential=lambda t, q: GRAVITY * q[1],
        constraints=constraints,
    )
    return integrate(
        system, start(), VELOCITY, step=step, until=until, scheme="inel_corrected", anticipation=anticipation
    )


def build(parameters):
    """Motions at the step of the plate and at a fine one, and the exact events."""
    fine, anticipation = parameters["fine_step"], parameters["anticipation"]
    return {
        "plate": bar(parameters["step"], anticipation, PLATE_ENDS),
        "refined": bar(fine, anticipation, FINE_ENDS),
        "half_refined": bar(2 * fine, anticipation, FINE_ENDS),
        "exact": exact_events(),
    }


def exact_events() -> list[tuple[float, str, str]]:
    """The events (time, "lost" or "shock", end of the bar) of the exact motion, integrated from one to the next."""
    q, t, touching, events = start(), 0.0, ["A", "B"], []
    rows = np.array([gradient(q, arm) for arm in ENDS.values()])
    u = VELOCITY - rows.T @ np.linalg.solve(rows @ rows.T, rows @ VELOCITY)
    while True:
        open_ends = [name for name in ENDS if name not in touching]
        arc = smooth_arc(q, u, t, touching, open_ends)
        t, (q, u) = arc.t[-1], np.split(arc.y[:, -1], 2)
        if arc.status == 0:
            return events
        (which,) = (i for i, times in enumerate(arc.t_events) if len(times))
        name = (touching + open_ends)[which]
        events.append((t, "lost" if name in touching else "shock", name))
        if name in touching:
            touching.remove(name)
        else:
            touching.append(name)
            rows = np.array([gradient(q, ENDS[n]) for n in touching])
            impulses = project(np.eye(3), u, rows, np.zeros(len(rows)))
            u = u + rows.T @ impulses
            touching = [n for n, p in zip(touching, impulses, strict=True) if p > 0]


def smooth_arc(q, u, begin: float, touching: list, open_ends: list):
    """Motion with the ``touching`` ends on the circle, until a reaction vanishes or an open end arrives."""

    def reactions(y):
        """Multipliers that keep the second derivatives of the gaps zero, and the rows of their gradients."""
        rows = np.array([gradient(y[:3], ENDS[n]) for n in touching]).reshape(-1, 3)
        bends = np.array([curvature(y, ENDS[n]) for n in touching])
        return np.linalg.solve(rows @ rows.T, -(bends + rows @ FIELD)), rows

    def rhs(t, y):
        multipliers, rows = reactions(y)
        return np.concatenate([y[3:], FIELD + rows.T @ multipliers])

    def event(function):
        function.terminal, function.direction = True, -1
        return function

    watched = [event(lambda t, y, i=i: reactions(y)[0][i]) for i in range(len(touching))]
    # An end that has just left starts from a gap of rounding size: 1e-9 keeps it from arriving at once.
    watched += [event(lambda t, y, n=n: gap(y, ENDS[n]) + 1e-9) for n in open_ends]
    return solve_ivp(rhs, (begin, FINE_ENDS), np.concatenate([q, u]), "DOP853", events=watched, rtol=1e-11, atol=1e-11,
                     max_step=0.02)  # fmt: skip


def curvature(y, arm: float) -> float:
    """Second derivative of `gap` in a motion without acceleration; y = (q, u)."""
    c, s, spin = math.cos(y[2] / GYRATION), math.sin(y[2] / GYRATION), y[5] / GYRATION
    velocity = y[3] - arm * spin * s, y[4] + arm * spin * c
    return (arm * spin**2 * (y[0] * c + y[1] * s + arm) - velocity[0] ** 2 - velocity[1] ** 2) / RADIUS


def episodes(motion: Motion) -> dict:
    """Times of the four events of the text: contacts lost by A and B, shocks of A and of B (nan if missing)."""
    times = {}
    for index, name in enumerate(ENDS):
        touching = np.flatnonzero(motion.impulses[:, index, 0] > 0)
        flight = np.diff(touching).argmax() if len(touching) > 1 else -1
        times[f"{name} lost"] = (touching[flight] + 1) * motion.step if flight >= 0 else math.nan
        times[f"{name} shock"] = (touching[flight + 1] + 0.5) * motion.step if flight >= 0 else math.nan
    return {key: times[key] for key in ("A lost", "B lost", "A shock", "B shock")}


def position_after(time: float) -> float:
    """Number of the first drawing after ``time``."""
    return math.ceil(time / DRAWN - 1e-9) if math.isfinite(time) else math.nan


def gaps_at_drawings(motion: Motion) -> np.ndarray:
    """Distances (k, 2) of the ends A and B from the circle at the drawings 0, 1, 2, ..."""
    return np.array([[gap(q, arm) for arm in ENDS.values()] for q in drawings(motion)])


def drawings(motion: Motion) -> np.ndarray:
    """The positions q that the plate draws, every 0.05 s."""
    count = int(motion.times[-1] / DRAWN + 1e-9) + 1
    return motion.q[np.rint(np.arange(count) * DRAWN / motion.step).astype(int)]


def violation(motion: Motion) -> float:
    """Largest distance of an end outside the circle, from the start on."""
    return max(float(np.hypot(*end_of_bar(motion.q, arm).T).max() - RADIUS) for arm in ENDS.values())


def check(outcome, parameters):
    """Instants of lost contacts and shocks against the exact motion, orders of convergence, the ledger."""
    plate, exact = outcome["plate"], {}
    for time, kind, name in outcome["exact"]:
        exact.setdefault(f"{name} {kind}", time)
    times = {key: episodes(outcome[key]) for key in ("plate", "half_refined", "refined")}
    errors = {key: {e: t - exact[e] for e, t in events.items()} for key, events in times.items()}
    order = float(np.log2(abs(errors["half_refined"]["B shock"] / errors["refined"]["B shock"])))
    closure = float(np.abs(plate.ledger.closure).max() / plate.ledger.kinetic.max())
    rows = plate_rows(plate, times["plate"]) if parameters["step"] <= PARAMETERS["step"] else []
    fine = f"step {parameters['fine_step']:g}"
    least = 0.7 if parameters["fine_step"] <= QUICK["fine_step"] else 0.0  # coarser steps are not yet in the limit
    early = max(abs(errors["refined"][e]) for e in ("A lost", "B lost", "A shock"))
    rows += [
        Row(f"contacts lost and shock of A, {fine}, largest error", None, early, early < 1e-3, "own reference"),
        Row("shock of B, exact motion", None, exact["B shock"], 1.5 < exact["B shock"] < 1.6, "own reference"),
        Row(f"shock of B, {fine}, order of convergence", 1, order, least < order < 1.3, "closed form"),
        Row("energy ledger, relative closure error", None, closure, closure < 1e-12, "identity"),
    ]
    results = {
        "events": times["plate"],
        "positions": {key: position_after(t) for key, t in times["plate"].items()},
        "refined_events": times["refined"],
        "exact_events": [{"time": t, "what": f"{name} {kind}"} for t, kind, name in outcome["exact"]],
        "errors": errors,
        "order_of_shock_of_B": order,
        "largest_violation": violation(plate),
        "largest_violation_refined": violation(outcome["refined"]),
        "energy": energies(plate),
    }
    return Verdict(results, rows)


def energies(motion: Motion) -> dict:
    """Total energy at the start, after the shock of A and at the end of the drawing."""
    energy = motion.ledger.kinetic + motion.ledger.potential
    return {"start": energy[0], "position_12": energy[round(12 * DRAWN / motion.step)], "end": energy[-1]}


def plate_rows(motion: Motion, times: dict) -> list[Row]:
    """The episodes of the text at the drawings; an end is seen off the circle from half a unit on."""
    gaps = np.abs(gaps_at_drawings(motion))
    at_start, outside = gaps[:3].max(), float(-gaps_at_drawings(motion).min())
    rows = [
        Row("largest violation at the drawings", "not visible", outside, outside < 0.1, "published"),
        Row("both contacts kept, positions 0 to 2, largest gap", "kept", at_start, at_start < 0.1, "published"),
        Row("A leaves the circle after position", 2, position_after(times["A lost"]) - 1,
            position_after(times["A lost"]) - 1 == 2, "published"),
        Row("B detached at position 6, first seen", 6, int(np.argmax(gaps[:, 1] > 0.5)),
            gaps[5, 1] < 0.5 < gaps[6, 1], "published"),
        Row("A back in contact at position", 12, position_after(times["A shock"]),
            position_after(times["A shock"]) == 12, "published"),
    ]  # fmt: skip
    if motion.step == PARAMETERS["step"]:
        after = gaps[21:].max()
        rows += [
            Row("B has hit the circle at position", 21, position_after(times["B shock"]),
                position_after(times["B shock"]) == 21, "published"),
            Row("both contacts kept, positions 21 to 30, largest gap", "kept", after, after < 0.1, "published"),
        ]  # fmt: skip
    return rows


def figure(outcome, parameters):
    """The plate, and the same at the fine step."""
    drawing, axes = plt.subplots(1, 2, figsize=(15, 8), layout="constrained")
    titles = f"plate 10: step {parameters['step']:g}", f"refined: step {parameters['fine_step']:g}"
    for ax, key, title in zip(axes, ("plate", "refined"), titles, strict=True):
        draw_bars(ax, drawings(outcome[key]))
        shock = episodes(outcome[key])["B shock"]
        ax.set_title(f"{title}; a drawing every {DRAWN} s; B hits the circle at t = {shock:.3f}")
    return drawing


def draw_bars(ax, positions: np.ndarray) -> None:
    """The circle and the bar in each of its positions, A marked + and B marked x, numbered at A."""
    turn = np.linspace(0, 2 * math.pi, 361)
    ax.plot(RADIUS * np.cos(turn), RADIUS * np.sin(turn), color="0.5", lw=1)
    a, b = (end_of_bar(positions, arm) for arm in ENDS.values())
    ax.plot(*np.stack([a, b]).transpose(2, 0, 1), "k-", lw=0.6)
    ax.plot(*a.T, "k+", ms=9, label="A")
    ax.plot(*b.T, "kx", ms=7, label="B")
    bars = (a[:, None] + np.linspace(0, 1, 40)[:, None] * (b - a)[:, None]).reshape(-1, 2)
    for number, place in enumerate(label_places(a, bars)):
        ax.text(*place, f"{number}", fontsize=8, ha="center", va="center")
    ax.legend(loc="upper left", frameon=False)
    ax.set(aspect="equal", xlabel="x", ylabel="y", xlim=(-52, 52), ylim=(-52, 52))
