"""An elastic bar strikes the ground, leaves it and slides: deformable parts with stiff elasticity treated implicitly.

2003, section 3.1: q contains the amplitudes of deformation, here the nodes of a vertical bar of finite elements, and
its horizontal position. 2004, section 6.1: stiff elasticity enters an artificial inertia, A + h^2/4 K, so that the
step is not limited by it. The bar falls without gravity and strikes with the speed v. d'Alembert's solution: contact
for 2 L/c with the constant force (m/L) c v, then all points leave with v. The law of the contact is inelastic; that the
bar comes back is the work of its elasticity. With friction the horizontal speed w falls by 2 gamma v while it slides.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.laws import Law
from contactdynamics.systems import elastic
from contactdynamics.systems.motion import integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "2003, section 3.1"
PARAMETERS = Options(
    elements=Option(160, "finite elements of the bar", least=16, most=2000),
    courant=Option(1.0, "time step over the time in which a wave crosses an element", "1", least=0.01, most=10),
    length=Option(1.0, "length of the bar, L", "m", least=1e-6, most=1e6),
    mass=Option(1.0, "mass of the bar, m", "kg", least=1e-6, most=1e6),
    wave_speed=Option(5000.0, "speed of waves in the bar, c", "m/s", least=1e-3, most=1e6),
    speed=Option(1.0, "speed at which the bar strikes, v", "m/s", least=1e-6, most=1e6),
    friction=Option(0.2, "friction coefficient of the ground", "1", least=0, most=100),
    slide=Option(1.0, "horizontal speed before the impact, w", "m/s", least=-1e6, most=1e6),
)
QUICK = {"elements": 80}

COURANTS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)


def system(p, elements) -> tuple[System, np.ndarray]:
    """The bar standing on the ground, freedoms (x, heights of the nodes), and its undeformed position."""
    a, k = elastic.bar(length=p["length"], mass=p["mass"], wave_speed=p["wave_speed"], elements=elements)
    n = elements + 2
    inertia, stiffness = np.zeros((n, n)), np.zeros((n, n))
    inertia[0, 0], inertia[1:, 1:], stiffness[1:, 1:] = p["mass"], a, k
    frame = np.zeros((2, n))
    frame[0, 1] = frame[1, 0] = 1.0  # normal: the lowest node; tangent: the whole bar
    rest = np.concatenate([[0.0], np.linspace(0.0, p["length"], elements + 1)])
    ground = Constraint(lambda t, q: q[1], contact_map=lambda t, q: frame, law=Law(friction=p["friction"]))
    return System(inertia=inertia, stiffness=stiffness, rest=rest, constraints=[ground]), rest


def strike(p, elements, *, courant=None, slide=None, scheme="midpoint", transits=3.0):
    """Motion for ``transits`` times L/c with the step courant dx/c."""
    bar, rest = system(p, elements)
    unit = p["length"] / p["wave_speed"]
    step = (courant or p["courant"]) * unit / elements
    u = np.full(len(rest), -p["speed"])
    u[0] = p["slide"] if slide is None else slide
    until = max(transits * unit, 3 * step)
    return integrate(bar, q=rest, u=u, step=step, until=until, scheme=scheme)


def measures(p, motion) -> dict:
    """Contact time, mean speed after it, energy lost in the normal direction, errors against d'Alembert; relative."""
    elements = motion.q.shape[1] - 2
    unit, heights = p["length"] / p["wave_speed"], np.linspace(0.0, p["length"], elements + 1)
    weights = np.ones(elements + 1) / elements
    weights[[0, -1]] /= 2
    pressed = np.nonzero(motion.impulses[:, 0, 0] > 0)[0]
    exact = [
        elastic.impacting_bar(heights, t, length=p["length"], wave_speed=p["wave_speed"], speed=p["speed"])
        for t in motion.times
    ]
    shifts, speeds = (np.array(part) for part in zip(*exact, strict=True))
    return {
        "contact_time": (pressed[-1] + 1) * motion.step / unit if len(pressed) else 0.0,  # in L/c; exact: 2
        "rebound": float(motion.u[-1, 1:] @ weights / p["speed"]),  # exact: 1
        "energy_loss": -2 * motion.ledger.contact_work[:, 0, 0].sum() / (p["mass"] * p["speed"] ** 2),
        "displacement_error": rms(motion.q[:, 1:] - heights - shifts, weights) / (p["speed"] * unit),
        "velocity_error": rms(motion.u[:, 1:] - speeds, weights) / p["speed"],
    }


def gain(motion):
    """Largest growth of the total energy, relative to the initial one."""
    energy = motion.ledger.kinetic + motion.ledger.potential
    return float(energy.max() / energy[0] - 1)


def rms(fields, weights):
    """Mean over time of the quadratic mean over the bar."""
    return float(np.sqrt((fields**2) @ weights).mean())


def build(p):
    """Motions of the bar for several meshes, steps and speeds of sliding, and one by an explicit scheme."""
    counts = [p["elements"] // k for k in (8, 4, 2, 1)]
    motions = {n: strike(p, n) for n in counts}
    with np.errstate(all="ignore"):
        explicit = strike(p | {"friction": 0.0}, counts[-2], courant=1.2, slide=0.0, scheme="inel", transits=2.0)
    return {
        "motions": motions,
        "slides": {w: strike(p, p["elements"], slide=w) for w in slide_speeds(p)},
        "courants": {c: strike(p, counts[-2], courant=c) for c in COURANTS},
        "explicit": explicit,
    }


def slide_speeds(p):
    """Horizontal speeds: the user's, one that friction stops, one that it does not."""
    lost = 2 * p["friction"] * p["speed"]
    return sorted({abs(p["slide"]), 0.5 * lost, 2.0 * lost} - {0.0})


def exact_slide(p, w, times):
    """Horizontal speed: it falls at the rate gamma v c / L during the contact, unless it vanishes before."""
    rate = p["friction"] * p["speed"] * p["wave_speed"] / p["length"]
    return np.maximum(0.0, w - rate * np.minimum(times, 2 * p["length"] / p["wave_speed"]))


def check(outcome, p):
    """Contact time, rebound and orders of convergence against the wave in a bar; ledger and friction impulse."""
    table = {n: measures(p, motion) for n, motion in outcome["motions"].items()}
    counts = list(table)
    finest = table[counts[-1]]
    ratio = math.log(counts[-1] / counts[0])
    order = {
        key: math.log(abs(table[counts[0]][key] - goal) / abs(finest[key] - goal)) / ratio
        for key, goal in (("rebound", 1), ("energy_loss", 0), ("displacement_error", 0), ("velocity_error", 0))
    }
    closure = max(np.abs(m.ledger.closure).max() / m.ledger.kinetic[0] for m in outcome["motions"].values())
    slides = {w: float(m.u[-1, 0]) for w, m in outcome["slides"].items()}
    expected = {w: float(exact_slide(p, w, m.times[-1])) for w, m in outcome["slides"].items()}
    worst = max((abs(slides[w] - expected[w]) / p["speed"] for w in slides), default=0.0)
    gains = {c: measures(p, m) for c, m in outcome["courants"].items()}
    largest = max(gain(m) for m in outcome["courants"].values())
    explicit = outcome["explicit"].ledger.kinetic.max() / outcome["explicit"].ledger.kinetic[0]
    shortest = outcome["motions"][counts[-1]].step * p["wave_speed"] / p["length"]
    results = {
        "contact_time": finest["contact_time"], "rebound": finest["rebound"], "energy_loss": finest["energy_loss"],
        "elements": counts, "measures": {str(n): m for n, m in table.items()}, "order": order, "closure": closure,
        "slide_after": {f"{w:g}": v for w, v in slides.items()},
        "slide_expected": {f"{w:g}": v for w, v in expected.items()},
        "courant": {f"{c:g}": {k: g[k] for k in ("rebound", "energy_loss")} for c, g in gains.items()},
        "explicit_energy_growth": explicit,
    }  # fmt: skip
    rows = [
        Row("contact time / (L/c)", 2, finest["contact_time"], abs(finest["contact_time"] - 2) <= 0.03 + 2 * shortest,
            "closed form"),
        Row("speed of the rebound / v", 1, finest["rebound"], abs(finest["rebound"] - 1) < 0.08, "closed form"),
        Row("order of the rebound in the element size", "2/3", order["rebound"], 0.5 < order["rebound"] < 0.9,
            "closed form"),
        Row("order of the velocity field (L2, with shock fronts)", "1/3", order["velocity_error"],
            0.23 < order["velocity_error"] < 0.5, "closed form"),
        Row("order of the loss of energy", "1", order["energy_loss"], 0.8 < order["energy_loss"] < 1.2, "closed form"),
        Row("energy ledger, largest error of a step", 0, closure, closure < 1e-12, "identity"),
        Row("horizontal speed after the impact, worst error / v", 0, worst, worst <= 0.08 * max(p["friction"], 1e-9),
            "closed form"),
        Row(f"energy gained with steps of {COURANTS[0]} to {COURANTS[-1]:g} dx/c", "<= 0", largest, largest < 1e-12,
            "closed form"),
        Row("explicit scheme, step 1.2 dx/c: growth of energy", "unstable", explicit, not explicit < 1e3,
            "closed form"),
    ]  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, p):
    """Waves, force, energies, convergence, steps, sliding."""
    figure, axes = plt.subplots(2, 3, figsize=(14.5, 8), layout="constrained")
    finest = list(outcome["motions"].values())[-1]
    unit = p["length"] / p["wave_speed"]
    waves(axes[0, 0], figure, finest, p, unit)
    force(axes[0, 1], finest, p, unit)
    energies(axes[0, 2], finest, unit)
    convergence(axes[1, 0], outcome, p)
    steps(axes[1, 1], outcome, p)
    sliding(axes[1, 2], outcome, p, unit)
    return figure


def waves(ax, figure, motion, p, unit):
    """The velocity field over time and height."""
    heights = np.linspace(0.0, 1.0, motion.q.shape[1] - 1)
    field = motion.u[:, 1:].T / p["speed"]
    shown = ax.pcolormesh(motion.times / unit, heights, field, cmap="coolwarm", vmin=-1.3, vmax=1.3, rasterized=True)
    ax.plot([0, 1, 2], [0, 1, 0], "k--", lw=0.8)
    figure.colorbar(shown, ax=ax, label="vertical velocity / v")
    ax.set(xlabel="t c / L", ylabel="point of the bar, s / L", title="waves in the bar (dashed: d'Alembert)")


def force(ax, motion, p, unit):
    """The contact force over time, beside the exact one."""
    impedance = p["mass"] / p["length"] * p["wave_speed"] * p["speed"]
    ax.plot(
        motion.times[1:] / unit, motion.impulses[:, 0, 0] / motion.step / impedance, "k", lw=0.9, label="computed, P/h"
    )
    ax.plot([0, 0, 2, 2, 3], [0, 1, 1, 0, 0], "r--", lw=1, label="d'Alembert")
    ax.set(xlabel="t c / L", ylabel="contact force / (m c v / L)", title="force of the ground", ylim=(-0.05, 1.4))
    ax.legend(frameon=False, loc="upper right")


def energies(ax, motion, unit):
    """The ledger: what the kinetic energy at the start has become."""
    ledger, time = motion.ledger, motion.times / unit
    start = ledger.kinetic[0]
    normal, friction = -np.cumsum(np.vstack([[0, 0], ledger.contact_work[:, 0]]), axis=0).T
    for values, name in (
        (ledger.kinetic, "kinetic"),
        (ledger.potential, "elastic"),
        (friction, "lost by friction"),
        (normal, "lost in the normal direction"),
    ):
        ax.plot(time, values / start, lw=1.2, label=name)
    total = ledger.kinetic + ledger.potential + friction + normal
    ax.plot(time, total / start, "k", lw=0.9, label="sum")
    ax.set(xlabel="t c / L", ylabel="energy / initial kinetic energy", title="energy ledger", ylim=(-0.05, 1.6))
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")


def convergence(ax, outcome, p):
    """Errors over the number of elements."""
    table = {n: measures(p, motion) for n, motion in outcome["motions"].items()}
    n = np.array(list(table), dtype=float)
    for key, goal, marker, name in (
        ("rebound", 1, "o-", "speed of the rebound"),
        ("displacement_error", 0, "s-", "displacement, L2"),
        ("velocity_error", 0, "^-", "velocity, L2"),
        ("energy_loss", 0, "d-", "energy lost in the contact"),
    ):
        ax.loglog(n, [abs(m[key] - goal) for m in table.values()], marker, ms=4, lw=1, label=name)
    ax.set_xticks(n, [f"{k:.0f}" for k in n], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="elements", ylabel="relative error", title=f"convergence, step {p['courant']:g} dx/c")
    ax.set_ylim(top=4 * ax.get_ylim()[1])
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")


def steps(ax, outcome, p):
    """The rebound over the Courant number."""
    courants = list(outcome["courants"])
    rebounds = [measures(p, outcome["courants"][c])["rebound"] for c in courants]
    ax.semilogx(courants, rebounds, "ko-", ms=4, lw=1)
    ax.axvline(1.0, color="r", lw=0.8, ls="--")
    ax.text(1.15, 0.03, "limit of the explicit scheme", color="r", fontsize=8, transform=ax.get_xaxis_transform())
    ax.set(xlabel="step / (dx/c)", ylabel="speed of the rebound / v", title="any step is stable; waves need short ones")


def sliding(ax, outcome, p, unit):
    """Horizontal speeds over time, beside the exact ones."""
    for k, (w, motion) in enumerate(outcome["slides"].items()):
        ax.plot(motion.times / unit, motion.u[:, 0] / p["speed"], f"C{k}", lw=1.2, label=f"w = {w / p['speed']:g} v")
        ax.plot(motion.times / unit, exact_slide(p, w, motion.times) / p["speed"], "k--", lw=0.7)
    ax.set(xlabel="t c / L", ylabel="horizontal speed / v", title=f"sliding, γ = {p['friction']:g} (dashed: exact)")
    if outcome["slides"]:
        ax.legend(frameon=False, fontsize=8, loc="upper right")
