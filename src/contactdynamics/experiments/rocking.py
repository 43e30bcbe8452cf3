"""A block on a table: at rest, tilted and released, shaken; against the closed forms of Housner and of Moreau's law.

Masonry tools, base motion. Rigid-body scenes of one rectangle on a rectangle. The angular velocity ratio at the impact
of the other corner with and without friction and the slenderness below which the block stops (2004, section 7.4),
Housner's period (1963), and the motion under a shaken table against the smooth equation between impacts.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments import _rocking
from contactdynamics.experiments._rocking import GRAVITY, Block, impact_ratio
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.rigid.simulation import Simulation

FIGURE = "2004, section 7.4; Housner 1963"
PARAMETERS = Options(
    width=Option(0.25, "width of the block", "m", least=1e-3, most=1e3),
    height=Option(1.0, "height of the block", "m", least=1e-3, most=1e3),
    friction=Option(0.8, "friction coefficient", "1", least=0, most=100),
    tilt=Option(0.5, "tilt at the release, over the angle at which it topples", "1", least=0.01, below=1),
    shake=Option(1.5, "amplitude of the ground's acceleration, over that at which the block begins to rock", "1",
                 least=0, most=100),
    frequency=Option(2.5, "frequency of the ground", "Hz", least=0.01, most=100),
    duration=Option(4.0, "time of the shaking", "s", above=0, most=1000),
    step=Option(1e-3, "time step", "s", least=1e-6, most=0.02),
    ratios=Option(9, "slendernesses at which the impact is computed", least=2, most=10_000),
)  # fmt: skip
QUICK = {"step": 2e-3, "duration": 2.0, "ratios": 5}


def build(parameters):
    """Blocks at rest, on impact, tilted and released, shaken, and on the verge of toppling."""
    p = parameters
    block = Block(p["width"], p["height"])
    return {
        "block": block,
        "rest": rest(block, p),
        "impacts": impacts(p),
        "critical": {"with friction": critical(10.0), "without friction": critical(0.0)},
        "released": released(block, p),
        "shaken": shaken(block, p, p["shake"], "run"),
        "below": shaken(block, p, 0.95, "run-below"),
        "topples": [topples(block, p, share) for share in (0.995, 1.005)],
    }


def rest(block, p):
    """Largest displacement and turn of a block at rest in a second, over its width."""
    sim = Simulation(_rocking.scene(block, friction=p["friction"]), time_step=p["step"])
    stone = sim.body(1)
    start, found = stone.position, sim.is_equilibrium()
    sim.run(until=round(1 / p["step"]) * p["step"], progress=False)
    return bool(found), float(max(np.abs(stone.position - start).max() / block.width, abs(stone.rotation)))


def topples(block, p, share):
    """Whether a block tilted to ``share`` of alpha and released at rest falls over."""
    model = _rocking.scene(block, friction=10.0, tilt=share * block.alpha)
    _, tilts, _, _ = _rocking.simulate(model, p["step"], 6.0 / block.rate)
    return bool(abs(tilts[-1]) > block.alpha)


def one_impact(slenderness, friction, step=1e-6) -> float:
    """Spin after over before the impact of the other corner, without weight: one turn through the upright position."""
    model = _rocking.scene(Block(1.0, slenderness), friction=friction, tilt=1.5 * step, spin=-1.0, gravity=0.0)
    sim = Simulation(model, time_step=step, tolerance=1e-13, max_iterations=10_000)
    for _ in range(5):
        sim.step()
    return -sim.body(1).spin


def impacts(p):
    """(K, 3) slenderness, ratio with the friction of the options, ratio without friction."""
    grid = np.linspace(0.5, 5.0, p["ratios"])
    return np.array([(s, one_impact(s, p["friction"]), one_impact(s, 0.0)) for s in grid])


def critical(friction) -> float:
    """The slenderness below which an impact stops the block, by bisection on the impact."""
    stops, rocks = 0.3, 3.0
    while rocks - stops > 1e-4:
        middle = 0.5 * (stops + rocks)
        stops, rocks = (stops, middle) if one_impact(middle, friction) > 1e-5 else (middle, rocks)
    return rocks


def released(block, p):
    """The free rocking of a tilted block, and the smooth motion beside it."""
    tilt = p["tilt"] * block.alpha
    until = 1.6 * _rocking.housner_period(block, tilt)
    model = _rocking.scene(block, friction=p["friction"], tilt=tilt)
    times, tilts, _, sim = _rocking.simulate(model, p["step"], until, name="run-released")
    return times, tilts, _rocking.smooth_motion(block, lambda t: 0.0, until, tilt=tilt), sim.energy


def ground(p, share, block):
    """Velocity of the table for a ground acceleration share g / slenderness sin(2 pi f t), from rest."""
    size, turn = share * GRAVITY / block.slenderness, 2 * math.pi * p["frequency"]
    # Its mean is zero: the table moves to and fro about the start.
    return (lambda t: np.array([size / turn * (1 - math.cos(turn * t)), 0.0])), lambda t: size * math.sin(turn * t)


def shaken(block, p, share, name="run"):
    """The motion on the shaken table, and the smooth motion beside it."""
    velocity, acceleration = ground(p, share, block)
    model = _rocking.scene(block, friction=p["friction"], ground=velocity)
    times, tilts, _, sim = _rocking.simulate(model, p["step"], p["duration"], name=name)
    return times, tilts, _rocking.smooth_motion(block, acceleration, p["duration"]), sim.energy


# ---- numbers and figures -------------------------------------------------------------------------------------------


def impact_times(times, tilts) -> np.ndarray:
    """Times at which the tilt changes its sign."""
    k = np.flatnonzero(tilts[:-1] * tilts[1:] < 0)
    return times[k] + (times[k + 1] - times[k]) * tilts[k] / (tilts[k] - tilts[k + 1])


def apart(motion, alpha) -> float:
    """Root mean square over time of the difference from the smooth motion, over alpha."""
    times, tilts, (reference, smooth), _ = motion
    return float(np.sqrt(np.mean((np.interp(times, reference, smooth) - tilts) ** 2)) / alpha)


def check(outcome, parameters):
    """Rest, impact, release and shaking against Housner's and Moreau's closed forms."""
    p, block = parameters, outcome["block"]
    grid, held, free = outcome["impacts"].T
    tilt = p["tilt"] * block.alpha
    first = float(impact_times(*outcome["released"][:2])[0])
    quarter = _rocking.quarter(block, tilt)
    results = {
        "slenderness": grid,
        "velocity_ratio": held,
        "velocity_ratio_without_friction": free,
        "critical_aspect_ratio": outcome["critical"]["with friction"],
        "critical_aspect_ratio_without_friction": outcome["critical"]["without friction"],
        "alpha_degrees": math.degrees(block.alpha),
        "first_impact": first,
        "first_impact_exact": quarter,
        "period": 4 * first,
        "housner_period": _rocking.housner_period(block, tilt),
        "rest": outcome["rest"],
        "released_difference": apart(outcome["released"], block.alpha),
        "shaken_difference": apart(outcome["shaken"], block.alpha),
        "shaken_largest_tilt": float(np.abs(outcome["shaken"][1]).max() / block.alpha),
        "tilt_below_threshold": float(np.abs(outcome["below"][1]).max()),
        "topples": outcome["topples"],
    }
    error = float(np.abs(held - impact_ratio(grid, p["friction"])).max())
    error_free = float(np.abs(free - impact_ratio(grid, 0.0)).max())
    root, rows = math.sqrt(0.5), []
    rows += [
        Row("at rest: moves / width in 1 s", "0, in equilibrium", outcome["rest"][1],
            outcome["rest"][0] and outcome["rest"][1] < 1e-8, "closed form"),
        Row(f"impact, friction {p['friction']:g}: error of the ratio", "closed form", error, error < 1e-5,
            "closed form"),
        Row("impact without friction: error of the ratio", "closed form", error_free, error_free < 1e-5, "closed form"),
        Row("stops below height / width, no sliding", root, results["critical_aspect_ratio"],
            abs(results["critical_aspect_ratio"] - root) < 3e-4, "closed form"),
        Row("stops below height / width, no friction", 2 * root, results["critical_aspect_ratio_without_friction"],
            abs(results["critical_aspect_ratio_without_friction"] - 2 * root) < 3e-4, "closed form"),
        Row("topples when released at 0.995 / 1.005 alpha", "no / yes", str(outcome["topples"]),
            outcome["topples"] == [False, True], "closed form"),
    ]  # fmt: skip
    if p["friction"] < sticking(block):
        return Verdict(results, rows)
    rows += [
        Row("first impact after release, s", quarter, first, abs(first - quarter) < 2 * p["step"], "closed form"),
        Row("period, s (Housner, slender blocks)", results["housner_period"], results["period"],
            abs(results["period"] / results["housner_period"] - 1) < 0.5 * block.alpha**2 + 8 * p["step"],
            "closed form"),
        Row("free rocking, difference / alpha", "smooth equation", results["released_difference"],
            results["released_difference"] < 30 * p["step"], "own reference"),
    ]  # fmt: skip
    if p["friction"] > 1 / block.slenderness:
        rows.append(Row("shaken at 0.95 of the threshold: tilt", 0, results["tilt_below_threshold"],
                        results["tilt_below_threshold"] < 1e-6, "closed form"))  # fmt: skip
        if p["shake"] > 1:
            rows.append(Row("shaken above it: largest tilt / alpha", "> 0", results["shaken_largest_tilt"],
                            results["shaken_largest_tilt"] > 1e-3, "own reference"))  # fmt: skip
    return Verdict(results, rows)


def sticking(block) -> float:
    """Friction that surely holds the corner of a rocking block.

    At impacts and at the release of a small tilt 3 s / (4 s^2 + 1), on a shaken table 1 / s; half as much again for the
    part of the motion between.
    """
    s = block.slenderness
    return 1.5 * max(3 * s / (4 * s**2 + 1), 1 / s)


def figure(outcome, parameters):
    """Speeds after impact, the released and the shaken block."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.3), layout="constrained")
    _draw_ratios(axes[0], outcome, parameters)
    for ax, name, title in ((axes[1], "released", "tilted and released"), (axes[2], "shaken", "shaken")):
        times, tilts, smooth, _ = outcome[name]
        alpha = outcome["block"].alpha
        ax.plot(times, tilts / alpha, "C0-", lw=1.2, label="Contact Dynamics")
        ax.plot(smooth[0], smooth[1] / alpha, "k--", lw=0.9, label="smooth equation and impact rule")
        ax.axhline(0, color="0.7", lw=0.5)
        ax.set(xlabel="t, s", ylabel=r"tilt / $\alpha$", title=title)
        ax.set_ylim(top=1.35 * max(np.abs(tilts / alpha).max(), 1e-3))
        ax.legend(frameon=False, fontsize=8, loc="upper right")
    quarter = _rocking.housner_period(outcome["block"], parameters["tilt"] * outcome["block"].alpha) / 4
    axes[1].axvline(quarter, color="C3", lw=0.8, ls=":")
    axes[1].annotate(
        "Housner's\nquarter period", (quarter, 0), (6, 62), textcoords="offset points", fontsize=8, color="C3"
    )
    return figure


def _draw_ratios(ax, outcome, parameters):
    grid = np.linspace(0.3, 5, 300)
    for friction, column, colour in ((parameters["friction"], 1, "C0"), (0.0, 2, "C1")):
        ax.plot(grid, impact_ratio(grid, friction), color=colour, lw=1, label=f"friction {friction:g}, closed form")
        ax.plot(
            outcome["impacts"][:, 0], outcome["impacts"][:, column], "o", mfc="none", color=colour, label="one impact"
        )
    for name, place in (("with friction", math.sqrt(0.5)), ("without friction", math.sqrt(2))):
        ax.plot(outcome["critical"][name], 0, "k^", ms=6, clip_on=False)
        ax.annotate(f"{place:.3f}", (place, 0), (0, 8), textcoords="offset points", fontsize=8, ha="center")
    ax.set(xlabel="height / width", ylabel="angular velocity after / before", title="impact of the other corner",
           xlim=(0.3, 5), ylim=(0, 1))  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc="lower right")
