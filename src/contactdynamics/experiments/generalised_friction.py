"""Friction in generalised forces: the bar of Charles and Ballard, oblique impacts, a particle in a corner.

2013. A bar whose centre keeps its height touches the ground with its right end. Coulomb's law gives its friction
surface by the dissipation of sliding; a motion to the right is blocked when friction >= 1 / |tan theta_0|, and its
coefficient is infinite. Pushed to the right without pressure, the bar slides or stays, as one takes 0 times infinity.
The same law covers oblique impacts, where it never creates energy, and several contacts, whose dissipations add up.

The printed text of section 4 has slips: a unit generalised normal is a moment sqrt(J), so sqrt(J) stands here for J.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.laws import Law
from contactdynamics.systems.generalised import friction_surface
from contactdynamics.systems.motion import integrate
from contactdynamics.systems.schemes import SCHEMES
from contactdynamics.systems.system import Constraint, System

FIGURE = "2013, figures 1 and 2"
PARAMETERS = Options(
    mass=Option(1.0, "mass of the bar, m", "kg", least=1e-6, most=1e6),
    length=Option(1.0, "from the centre of the bar to its end, l", "m", least=1e-6, most=1e6),
    inertia=Option(1 / 3, "moment of inertia about the centre, J", "kg m²", least=1e-6, most=1e6),
    angle_degrees=Option(60.0, "angle of the bar to the horizontal", "degrees", above=-90, below=90),
    friction=Option(1.0, "friction coefficient of the ground", "1", least=0, most=1e6),
    push=Option(1.0, "force that pushes the bar to the right", "N", least=1e-6, most=1e6),
    restitution=Option(0.9, "restitution of the oblique impacts", "1", least=0, most=1),
    step=Option(0.01, "time step", "s", least=1e-5, most=0.2),
)
QUICK = {}

DURATION = 1.0
MOMENT = -2.0  # presses the bar on the ground, N m
ANGLES = np.arange(1.0, 90.0)  # of the falling bar, degrees
TOUCH = 1e-12  # m: overlap at the start, so that rounding does not part what touches
GROOVE, SLOPE, GROOVE_FRICTION, GRAVITY = math.radians(25), math.radians(60), 0.5, 9.81


def build(parameters):
    """The friction surface of the bar, its motions by both selections, oblique impacts, and a particle in a corner."""
    system, start = bar(parameters)
    return {
        "surface": friction_surface(system, start),
        "selections": {name: move(parameters, name) for name in ("slides", "blocks")},
        "pressed": pressed(parameters),
        "impacts": {name: impacts(parameters, name) for name in ("generalised", "midpoint")},
        "corner": corner(parameters),
    }


# ---- the bar (sections 2 and 4) --------------------------------------------------------------------------------------


def lowest(parameters):
    """theta_0 (rad): the right end is lower than the centre, whatever the sign of the option."""
    return -math.radians(abs(parameters["angle_degrees"]))


def bar(parameters, moment=0.0, push=None):
    """The bar and its start; q = (x, theta). Its end A is at (x + l cos theta, height + l sin theta)."""
    l, theta = parameters["length"], lowest(parameters)
    height = -l * math.sin(theta)
    ground = Constraint(
        gap=lambda t, q: height + l * math.sin(q[1]) - TOUCH,
        contact_map=lambda t, q: [[0.0, l * math.cos(q[1])], [1.0, -l * math.sin(q[1])]],
        law=Law(friction=parameters["friction"]),
    )
    push = parameters["push"] if push is None else push
    inertia = [parameters["mass"], parameters["inertia"]]
    return System(inertia=inertia, force=lambda t, q, u: (push, moment), constraints=[ground]), (0.0, theta)


def move(parameters, grazing):
    """The bar at rest on the ground, pushed to the right without pressure."""
    system, start = bar(parameters)
    step = parameters["step"]
    return integrate(system, start, (0, 0), step=step, until=DURATION, scheme="generalised", grazing=grazing)


def pressed(parameters):
    """The bar pressed on the ground, sliding to the left: both schemes."""
    system, start = bar(parameters, moment=MOMENT, push=0.0)
    return {
        name: integrate(system, start, (-1, 0), step=parameters["step"], until=DURATION, scheme=name)
        for name in ("generalised", "midpoint")
    }


def closed_form(parameters, friction=None):
    """mu^- and mu^+ of section 4, derived again.

    Sliding to the left (right) the force of the ground is r_n (1, +-mu); its moment about the centre is
    l r_n (cos theta_0 -+ mu sin theta_0) = sqrt(J), a unit normal; the power lost at the unit velocity 1 / sqrt(m) is
    mu r_n / sqrt(m).
    """
    mu, theta = parameters["friction"] if friction is None else friction, lowest(parameters)
    scale = mu * math.sqrt(parameters["inertia"] / parameters["mass"]) / parameters["length"]
    left, right = math.cos(theta) - mu * math.sin(theta), math.cos(theta) + mu * math.sin(theta)
    return scale / left, scale / right if right > 1e-13 else math.inf


# ---- oblique impacts (section 3) -------------------------------------------------------------------------------------


def impacts(parameters, scheme):
    """Kinetic energy after / before for a free bar that falls on the ground: (angles, velocities).

    Its end strikes with the velocity (U_t, -1), U_t from -3 to 3, without spin.
    """
    l, mass = parameters["length"], parameters["mass"]
    law = Law(friction=parameters["friction"], restitution=parameters["restitution"])
    ratios = np.empty((len(ANGLES), len(SPEEDS)))
    for i, theta in enumerate(-np.radians(ANGLES)):
        c, s = l * math.cos(theta), l * math.sin(theta)
        rows = [[0.0, 1.0, c], [1.0, 0.0, -s]]
        # q are displacements from the place of the impact: only the jump of the velocity is wanted.
        floor = Constraint(gap=lambda t, q, c=c: q[1] + c * q[2], contact_map=lambda t, q, rows=rows: rows, law=law)
        system = System(inertia=[mass, mass, parameters["inertia"]], constraints=[floor])
        for j, speed in enumerate(SPEEDS):
            done = SCHEMES[scheme](system, system.start((0, 0, 0), (speed, -1.0, 0.0)), 1e-6)
            ratios[i, j] = done.kinetic_after / done.kinetic_before
    return ratios


SPEEDS = (-3.0, -1.0, -0.3, 0.3, 1.0, 3.0)


# ---- the corner between two walls (section 5) ------------------------------------------------------------------------


def corner(parameters):
    """A particle at rest in a groove on a slope: generalised friction, and Coulomb's law from two first guesses."""
    across, up = math.cos(GROOVE), math.sin(GROOVE)
    walls = [
        Constraint(
            gap=lambda t, q, s=side: s * across * q[1] + up * q[2] - TOUCH,
            contact_map=lambda t, q, s=side: [[0.0, s * across, up], [1.0, 0.0, 0.0], [0.0, -s * up, across]],
            law=Law(friction=GROOVE_FRICTION),
        )
        for side in (1.0, -1.0)
    ]
    gravity = GRAVITY * np.array([math.sin(SLOPE), 0.0, -math.cos(SLOPE)])
    system = System(inertia=np.ones(3), force=lambda t, q, u: gravity, constraints=walls)
    step = parameters["step"]
    start = system.start(np.zeros(3), np.zeros(3))
    wedge = start._replace(impulses=wedged(100 * GRAVITY * step))
    options = {"step": step, "until": DURATION}
    return {
        "generalised": integrate(system, start=start, scheme="generalised", **options),
        "Coulomb, from nothing": integrate(system, start=start, **options),
        "Coulomb, from a wedge": integrate(system, start=wedge, **options),
    }


def wedged(size):
    """Impulses of the two walls that balance each other: each along the horizontal across the groove (2, 3)."""
    across, up = math.cos(GROOVE), math.sin(GROOVE)
    return size * np.array([[across, 0.0, -up]] * 2)


def groove_acceleration():
    """Each wall carries g cos(slope) / (2 sin(half angle)), as without friction; all friction is along the groove."""
    normal = GRAVITY * math.cos(SLOPE) / (2 * math.sin(GROOVE))
    return GRAVITY * math.sin(SLOPE) - 2 * GROOVE_FRICTION * normal


# ---- numbers and pictures --------------------------------------------------------------------------------------------


def check(outcome, parameters):
    """Both frictions against the closed forms of Charles and Ballard; no energy from oblique impacts."""
    surface = outcome["surface"]
    left, right = surface.coefficient((-1, 0)), surface.coefficient((1, 0))
    exact_left, exact_right = closed_form(parameters)
    slides, blocks = (outcome["selections"][name].q[-1, 0] for name in ("slides", "blocks"))
    fallen = 0.5 * parameters["push"] / parameters["mass"] * outcome["selections"]["slides"].times[-1] ** 2
    same = float(np.abs(outcome["pressed"]["generalised"].q - outcome["pressed"]["midpoint"].q).max())
    created = {name: float(ratios.max()) for name, ratios in outcome["impacts"].items()}
    ends = {name: float(motion.u[-1, 0]) for name, motion in outcome["corner"].items()}
    groove = groove_acceleration() * outcome["corner"]["generalised"].times[-1]
    rows = [
        Row("friction to the left", exact_left, left, math.isclose(left, exact_left, rel_tol=1e-12, abs_tol=1e-15),
            "closed form"),
        Row("friction to the right", exact_right, right, math.isclose(right, exact_right, rel_tol=1e-9, abs_tol=1e-15),
            "closed form"),
        Row("0 x infinity = 0: displacement f t²/2m, m", fallen, slides, math.isclose(slides, fallen, rel_tol=1e-9),
            "closed form"),
        Row("pressed, to the left: difference from Coulomb, m", 0, same, same < 1e-10, "own reference"),
        Row("energy after / before oblique impacts, largest", "<= 1", created["generalised"],
            created["generalised"] <= 1 + 1e-12, "closed form"),
        Row("groove: speed after 1 s, m/s", groove, ends["generalised"],
            math.isclose(ends["generalised"], groove, rel_tol=1e-9), "closed form"),
        Row("groove, Coulomb: other answers from a wedge", "stuck", ends["Coulomb, from a wedge"],
            abs(ends["Coulomb, from a wedge"]) < 1e-6, "own reference"),
    ]  # fmt: skip
    wanted = 0.0 if right == math.inf else fallen  # nothing infinite: both selections slide
    rows.insert(
        3, Row("0 x infinity = infinity: displacement, m", wanted, blocks, abs(blocks - wanted) <= 1e-9, "closed form")
    )
    results = {
        "friction_left": left,
        "friction_right": right,
        "blocked": "right" if right == math.inf else "none",
        "displacement": {"slides": slides, "blocks": blocks},
        "largest_energy_ratio": {"generalised": created["generalised"], "newton_coulomb": created["midpoint"]},
        "groove_speed": ends,
    }
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The bar, its friction surface and coefficients, motions, energies of impacts, and the corner."""
    picture, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
    draw_bar(axes[0, 0], parameters)
    draw_surface(axes[0, 1], outcome["surface"])
    draw_coefficients(axes[0, 2], outcome["surface"], parameters)
    for (name, motion), style in zip(outcome["selections"].items(), ("-", "--"), strict=True):
        label = {"slides": "0 × ∞ = 0", "blocks": "0 × ∞ = ∞"}[name]
        axes[1, 0].plot(motion.times, motion.q[:, 0], style, label=label)
    axes[1, 0].set(xlabel="t, s", ylabel="x, m", title="pushed to the right without pressure")
    axes[1, 0].legend(frameon=False)
    draw_impacts(axes[1, 1], outcome["impacts"], parameters)
    for (name, motion), style in zip(outcome["corner"].items(), ("-", ":", "--"), strict=True):
        axes[1, 2].plot(motion.times, motion.q[:, 0], style, lw=2, label=name)
    axes[1, 2].set(xlabel="t, s", ylabel="way along the groove, m", title="a particle in the corner of two walls")
    axes[1, 2].legend(frameon=False)
    return picture


def draw_bar(axes, parameters):
    """The bar in its lowest place."""
    l, theta = parameters["length"], lowest(parameters)
    end = l * np.array([math.cos(theta), math.sin(theta)])
    ground = end[1]
    axes.plot([-end[0], end[0]], [-end[1], end[1]], color="k", lw=4, solid_capstyle="round")
    axes.plot(0, 0, "o", color="w", mec="k", ms=7, zorder=3)
    axes.plot([-1.7 * l, 1.7 * l], [ground, ground], color="0.4", lw=1)
    axes.plot([-1.7 * l, 1.7 * l], [0, 0], color="0.6", lw=0.7, ls="-.")
    axes.annotate("", (0.6 * l, 0), (0.08 * l, 0), arrowprops={"arrowstyle": "-|>", "color": "tab:red", "lw": 2})
    axes.text(0.65 * l, 0.05 * l, "push", color="tab:red")
    axes.text(end[0] + 0.06 * l, ground + 0.06 * l, "A")
    axes.text(-1.65 * l, 0.05 * l, "height of the centre", color="0.4", fontsize=8)
    tall = max(abs(ground), 0.4 * l)
    axes.set(
        xlim=(-1.7 * l, 1.7 * l), ylim=(-1.25 * tall, 1.35 * tall), aspect="equal", title="the bar (2013, figure 1)"
    )
    axes.set(xlabel="m", ylabel="m")


def draw_surface(axes, surface):
    """The region of admissible generalised reactions: r_t between -mu^+ r_n and mu^- r_n."""
    left, right = surface.coefficient((-1, 0)), surface.coefficient((1, 0))
    width = 1.5 * max(c for c in (left, right, 0.1) if c < math.inf)
    normal = np.array([0.0, 1.0])
    low = np.array([-width, -width]) if right == math.inf else -right * normal
    axes.fill_betweenx(normal, low, left * normal, color="tab:blue", alpha=0.25, lw=0)
    axes.plot(left * normal, normal, color="tab:blue")
    label = rf"$\mu^- = {left:.3f}$"
    axes.text(left * 0.97, 1.02, label, ha="center", color="tab:blue")
    if right < math.inf:
        axes.plot(-right * normal, normal, color="tab:blue")
        axes.text(-right * 0.97, 1.02, rf"$\mu^+ = {right:.3f}$", ha="center", color="tab:blue")
    else:
        axes.text(-width * 0.9, 1.02, r"$\mu^+ = \infty$", color="tab:blue")
    axes.axvline(0, color="0.6", lw=0.6)
    axes.set(xlim=(-1.1 * width, 1.1 * width), ylim=(0, 1.15), title="friction surface of the bar")
    axes.set(xlabel="$r_t$, in units of $\\sqrt{m}$", ylabel="$r_n$, in units of $\\sqrt{J}$")


def draw_coefficients(axes, surface, parameters):
    """The coefficients for both senses over that of the contact."""
    theta = lowest(parameters)
    limit = 1 / abs(math.tan(theta)) if theta else math.inf
    top = max(2 * parameters["friction"], 1.6 * min(limit, 2.0), 0.5)
    friction = np.linspace(0, top, 400)
    left, right = np.array([closed_form(parameters, mu) for mu in friction]).T
    axes.plot(friction, left, label=r"to the left, $\mu^-$")
    axes.plot(friction, np.where(np.isfinite(right), right, np.nan), label=r"to the right, $\mu^+$")
    height = 4 * max(left.max(), 0.1)
    for direction, colour in (((-1, 0), "tab:blue"), ((1, 0), "tab:orange")):
        value = surface.coefficient(direction)
        if value < height:
            axes.plot(parameters["friction"], value, "o", color=colour)
    if limit < top:
        axes.axvspan(limit, top, color="0.9")
        axes.text(0.5 * (limit + top), 0.6 * height, "blocked to the right", ha="center", fontsize=9)
    axes.set(xlim=(0, top), ylim=(0, height), xlabel="Coulomb's coefficient", ylabel="generalised coefficient")
    axes.set(title="built from the dissipation")
    axes.legend(frameon=False, loc="upper right")


def draw_impacts(axes, ratios, parameters):
    """Energy after over energy before, for both laws."""
    for (name, values), style in zip(ratios.items(), ("-", "--"), strict=True):
        label = {"generalised": "generalised friction", "midpoint": "Newton and Coulomb"}[name]
        axes.plot(ANGLES, values.max(axis=1), style, label=label)
    axes.axhline(1, color="0.5", lw=0.7)
    axes.set(xlabel="angle of the bar to the ground, degrees", ylabel="energy after / before, largest")
    axes.set(title=f"oblique impacts, restitution {parameters['restitution']:g}")
    axes.legend(frameon=False)
