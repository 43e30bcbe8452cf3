"""A bar between two walls that converge upwards: it stays or it falls, as the history of its contacts decides.

2003, section 8.1 and Figure 1. Left alone at rest, the bar has two evident futures: contact is lost and it falls, or it
stays, wedged by friction. The answer of the computation depends on the impulses that start its iteration. Unit mass,
g = 9.81, unit length, walls at the same angle from the vertical. In equilibrium each wall carries half the weight V and
both push with the same horizontal thrust H; friction asks H >= V / tan(phi - angle), tan phi = friction.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.explore import static_range

FIGURE = "2003, Figure 1"
PARAMETERS = Options(
    angle_degrees=Option(10.0, "angle of the walls to the vertical", "degrees", least=0, below=90),
    friction=Option(0.5, "friction coefficient of the walls", "1", least=0, most=1e6),
    thrust_factor=Option(2.0, "first guess of the thrust, over the least that holds the bar", "1", least=0, most=1e6),
    samples=Option(300, "random first guesses", least=1, most=1_000_000),
    seed=Option(1, "seed of the random numbers", least=0),
    step=Option(1e-3, "time step", "s", least=1e-6, most=0.05),
    duration=Option(0.2, "simulated time", "s", above=0, most=1000),
)
QUICK = {"samples": 60, "duration": 0.05}

GRAVITY, HALF = 9.81, 0.5
WEIGHT = GRAVITY / 2  # on each wall
WEDGED = 1e-9  # overlap with the walls at the start: rounding must not open the contacts
FACTORS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5, 2.0, 3.0)


def bar(angle, friction):
    """The bar as a `System`: q = (x, y, rotation), contacts at its left and right end, rows n and t (up the wall)."""

    def wall(side):
        n = np.array([-side * math.cos(angle), -math.sin(angle)])
        t = np.array([-side * math.sin(angle), math.cos(angle)])

        def gap(time, q):
            end = q[0] + side * HALF * math.cos(q[2]) - side * HALF, q[1] + side * HALF * math.sin(q[2])
            return n[0] * end[0] + n[1] * end[1] - WEDGED

        def contact_map(time, q):
            lever = side * HALF * np.array([-math.sin(q[2]), math.cos(q[2])])
            return [[*n, n @ lever], [*t, t @ lever]]

        name = "left wall" if side < 0 else "right wall"
        return cd.Constraint(gap, contact_map=contact_map, law=cd.Law(friction=friction), name=name)

    return cd.System(
        inertia=[1.0, 1.0, (2 * HALF) ** 2 / 12],
        force=lambda t, q, u: (0.0, -GRAVITY, 0.0),
        potential=lambda t, q: GRAVITY * q[1],
        constraints=[wall(-1), wall(1)],
    )


def minimal_thrust(angle, friction):
    """The least horizontal thrust with which the bar stays; infinite where it cannot."""
    spare = math.atan(friction) - angle
    return WEIGHT / math.tan(spare) if spare > 0 else math.inf


def local(angle, thrust, weight):
    """(P_n, P_t) of a force with the given horizontal and vertical part."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([thrust * c - weight * s, thrust * s + weight * c])


def thrust_of(angle, force):
    """Horizontal and vertical part (..., 2) of the forces (P_n, P_t) (..., 2) of a wall on the bar."""
    c, s = math.cos(angle), math.sin(angle)
    return force @ np.array([[c, -s], [s, c]])


def release(angle, friction, factor, parameters):
    """The motion from rest, the iteration of its first step started from ``factor`` times the minimal impulses.

    Where no thrust is enough, the weight takes its place. The tiny surplus keeps the factor 1, an equilibrium at the
    edge of the cone, from being decided by rounding.
    """
    system, step = bar(angle, friction), parameters["step"]
    least = minimal_thrust(angle, friction)
    force = local(angle, least if math.isfinite(least) else WEIGHT, WEIGHT)
    start = system.start((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    start = start._replace(impulses=factor * (1 + 1e-9) * step * np.array([force, force]))
    # Just below the minimal thrust, and between nearly parallel walls, the iteration takes long to let go.
    return cd.integrate(system, start=start, step=step, until=parameters["duration"], max_iterations=1_000_000)


def outcome_of(motion):
    """ "stuck" or "falls": whether the bar has come down by a millionth of what a free fall gives.

    So little, because between parallel walls (angle 0) it may also slide down with a thrust below the minimal one.
    """
    return "falls" if -motion.q[-1, 1] > 1e-6 * GRAVITY / 2 * motion.times[-1] ** 2 else "stuck"


def build(parameters):
    """The solutions of the bar's contact problem from many guesses, and its motions after several thrusts."""
    angle, friction = math.radians(parameters["angle_degrees"]), parameters["friction"]
    least, step = minimal_thrust(angle, friction), parameters["step"]
    system = bar(angle, friction)
    problem = cd.contact_problem(system, system.start((0, 0, 0), (0, 0, 0)), step)
    edge = local(angle, least, WEIGHT)[0] if math.isfinite(least) else 4 * WEIGHT
    found = cd.explore_forces(problem, parameters["samples"], parameters["seed"], largest=3 * edge * step,
                              tolerance=1e-12)  # fmt: skip
    return {
        "angle": angle,
        "least": least,
        "statics": static_range(problem, 0)[0] / step,  # of P_n
        "motion": release(angle, friction, parameters["thrust_factor"], parameters),
        "sweep": {factor: release(angle, friction, factor, parameters) for factor in FACTORS},
        "found": found,
        "forces": thrust_of(angle, found.impulses[:, 0] / step),
    }


def check(outcome, parameters):
    """The minimal thrust against formula and linear programme; which starts hold, and that both answers exist."""
    angle, least, found = outcome["angle"], outcome["least"], outcome["found"]
    possible = math.isfinite(least)
    result = outcome_of(outcome["motion"])
    expected = "stuck" if possible and parameters["thrust_factor"] >= 1 else "falls"
    outcomes = {factor: outcome_of(motion) for factor, motion in outcome["sweep"].items()}
    rows = [Row("outcome", expected, result, result == expected, "closed form")]
    if possible:
        statics = (outcome["statics"] + WEIGHT * math.sin(angle)) / math.cos(angle)
        switch = min((f for f, o in outcomes.items() if o == "stuck"), default=math.inf)
        rows.append(
            Row(
                "minimal thrust: formula, linear programme",
                least,
                statics,
                abs(statics / least - 1) < 1e-6,
                "closed form",
            )
        )
        rows.append(
            Row("least starting impulses that hold, over the minimal", 1.0, switch, switch == 1.0, "closed form")
        )
    else:
        rows.append(Row("equilibria (linear programme)", "none", "none" if math.isnan(outcome["statics"]) else "some",
                        math.isnan(outcome["statics"]), "closed form"))  # fmt: skip
        rows.append(Row("outcome from any impulses", "falls", ", ".join(sorted(set(outcomes.values()))),
                        set(outcomes.values()) == {"falls"}, "closed form"))  # fmt: skip
    stuck = is_stuck(outcome, parameters)
    thrusts = outcome["forces"][stuck, 0]
    balanced = np.abs(outcome["forces"][stuck, 1] - WEIGHT).max(initial=0.0) < 1e-6 * GRAVITY
    above = bool((thrusts >= least * (1 - 1e-6)).all())
    rows.append(Row("solutions found: all within statics, weight balanced", "yes", bool(balanced and above),
                    bool(balanced and above and found.converged.all()), "identity"))  # fmt: skip
    if possible:
        rows.append(Row("both answers found from random impulses", "yes", f"{stuck.sum()} stay, {(~stuck).sum()} fall",
                        0 < stuck.sum() < len(stuck), "published"))  # fmt: skip
    results = {
        "minimal_thrust": least,
        "outcome": result,
        "thrust": float(thrust_of(angle, outcome["motion"].impulses[-1, 0] / parameters["step"])[0]),
        "outcome_by_factor": {f"{factor:g}": value for factor, value in outcomes.items()},
        "share_stuck": float(stuck.mean()),
        "thrusts_found": [float(thrusts.min()), float(thrusts.max())] if stuck.any() else None,
    }
    return Verdict(results, rows)


def is_stuck(outcome, parameters):
    """(samples,) whether the solutions found leave the bar at rest."""
    speed = np.abs(outcome["found"].velocities).max(axis=(1, 2))
    return speed < 1e-6 * GRAVITY * parameters["step"]


# ---- figures ---------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """The bar, its motions after several thrusts, and the solutions found."""
    figure = plt.figure(figsize=(12, 5), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1.25, 1, 0.45))
    left, middle = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    draw_bar(left, outcome, parameters)
    draw_factors(middle, outcome, parameters)
    draw_found(figure.add_subplot(grid[2], sharey=middle), outcome, parameters)
    return figure


def draw_bar(ax, outcome, parameters):
    """Figure 1: walls, bar, the two Coulomb cones, and where the lines of the two forces meet."""
    angle, phi = outcome["angle"], math.atan(parameters["friction"])
    for side in (-1, 1):
        up = np.array([-side * math.sin(angle), math.cos(angle)])
        foot = np.array([side * HALF, 0.0])
        ax.plot(*np.stack([foot - 0.35 * up, foot + 0.75 * up]).T, color="0.3", lw=2)
        inward = math.pi / 2 + side * math.pi / 2 + side * angle  # direction of the inward normal
        rays = [foot + 1.15 * np.array([math.cos(inward + turn), math.sin(inward + turn)]) for turn in (-phi, phi)]
        ax.fill(*np.stack([foot, *rays]).T, color="C0" if side < 0 else "C1", alpha=0.15, lw=0)
    ax.plot([-HALF, HALF], [0, 0], "k", lw=4, solid_capstyle="butt")
    for name, x in (("A", -HALF - 0.06), ("B", HALF + 0.06)):
        ax.text(x, -0.03, name, ha="center", va="top")
    stuck = is_stuck(outcome, parameters)
    height = HALF * outcome["forces"][stuck, 1] / outcome["forces"][stuck, 0]
    ax.plot(np.zeros(len(height)), height, ".", color="#b2182b", ms=4, label="I of the solutions found")
    if math.isfinite(outcome["least"]):
        top = HALF * WEIGHT / outcome["least"]
        ax.plot([0], [top], "k+", ms=12, label="I of the minimal thrust")
    ax.annotate("", (0, -0.3), (0, 0), arrowprops={"arrowstyle": "->"})
    ax.text(0.02, -0.27, "weight")
    ax.set(xlim=(-0.8, 0.8), ylim=(-0.4, 1.0), aspect="equal", xlabel="x", ylabel="y",
           title="bar AB, Coulomb cones, meeting point I of the forces")  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc="upper center")


def draw_factors(ax, outcome, parameters):
    """The thrust at the end against that of the impulses which started the iteration."""
    factors = list(outcome["sweep"])
    ends = [thrust_of(outcome["angle"], motion.impulses[-1, 0] / parameters["step"])[0]
            for motion in outcome["sweep"].values()]  # fmt: skip
    ax.plot(factors, np.array(ends) / thrust_unit(outcome), "ko-", ms=4, lw=0.8)
    ax.axhline(1, color="0.5", lw=0.8, ls=":")
    ax.text(0.0, 1.03, "statics: at least this", fontsize=8)
    ax.set(xlabel="thrust_factor of the starting impulses", ylabel="thrust at the end / minimal thrust",
           title="started from multiples of the minimal")  # fmt: skip


def draw_found(ax, outcome, parameters):
    """The thrusts found from random impulses."""
    thrusts = outcome["forces"][:, 0] / thrust_unit(outcome)
    ax.hist(thrusts, bins=np.linspace(0, 3.1, 32), orientation="horizontal", color="#b2182b")
    stuck = int(is_stuck(outcome, parameters).sum())
    ax.axhline(1, color="0.5", lw=0.8, ls=":")
    ax.set(xlabel="solutions", title=f"from random ones:\n{stuck} stay, {len(thrusts) - stuck} fall")


def thrust_unit(outcome):
    """What thrusts are drawn over: the least one, or the weight where none is possible."""
    return outcome["least"] if math.isfinite(outcome["least"]) else WEIGHT
