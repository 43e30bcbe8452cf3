"""Trial 7: a particle inside a sphere: shock, sliding, detachment, shock, spherical pendulum.

1986, section 15, plates 8 and 9: a particle in gravity, confined to x^2 + y^2 + z^2 <= 45^2 without friction, by INEL
with the steps 0.005 and 0.002. The anticipation A_V is not printed. Taken here: 1/2, which the report recommends
(trial 5); A_V = 0 lets the particle 5 units out of the sphere at the step of plate 8, which the drawing would show.

The exact motion joins parabolas, whose impact is the root of a quartic (after a detachment simply 4 w / g later, since
gap, its first and its second derivative vanish there), to motions on the sphere; these have the energy integral
R^2 z'^2 / 2 = (E - g z)(R^2 - z^2) - L^2 / 2, so that all lobes rise to the same root z of the right-hand side.
"""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from contactdynamics.experiments._plates import label_places
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plates 8 and 9"
PARAMETERS = Options(
    step=Option(0.005, "time step of plate 8", "s", least=1e-5, most=0.05),
    fine_step=Option(0.002, "time step of plate 9", "s", least=1e-5, most=0.05),
    anticipation=Option(0.5, "A_V: the tangent cone is taken at q + A_V h u", "1", least=-1, most=1),
)
QUICK = {}

RADIUS, GRAVITY, UNTIL, MARKS = 45.0, 981.0, 2.5, 0.1
START, LAUNCH = (-20.0, 10.0, -30.0), (-250.0, 0.0, 300.0)
EVENTS = ("shock 1", "detachment", "shock 2")  # in this order in the results
FIELD = np.array([0.0, 0.0, -GRAVITY])


def build(parameters):
    """Motions at the step of the plate and at a fine one, and the exact events."""
    anticipation = parameters["anticipation"]
    steps = sorted({parameters["step"], parameters["fine_step"]}, reverse=True)
    return {
        "motions": {f"{step:g}": particle(step, anticipation) for step in steps},
        "without_anticipation": particle(steps[0], 0.0),
        "exact": exact_motion(),
    }


def particle(step: float, anticipation: float) -> Motion:
    """The motion of the plates by INEL."""
    sphere = Constraint(
        gap=lambda t, q: RADIUS - math.sqrt(q @ q),
        gradient=lambda t, q: -q / math.sqrt(q @ q),
    )
    system = System(
        inertia=[1.0, 1.0, 1.0],
        force=lambda t, q, u: FIELD,
        potential=lambda t, q: GRAVITY * q[2],
        constraints=[sphere],
    )
    return integrate(system, START, LAUNCH, step=step, until=UNTIL, scheme="inel", anticipation=anticipation)


def exact_motion() -> dict:
    """Times of the events, altitude of the lobes and the path of the exact motion."""
    q, u = np.array(START), np.array(LAUNCH)
    quartic = [FIELD @ FIELD / 4, u @ FIELD, u @ u + q @ FIELD, 2 * q @ u, q @ q - RADIUS**2]
    roots = np.roots(quartic)
    shock = min(r.real for r in roots if abs(r.imag) < 1e-9 and r.real > 0)
    first = flight(q, u, shock)
    slid = slide(*inelastic(*first), shock)
    detachment, (q, u) = slid.t[-1], np.split(slid.y[:, -1], 2)
    again = detachment + 4 * u[2] / GRAVITY
    q_2, u_2 = inelastic(*flight(q, u, again - detachment))
    energy, moment = u_2 @ u_2 / 2 + GRAVITY * q_2[2], q_2[0] * u_2[1] - q_2[1] * u_2[0]
    cubic = [2 * GRAVITY, -2 * energy, -2 * GRAVITY * RADIUS**2, 2 * energy * RADIUS**2 - moment**2]
    pendulum = slide(q_2, u_2, again)
    first_flight = [flight(np.array(START), np.array(LAUNCH), t)[0] for t in np.linspace(0, shock, 50)]
    second_flight = [flight(q, u, t)[0] for t in np.linspace(0, again - detachment, 100)]
    on_sphere = slid.sol(np.linspace(shock, detachment, 100))[:3].T
    oscillating = pendulum.sol(np.linspace(again, pendulum.t[-1], 800))[:3].T
    return {
        "events": [shock, detachment, again],
        "lobe_maximum": float(np.sort(np.roots(cubic).real)[1]),
        "contact_until": pendulum.t[-1],
        "path": np.vstack([first_flight, on_sphere, second_flight, oscillating]),
    }


def flight(q, u, t):
    """Position and velocity after a free flight."""
    return q + t * u + t * t / 2 * FIELD, u + t * FIELD


def inelastic(q, u):
    """The standard inelastic shock (1986, eq. 8.1) on the sphere."""
    return q, u - (u @ q) / (q @ q) * q


def slide(q, u, begin):
    """Motion on the sphere until the reaction (|u|^2 - g z) / R vanishes or the drawing ends."""

    def reaction(t, y):
        return (y[3:] @ y[3:] + FIELD @ y[:3]) / RADIUS

    def rhs(t, y):
        return np.concatenate([y[3:], FIELD - reaction(t, y) / RADIUS * y[:3]])

    reaction.terminal, reaction.direction = True, -1
    start = np.concatenate([q, u])
    return solve_ivp(rhs, (begin, UNTIL), start, "DOP853", events=reaction, dense_output=True, rtol=1e-12, atol=1e-10)


def episodes(motion: Motion) -> tuple[list, int]:
    """Times of the three events, and the step of the second shock.

    The long flight is the longest stretch between two steps with an impulse: it leaves aside the tiny separations
    after a shock. Velocities jump at the middle of a step; a contact ends half a step after its last impulse.
    """
    touching = np.flatnonzero(motion.impulses[:, 0, 0] > 0)
    if len(touching) < 2:
        return [math.nan] * 3, 0
    longest = np.diff(touching).argmax()
    leaving, landing = touching[longest], touching[longest + 1]
    return [(touching[0] + 0.5) * motion.step, (leaving + 1) * motion.step, (landing + 0.5) * motion.step], landing


def lobes(motion: Motion, landing: int) -> list[float]:
    """Maximal altitudes of the lobes after the second shock."""
    z = motion.q[landing:, 2]
    tops = np.flatnonzero((z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])) + 1
    return z[tops].tolist()


def violation(motion: Motion) -> float:
    """How far the particle goes out of the sphere, in units of length."""
    return float(np.sqrt((motion.q**2).sum(axis=1)).max() - RADIUS)


def check(outcome, parameters):
    """Phases and losses against the exact spherical pendulum, and the ledger."""
    exact, motions = outcome["exact"], outcome["motions"]
    events, maxima, losses, separations = {}, {}, {}, {}
    for key, motion in motions.items():
        events[key], landing = episodes(motion)
        maxima[key] = lobes(motion, landing)
        energy = motion.ledger.kinetic + motion.ledger.potential
        losses[key] = float(energy[landing + 1] - energy[-1])
        separations[key] = float(RADIUS - np.sqrt((motion.q[landing + 1 :] ** 2).sum(axis=1)).min())
    errors = {key: np.subtract(times, exact["events"]) for key, times in events.items()}
    closure = max(float(np.abs(m.ledger.closure).max() / m.ledger.kinetic.max()) for m in motions.values())
    rows = [row for key in motions for row in plate_rows(key, events[key], errors[key], maxima[key], separations[key])]
    rows += [
        Row("exact: spherical pendulum without loss of contact until", UNTIL, exact["contact_until"],
            exact["contact_until"] == UNTIL, "published"),
        Row("energy ledger, relative closure error", None, closure, closure < 1e-12, "identity"),
    ]  # fmt: skip
    if len(motions) == 2:
        coarse, fine = motions
        steps, dissipated = float(coarse) / float(fine), losses[coarse] / losses[fine]
        drops = [maxima[k][0] - maxima[k][1] if len(maxima[k]) > 1 else math.nan for k in (coarse, fine)]
        rows.append(
            Row(f"second lobe below the first, steps {coarse} and {fine}", "less with the finer step", drops,
                drops[1] < drops[0], "published")
        )  # fmt: skip
        if float(coarse) <= PARAMETERS["step"]:  # beyond, the loss is no longer proportional to the step
            rows.append(
                Row(f"loss of energy after shock 2, ratio (steps: {steps:g})", "clearly less", dissipated,
                    0.75 * steps < dissipated < 1.25 * steps, "published")
            )  # fmt: skip
    results = {
        "events": events,
        "event_errors": errors,
        "lobe_maxima": maxima,
        "energy_loss_after_shock_2": losses,
        "largest_violation": {key: violation(m) for key, m in motions.items()},
        "largest_violation_without_anticipation": violation(outcome["without_anticipation"]),
        "exact": {k: exact[k] for k in ("events", "lobe_maximum")},
    }
    return Verdict(results, rows)


def plate_rows(key: str, events: list, errors: np.ndarray, maxima: list, separation: float) -> list[Row]:
    """What the text says of one plate, and the events against the exact motion (first order: a few steps)."""
    said = (("a little before 0.1", 0.08, 0.1), ("a little after 0.2", 0.2, 0.25), ("a little after 0.6", 0.6, 0.7))
    worst = np.abs(errors).max() / float(key)
    sinking = len(maxima) >= 2 and all(a > b for a, b in pairwise(maxima))
    return [
        *(
            Row(f"{name}, step {key}", text, time, low < time < high, "published")
            for name, time, (text, low, high) in zip(EVENTS, events, said, strict=True)
        ),
        Row(f"events, largest error in steps, step {key}", None, worst, worst < 3, "own reference"),
        Row(f"lobes' maximal altitudes, step {key}", "second lower than first", maxima, sinking, "published"),
        Row(
            f"largest gap after shock 2, step {key}",
            "no loss of contact",
            separation,
            separation < 0.01 * RADIUS,
            "published",
        ),
    ]


def figure(outcome, parameters):
    """Both plates side by side, vertical projection above and horizontal projection below."""
    count = len(outcome["motions"])
    drawing, axes = plt.subplots(2, count, figsize=(6.6 * count, 13), layout="constrained", squeeze=False)
    for column, (key, motion) in zip(axes.T, outcome["motions"].items(), strict=True):
        every = max(1, round(MARKS / motion.step))
        for ax, second in zip(column, (2, 1), strict=True):
            projection(ax, motion, second, every, outcome["exact"]["path"])
        column[0].set_title(f"step {key}; total {len(motion.times) - 1}; a mark every {every} steps")
    axes[1, 0].legend(loc="lower left", frameon=False, fontsize=8)
    return drawing


def projection(ax, motion: Motion, second: int, every: int, path: np.ndarray) -> None:
    """One projection of the path on the plane of x and coordinate ``second``, with numbered marks."""
    turn = np.linspace(0, 2 * math.pi, 361)
    ax.plot(RADIUS * np.cos(turn), RADIUS * np.sin(turn), color="0.5", lw=0.8)
    ax.plot(path[:, 0], path[:, second], color="tab:orange", lw=0.6, ls="--", label="exact motion")
    points = motion.q[:, [0, second]]
    ax.plot(*points.T, "k-", lw=1, label="INEL")
    ax.plot(*points[::every].T, "k+", ms=6)
    for number, place in enumerate(label_places(points[::every], points)):
        ax.text(*place, f"{number}", fontsize=7, ha="center", va="center")
    ax.set(xlabel="x", ylabel="xyz"[second], aspect="equal", xlim=(-49, 49), ylim=(-49, 49))
