"""Frictional catastrophes (Painlevé): a sliding rod, a chalk on a board, and the scheme that goes through the shock.

2004, sections 7.1 and 7.5; 2003, section 6.4. The lower end of a rod slides towards the side to which the rod does not
lean. With a force F in the normal direction and gamma F against the slip, the end accelerates by p F + b along the
normal: p = 1 + 3 cos^2 - 3 gamma sin cos, b = -g + spin^2 sin (mass, half length and g are 1). Contact: p F + b >= 0,
F >= 0, one of them zero. Four regimes: p > 0, b < 0 the rod slides; p > 0, b > 0 it lifts off; p < 0, b > 0 both are
solutions; p < 0, b < 0 there is none. In the last one the velocity jumps, without any collision: a tangential shock.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments import _rod as rods
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.state import SEPARATING, SLIDING, STICKING

FIGURE = "2004, section 7.1 (no figure)"
PARAMETERS = Options(
    angle_degrees=Option(60.0, "angle of the rod that slides, from the floor", "degrees", above=0, below=90),
    friction=Option(2.0, "friction coefficient of the floor", "1", above=0, most=1e4),
    speed=Option(1.0, "speed of the end that slides; mass, half length and g are 1", "1", least=1e-3, most=1e3),
    spin=Option(1.2, "angular velocity of the rod in the map", "1", least=-100, most=100),
    step=Option(1e-3, "time step", "1", least=1e-6, most=0.02),
    grid=Option(61, "points of the map, along each side", least=2, most=1000),
)
QUICK = {"grid": 21, "step": 4e-3}

REGIMES = ("slides", "lifts off", "no solution", "two solutions")
DEEP = 1e-10  # the rod starts this deep in the floor, so that rounding cannot open the contact
CHALK = {"mass": 1.0, "inertia": 0.1, "press": 10.0, "stiffness": 20.0, "damping": 0.5, "speed": 1.0, "degrees": 60.0}


# ---- the map ---------------------------------------------------------------------------------------------------------


def sliding(system, angle, spin, speed, step):
    """The state of a rod whose end slides at -``speed`` along the floor.

    A step of the scheme leaves U_n = 0 in the frame of its midpoint, half a step before; so does this state.
    """
    u = (-speed - math.sin(angle) * spin, math.cos(angle - step * spin / 2) * spin, spin)
    return system.start((0.0, math.sin(angle) - DEEP, angle), u)


def coefficients(angle, friction, spin):
    """p and b of the normal acceleration p F + b while the end slides."""
    c, s = math.cos(angle), math.sin(angle)
    return 1 + 3 * c * c - 3 * friction * s * c, -1 + spin * spin * s


def regime(p, b):
    """The regime, as an index into REGIMES, from the signs of p and b."""
    return (1 if b > 0 else 0) if p > 0 else (3 if b > 0 else 2)


def smooth_solutions(problem):
    """The same from a one-step contact problem: which of separating and sliding on are solutions of it."""
    w, (b_n, b_t), gamma = problem.delassus, problem.velocity[0], problem.friction[0, 0]
    pivot = w[0, 0] + gamma * w[0, 1]  # sliding on to the negative side: P_t = gamma P_n
    push = -b_n / pivot
    slides = push >= 0 and b_t + (w[1, 0] + gamma * w[1, 1]) * push <= 0
    separates = b_n >= 0
    return {(True, False): 0, (False, True): 1, (False, False): 2, (True, True): 3}[(bool(slides), bool(separates))]


def regime_map(parameters, step=1e-6):
    """Regimes over (angle, friction): computed from the contact problem, by the formula, and what the scheme does."""
    angles, frictions = np.linspace(2, 88, parameters["grid"]), np.linspace(0.05, 4, parameters["grid"])
    shape = (len(frictions), len(angles))
    found, theory, status, near = (np.zeros(shape, dtype=int) for _ in range(4))
    for i, friction in enumerate(frictions):
        system = rods.rod(cd.Law(friction=friction), 1.0)
        for j, degrees in enumerate(angles):
            angle = math.radians(degrees)
            p, b = coefficients(angle, friction, parameters["spin"])
            state = sliding(system, angle, parameters["spin"], parameters["speed"], step)
            found[i, j] = smooth_solutions(cd.contact_problem(system, state, step))
            status[i, j] = cd.schemes.midpoint(system, state, step).state.status[0]
            theory[i, j], near[i, j] = regime(p, b), min(abs(p), abs(b)) < 1e-4
    return {"angles": angles, "frictions": frictions, "found": found, "theory": theory, "status": status,
            "near": near.astype(bool)}  # fmt: skip


# ---- shocks and motions ----------------------------------------------------------------------------------------------


def shock_formula(angle, speed):
    """Velocity u+ and impulse (n, t) of the tangential shock: the end stops, P = -W^-1 U-."""
    before = np.array([0.0, -speed])
    p = -np.linalg.solve(rods.delassus(angle), before)
    g = np.array([[0, 1, -math.cos(angle)], [1, 0, math.sin(angle)]])
    return np.array([-speed, 0, 0]) + np.diag([1, 1, 1 / rods.INERTIA]) @ g.T @ p, p


def slide(angle, friction, speed, step, duration):
    """A rod let go while its end slides at -``speed``, without spin."""
    system = rods.rod(cd.Law(friction=friction), 1.0)
    return cd.integrate(system, start=sliding(system, angle, 0.0, speed, step), step=step, until=duration)


def critical_angles(friction):
    """The angles (radians) between which p < 0: 1 + t^2 + 3 - 3 gamma t < 0 with t = tan; none below gamma = 4/3."""
    root = 9 * friction**2 - 16
    if root <= 0:
        return None
    return tuple(math.atan((3 * friction + sign * math.sqrt(root)) / 2) for sign in (-1, 1))


def chalk(friction, step, duration=4.0):
    """A chalk pushed over a board: q = (height of the fingers, angle); the fingers hold it by a torsion spring.

    p = 1/M + (cos^2 - gamma sin cos) / I (length 1) is negative for gamma > (I/M + cos^2) / (sin cos).
    """
    c, rest = CHALK, math.radians(CHALK["degrees"])
    board = cd.Constraint(
        gap=lambda t, q: q[0] - math.sin(q[1]),
        contact_map=lambda t, q: [[1.0, -math.cos(q[1])], [0.0, math.sin(q[1])]],
        boundary=lambda t, q: (0.0, -c["speed"]),
        law=cd.Law(friction=friction),
        name="board",
    )
    system = cd.System(
        inertia=[c["mass"], c["inertia"]],
        force=lambda t, q, u: (-c["press"], -c["stiffness"] * (q[1] - rest) - c["damping"] * u[1]),
        constraints=[board],
    )
    return cd.integrate(system, q=(math.sin(rest), rest), u=(0.0, 0.0), step=step, until=duration)


def chalk_limit():
    """The coefficient of friction from which p < 0 at the angle of rest."""
    c, s = math.cos(math.radians(CHALK["degrees"])), math.sin(math.radians(CHALK["degrees"]))
    return (CHALK["inertia"] / CHALK["mass"] + c * c) / (s * c)


def jumps(motion, height=1e-3):
    """How many flights higher than ``height`` the chalk makes."""
    high = motion.q[:, 0] - np.sin(motion.q[:, 1]) > height
    return int((np.diff(high.astype(int)) == 1).sum())


def build(parameters):
    """The map of regimes, rods that slide into the shock at three steps, and chalks on a board."""
    angle, step = math.radians(parameters["angle_degrees"]), parameters["step"]
    steps = [step, step / 4, step / 16]
    band = critical_angles(parameters["friction"])
    start = 0.83 * band[0] if band else None  # from where the rod turns into the band
    return {
        "map": regime_map(parameters),
        "p": coefficients(angle, parameters["friction"], 0.0)[0],
        "rods": {h: slide(angle, parameters["friction"], parameters["speed"], h, 64 * step) for h in steps},
        "band": band,
        "approach": {
            h: slide(start, parameters["friction"], 3 * parameters["speed"], h, 1.0) for h in steps[:2] if band
        },
        "chalk": {gamma: chalk(gamma, step) for gamma in (0.5, 1.5)},
    }


# ---- results ---------------------------------------------------------------------------------------------------------


def first_steps(outcome, parameters):
    """Error of the velocity after the first step against the shock's formula, for each step length."""
    expected, _ = shock_formula(math.radians(parameters["angle_degrees"]), parameters["speed"])
    return {h: float(np.abs(motion.u[1] - expected).max()) for h, motion in outcome["rods"].items()}


def check(outcome, parameters):
    """Regimes against the formula, the shock against its closed form, energy, and the jumps of the chalk."""
    m = outcome["map"]
    clear = ~m["near"]
    agreeing = float((m["found"] == m["theory"])[clear].mean())
    chosen = np.array([SLIDING, SEPARATING, STICKING, SEPARATING])[m["theory"]]
    choice = float((m["status"] == chosen)[clear].mean())
    rows = [
        Row(
            "regimes from the contact problem that agree with the formula",
            1.0,
            agreeing,
            agreeing == 1.0,
            "closed form",
        ),
        Row("the scheme: slides, lifts off, stops (shock), lifts off", 1.0, choice, choice == 1.0, "closed form"),
    ]
    shocked = outcome["p"] < 0
    if shocked:
        errors = first_steps(outcome, parameters)
        finest, coarsest = min(errors), max(errors)
        order = math.log(errors[coarsest] / errors[finest]) / math.log(coarsest / finest)
        rows.append(Row("shock: error of u+ at the finest step; order", "0; 1", [errors[finest], order],
                        errors[finest] < 20 * finest * (1 + parameters["speed"]) and order > 0.8,
                        "closed form"))  # fmt: skip
        motion = outcome["rods"][finest]
        _, p = shock_formula(math.radians(parameters["angle_degrees"]), parameters["speed"])
        loss, lost = parameters["speed"] * p[1] / 2, float(-np.diff(motion.ledger.kinetic)[0])
        rows.append(Row("energy lost in the shock", loss, lost, abs(lost / loss - 1) < 100 * finest, "closed form"))
    if outcome["approach"]:
        coarse, fine = (float(motion.impulses[:, 0, 0].max()) for motion in outcome["approach"].values())
        ratio = fine / coarse * 4  # of the largest forces, impulse / step
        rows.append(Row("rod that slides into the catastrophe: force with a quarter of the step / before", "> 1", ratio,
                        ratio > 1.1, "closed form"))  # fmt: skip
    limit = chalk_limit()
    for gamma, motion in outcome["chalk"].items():
        count, smooth = jumps(motion), gamma < limit
        rows.append(Row(f"chalk, friction {gamma:g} (limit {limit:.3g}): jumps", "none" if smooth else "many", count,
                        count == 0 if smooth else count > 3, "closed form"))  # fmt: skip
    results = {
        "p": outcome["p"],
        "regime_at_rest": REGIMES[regime(outcome["p"], -1.0)],
        "least_friction_of_the_paradox": 4 / 3,
        "critical_angles_degrees": None if outcome["band"] is None else [math.degrees(a) for a in outcome["band"]],
        "share_of_the_map": {name: float((m["found"] == k).mean()) for k, name in enumerate(REGIMES)},
        "shock_errors": {f"{h:g}": e for h, e in first_steps(outcome, parameters).items()} if shocked else None,
        "chalk_limit": limit,
        "chalk_jumps": {f"{gamma:g}": jumps(motion) for gamma, motion in outcome["chalk"].items()},
    }
    return Verdict(results, rows)


# ---- figures ---------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """The map, the shock, the way into it, and the chalk."""
    figure, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    draw_map(one, outcome["map"], parameters)
    draw_shock(two, outcome, parameters)
    draw_approach(three, outcome)
    draw_chalk(four, outcome["chalk"])
    return figure


def draw_map(ax, m, parameters):
    """Regimes over angle and friction."""
    from matplotlib.colors import ListedColormap

    colours = ("#d9d9d9", "#a6cee3", "#e31a1c", "#fdbf6f")
    ax.pcolormesh(m["angles"], m["frictions"], m["found"], cmap=ListedColormap(colours), vmin=-0.5, vmax=3.5,
                  shading="nearest")  # fmt: skip
    fine = np.radians(np.linspace(2, 88, 400))
    ax.plot(np.degrees(fine), (1 + 3 * np.cos(fine) ** 2) / (3 * np.sin(fine) * np.cos(fine)), "k", lw=1.2)
    if parameters["spin"] ** 2 > 1:
        ax.axvline(math.degrees(math.asin(1 / parameters["spin"] ** 2)), color="k", lw=1.2)
    for k, name in enumerate(REGIMES):
        ax.plot([], [], "s", color=colours[k], label=name)
    ax.plot([], [], "k", label="p = 0, b = 0")
    ax.set(xlabel="rod from the floor, degrees", ylabel="friction", ylim=(0.05, 4),
           title=f"regimes, spin {parameters['spin']:g} (pixels: contact problem)")  # fmt: skip
    ax.legend(fontsize=8, loc="lower right")


def draw_shock(ax, outcome, parameters):
    """Speeds of the end of the rod, which stops at once."""
    for (h, motion), style in zip(outcome["rods"].items(), ("o-", "s-", ".-"), strict=True):
        tip = motion.u[:, 0] + np.sin(motion.q[:, 2]) * motion.u[:, 2]
        ax.plot(motion.times, tip, style, ms=4, lw=1, label=f"step {h:g}")
    title = f"rod at {parameters['angle_degrees']:g}°, friction {parameters['friction']:g}, sliding at the start"
    ax.set(xlabel="t", ylabel="velocity of the end along the floor", title=title,
           xlim=(-0.1 * parameters["step"], 4 * parameters["step"]))  # fmt: skip
    ax.legend(frameon=False, fontsize=8)


def draw_approach(ax, outcome):
    """Normal force, as a mean over 8 steps: on a curved path the contact opens now and then for a step."""
    for h, motion in reversed(outcome["approach"].items()):
        window = np.ones(8) / 8
        ax.plot(motion.times[1:], np.convolve(motion.impulses[:, 0, 0] / h, window, "same"), lw=1, label=f"step {h:g}")
    if outcome["band"]:
        ax.set_title(f"a rod that slides into the band from {math.degrees(outcome['band'][0]):.1f}°")
        ax.legend(frameon=False, fontsize=8)
    else:
        ax.set_title("no catastrophe below friction 4/3")
    ax.set(xlabel="t", ylabel="normal force (impulse / step, mean of 8 steps)")


def draw_chalk(ax, motions):
    """Heights of the chalk above the board."""
    gaps = {gamma: motion.q[:, 0] - np.sin(motion.q[:, 1]) for gamma, motion in motions.items()}
    top = max(gap.max() for gap in gaps.values())
    for k, (gamma, motion) in enumerate(motions.items()):
        place = CHALK["speed"] * motion.times + np.cos(motion.q[:, 1])
        ax.plot(place, gaps[gamma], color=f"C{k}", lw=1, label=f"friction {gamma:g}")
        touching = motion.status[:, 0] >= STICKING
        ax.plot(place[1:][touching], np.full(touching.sum(), -0.15 * top * (k + 1)), "|", ms=6, color=f"C{k}")
    ax.set(xlabel="along the board", ylabel="height of the end over the board", ylim=(-0.5 * top, 1.4 * top),
           title="chalk pushed over a board; below: what it draws")  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)
