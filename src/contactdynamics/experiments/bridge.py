"""The stone bridge: its central archstone is forced down; with much friction hinges open, with little stones slide.

2004, section 9, Fig. 1 (friction 0.6) and Fig. 2 (friction 0.3). The paper gives no measures: here an arch of 17
voussoirs, mean radius 5 m, with coursed spandrels on fixed abutments, 55 stones. That it stands under its own weight is
proved first, by the one-step test and by the linear programme. Then a disk with imposed motion pushes the central
archstone down.
"""

from itertools import pairwise
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.experiments import _bridge
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.plotting import film, plot_scene
from contactdynamics.rigid.simulation import Simulation

FIGURE = "2004, Fig. 1 and 2"
PARAMETERS = Options(
    frictions=Option([0.6, 0.3], "friction coefficients, a bridge for each", "1", least=0, most=100),
    voussoirs=Option(17, "stones of the arch, an odd number", least=7, most=201),
    thickness=Option(0.14, "thickness of the arch over its mean radius", "1", above=0, below=0.4),
    block=Option(0.27, "width of the spandrel stones over the mean radius", "1", least=0.02, most=10),
    speed=Option(0.1, "speed of the object that pushes", "m/s", least=1e-3, most=10),
    travel=Option(0.6, "way of the object", "m", above=0, most=5),
    reading=Option(0.15, "way at which hinges and sliding joints are counted", "m", above=0, most=5),
    step=Option(2e-3, "time step", "s", least=1e-6, most=0.02),
    # The arch multiplies the force of the object: a loose tolerance lets stones sink into each other.
    tolerance=Option(1e-8, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    film_frames=Option(36, "pictures of the film", least=0, most=10_000),
)
QUICK = {"travel": 0.16, "film_frames": 4}

MOVED = 0.03  # of the thickness: joints that have opened, or slid, by less are counted as closed
READ_AT = (0.1, 0.5, 1, 2, 5)  # mm of travel at which the force is told, in means over 10 ms


class Fall(NamedTuple):
    """One bridge, pushed."""

    friction: float
    bridge: _bridge.Bridge
    answer: object  # of the one-step test
    programme: object  # of the linear programme
    bound: float  # largest force that the structure can bear at the start, N per metre of width
    start: object  # frame
    frames: list  # for states and film, evenly over the travel
    reading: object  # frame at which joints are counted
    travel: np.ndarray  # (steps,) of the object, m
    force: np.ndarray  # (steps,) on the object, upwards, N per metre of width
    energy: object
    failures: int


def build(parameters):
    """A `Fall` of the bridge for each friction."""
    frictions = parameters["frictions"]
    if not frictions or not parameters["reading"] <= parameters["travel"]:
        raise InputError(
            f"bridge got frictions={frictions}, reading={parameters['reading']}, travel={parameters['travel']}; give "
            "a coefficient at least and a reading up to travel."
        )
    return [fall(float(friction), parameters) for friction in frictions]


def fall(friction, parameters) -> Fall:
    """Prove the equilibrium of a bridge, then push its central archstone."""
    bridge = _bridge.bridge(parameters, friction)
    sim = Simulation(
        bridge.scene,
        time_step=parameters["step"],
        tolerance=parameters["tolerance"],
        on_failure="ignore",
    )
    answer = sim.is_equilibrium(tolerance=1e-8, limit=1e-5, max_iterations=100_000)
    start = sim.frame()
    resting = start._replace(contacts=answer.contacts)
    programme = analysis.balance(resting)
    bound = analysis.largest_push(resting, body=bridge.object)
    pushed = sim.body(bridge.object)
    top, count = pushed.position[1], max(4, parameters["film_frames"])
    marks, reading, frames = np.linspace(0, parameters["travel"], count), None, [start]
    travel, force = [], []
    until = parameters["travel"] / parameters["speed"] + 0.5 * _bridge.RAMP
    name = "run" if friction == parameters["frictions"][0] else f"run-{friction:g}"
    with recorded(sim, until=until, name=name):
        while not travel or travel[-1] < parameters["travel"]:
            sim.step()
            travel.append(top - pushed.position[1])
            force.append(_upward(sim.contacts, bridge.object) / sim.time_step)
            if travel[-1] >= marks[min(len(frames), count - 1)] - 1e-9 and len(frames) < count:
                frames.append(sim.frame())
            if reading is None and travel[-1] >= parameters["reading"] - 1e-9:
                reading = sim.frame()
    return Fall(friction, bridge, answer, programme, bound, start, frames, reading, np.array(travel), np.array(force),
                sim.energy, sim.failures)  # fmt: skip


def _upward(contacts, body) -> float:
    """The vertical impulse on a body."""
    impulse = np.einsum("kij,ki->kj", contacts.frame, contacts.impulse)[:, 1]
    return float(impulse[contacts.bodies[:, 1] == body].sum() - impulse[contacts.bodies[:, 0] == body].sum())


def smooth(values, width=25) -> np.ndarray:
    """Moving mean: single steps are impulses of small impacts."""
    width = min(width, len(values))
    return np.convolve(values, np.ones(width) / width, mode="same")


# ---- numbers -------------------------------------------------------------------------------------------------------


def numbers(outcome: Fall, step: float) -> dict:
    """What is read from one fall: hinges, joints that slid, force over the weight of the arch."""
    joints = _bridge.joints(outcome.bridge, outcome.start, outcome.reading)
    weight = 9.81 * outcome.start.masses[outcome.bridge.arch.voussoirs].sum()
    force, short = smooth(outcome.force), smooth(outcome.force, max(1, round(0.01 / step)))
    pick = np.linspace(0, len(force) - 1, min(60, len(force))).astype(int)
    e = outcome.energy
    return {
        "stones": len(outcome.bridge.arch.voussoirs) + len(outcome.bridge.spandrel),
        "in_equilibrium": bool(outcome.answer),
        "velocity_left_by_one_step": outcome.answer.largest_velocity,
        "in_equilibrium_by_linear_programme": bool(outcome.programme),
        "hinges": joints.hinges(MOVED),
        "opening_joints": len(joints.opened(MOVED)),
        "sliding_joints": len(joints.slid(MOVED)),
        "largest_opening": float(joints.opening.max()),
        "largest_slip": float(np.abs(joints.slip).max()),
        "displacement": outcome.travel[pick],
        "force": force[pick],
        "force_in_first_step": float(outcome.force[0]),
        "largest_force": float(short.max()),
        "force_over_10_ms": {f"{mm:g}": float(np.interp(1e-3 * mm, outcome.travel, short)) for mm in READ_AT},
        "force_at_5_mm": float(outcome.force[(outcome.travel > 4e-3) & (outcome.travel < 6e-3)].mean()),
        "largest_force_by_linear_programme": outcome.bound,
        "weight_of_arch": weight,
        "energy_closure": e.closure / max(e.kinetic, abs(e.drive_work), abs(e.force_work), 1e-300),
        "steps_not_solved": outcome.failures,
    }


def check(outcome, parameters):
    """Which mechanism each friction gives, the force against the displacement, and the ledger."""
    results, rows = {"mechanisms": {}}, []
    published = all(parameters[key] == PARAMETERS[key] for key in ("voussoirs", "thickness", "block", "speed"))
    for one in outcome:
        found = results["mechanisms"][f"{one.friction:g}"] = numbers(one, parameters["step"])
        name = f"friction {one.friction:g}: "
        rows.append(Row(name + "stands, by the one-step test and the linear programme", "in equilibrium",
                        f"{found['in_equilibrium']}, {found['in_equilibrium_by_linear_programme']}",
                        found["in_equilibrium"] and found["in_equilibrium_by_linear_programme"],
                        "published"))  # fmt: skip
        opening, sliding = found["opening_joints"], found["sliding_joints"]
        if published and one.friction == 0.6:
            abouts = [hinge["about"] for hinge in found["hinges"]]
            turning = all(a != b for a, b in pairwise(abouts))
            rows.append(Row(name + "hinges, by turns on intrados and extrados", ">= 4", len(abouts),
                            len(abouts) >= 4 and turning, "closed form"))  # fmt: skip
            rows.append(
                Row(
                    name + "joints that open / slide",
                    "more open",
                    f"{opening} / {sliding}",
                    opening > sliding,
                    "published",
                )
            )
        if published and one.friction == 0.3:
            rows.append(Row(name + "joints that open / slide", "more slide", f"{opening} / {sliding}",
                            sliding > opening, "published"))  # fmt: skip
        first, bound = (
            found[key] / found["weight_of_arch"] for key in ("force_at_5_mm", "largest_force_by_linear_programme")
        )
        rows.append(Row(name + "force after 5 mm / weight of the arch", f"<= {bound:.3g}, linear programme",
                        first, 0 < first <= bound, "own reference"))  # fmt: skip
        rows.append(Row(name + "energy ledger, relative", "closed", found["energy_closure"],
                        found["energy_closure"] < 1e-9, "identity"))  # fmt: skip
    return Verdict(results, rows)


# ---- figures -------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """Successive states, force against displacement, and the film."""
    return {"figure": states(outcome), "force": forces(outcome, parameters), "film": moving(outcome)}


def states(outcome, rows=4):
    """Successive states, one column per friction; red: corners about which joints turn, blue: joints that slid."""
    figure, axes = plt.subplots(rows, len(outcome), figsize=(5.6 * len(outcome), 2.25 * rows + 0.4), squeeze=False,
                                layout="constrained")  # fmt: skip
    for one, column in zip(outcome, axes.T, strict=True):
        for k, ax in enumerate(column):
            frame = one.frames[round(k * (len(one.frames) - 1) / (rows - 1))]
            _draw(ax, one, frame, marks=k > 0)
        column[0].set_title(f"friction {one.friction:g}\n{column[0].get_title()}")
    return figure


def _draw(ax, one, frame, *, marks):
    plot_scene(frame, ax, forces=False)
    if marks:
        joints = _bridge.joints(one.bridge, one.start, frame)
        near = joints.opening < 0.6 * joints.thickness  # not of stones that have fallen out
        turned, slid = (np.intersect1d(found, np.flatnonzero(near)) for found in (joints.opened(MOVED),
                                                                                  joints.slid(MOVED)))  # fmt: skip
        ax.plot(*joints.pivots[turned].T, "o", color="C3", ms=4)
        ax.plot(*joints.pivots[slid].T, "s", mfc="none", mec="C0", mew=1.4, ms=7)
    pushed = one.start.positions[-1, 1] - frame.positions[-1, 1]
    width = 1.18 * _bridge.RADIUS * (1 + _bridge.OVERHANG)
    ax.set(xlim=(-width, width), ylim=(-1.6, 4.6), xlabel="", ylabel="", xticks=[], yticks=[])
    ax.set_title(f"pushed by {100 * pushed:.0f} cm", fontsize=9)


def forces(outcome, parameters):
    """Force against displacement, and how far each joint has opened and slid."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for one, colour in zip(outcome, plt.cm.tab10.colors, strict=False):
        weight = 9.81 * one.start.masses[one.bridge.arch.voussoirs].sum()
        force = np.maximum(smooth(one.force) / weight, 1e-9)  # a logarithm has no zero
        axes[0].semilogy(100 * one.travel, force, lw=1, color=colour, label=f"friction {one.friction:g}")
        if np.isfinite(one.bound):
            axes[0].plot(0, one.bound / weight, "_", ms=14, mew=2, color=colour, clip_on=False)
        joints = _bridge.joints(one.bridge, one.start, one.reading)
        angle = np.degrees(np.arctan2(*joints.places.T))
        axes[1].plot(
            angle, 100 * joints.opening, "o-", lw=0.8, color=colour, label=f"opening, friction {one.friction:g}"
        )
        axes[1].plot(angle, 100 * np.abs(joints.slip), "s:", mfc="none", lw=0.8, color=colour,
                     label=f"slip, friction {one.friction:g}")  # fmt: skip
    axes[0].axvline(100 * parameters["reading"], color="0.6", lw=0.7, ls="--")
    axes[0].set(
        xlabel="displacement of the object, cm",
        ylabel="force over weight of the arch (dash: its bound)",
        ylim=(0.05, 100),
    )
    axes[1].set(xlabel="joint, degrees from the crown", ylabel="cm",
                title=f"joints at {100 * parameters['reading']:.0f} cm")  # fmt: skip
    for ax in axes:
        ax.legend(frameon=False, fontsize=8)
    return figure


def moving(outcome):
    """The film of all bridges, side by side."""
    figure, axes = plt.subplots(1, len(outcome), figsize=(5.6 * len(outcome), 2.9), squeeze=False, layout="constrained")

    def draw(k):
        for one, ax in zip(outcome, axes[0], strict=True):
            ax.clear()
            _draw(ax, one, one.frames[k], marks=False)
            ax.set_title(f"friction {one.friction:g}, {ax.get_title()}", fontsize=9)

    return film(draw, len(outcome[0].frames), figure=figure)
