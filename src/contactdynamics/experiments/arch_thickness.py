"""The thinnest semicircular arch: smallest thickness over mean radius that stands, against friction.

Masonry tools on Couplet's problem. Bisection on the thickness by the one-step equilibrium test (2004, end of section
6.2); where its solver stays undecided, and for the map against friction, the linear programme `analysis.balance`
decides whether forces in the friction cones can balance the weights: in the plane the same question, answered exactly.
Large friction: Milankovitch's 0.1075 of five hinges. Below 0.395 sliding comes in, below 0.309 no thickness stands
(Cocchetti and Rizzi 2020).
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

from contactdynamics import analysis
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.plotting import plot_scene
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import packings
from contactdynamics.scenes.scene import Scene

FIGURE = "Milankovitch 1907; Cocchetti and Rizzi 2020"
PARAMETERS = Options(
    voussoirs=Option(28, "stones of the arch", least=4, most=200),
    friction=Option(0.7, "friction coefficient of the joints", "1", least=0, most=100),
    accuracy=Option(1e-5, "to which the thickness over the mean radius is found", "1", least=1e-8, most=0.01),
    map_points=Option(14, "frictions at which the smallest thickness is computed", least=4, most=1000),
)
QUICK = {"voussoirs": 16, "accuracy": 1e-4, "map_points": 4}

MILANKOVITCH, RISE_BELOW, NOTHING_BELOW = 0.1075, 0.395, 0.309
THINNEST, THICKEST = 1e-3, 1.0  # of the mean radius, in which the limit is looked for
LIMIT = 1e-5  # velocity left over that of free fall, in the one-step test


class Trial(NamedTuple):
    """An arch of one thickness: mean radius and weight per mass 1."""

    simulation: Simulation
    arch: packings.Arch
    friction: float

    def one_step(self):
        """The one-step equilibrium test."""
        return self.simulation.is_equilibrium(tolerance=1e-8, limit=LIMIT, max_iterations=100_000)

    def frame(self, answer=None):
        """The frame with the contacts of an answer, or with those that touch."""
        if answer is None:
            answer = self.simulation.is_equilibrium(tolerance=1.0, max_iterations=1)
        return self.simulation.frame()._replace(contacts=answer.contacts)

    def programme(self, friction=None):
        """The linear programme."""
        return analysis.balance(self.frame(), friction)


def trial(ratio, voussoirs, friction) -> Trial:
    """An arch of thickness ``ratio`` on its abutments."""
    scene = Scene(gravity=(0.0, -1.0))
    scene.material("stone", density=1.0)
    scene.contact("stone", "stone", friction=friction)
    arch = packings.arch(scene, material="stone", span=2.0, thickness=ratio, voussoirs=voussoirs)
    return Trial(Simulation(scene, time_step=1e-3), arch, friction)


def bisect(stands, low, high, accuracy):
    """The place between ``low`` (does not) and ``high`` (does) from which on ``stands`` holds; its upper bound."""
    while high - low > accuracy:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def smallest(stands, accuracy):
    """The smallest thickness over radius for which ``stands``, None where not even a very thick arch does."""
    return bisect(stands, THINNEST, THICKEST, accuracy) if stands(THICKEST) else None


def by_hinges(voussoirs) -> float:
    """The limit without sliding, by statics of half the arch: Couplet's and Milankovitch's five hinges.

    The thrust (H, V) at the extrados of the joint next to the crown, at A, passes through the extrados of the springing
    C and must not leave the intrados at any joint B. Moments about C and about B of what lies above them,
    H (y_A - y_C) = V (x_C - x_A) + sum w (x_C - x), give H twice; the limit is the largest thickness, over the joints
    B, at which both agree. V is half the keystone's weight where there is one.
    """

    def excess(ratio, joint):
        inner, outer = 1 - 0.5 * ratio, 1 + 0.5 * ratio
        step = math.pi / voussoirs
        angle = 0.5 * math.pi - step * (np.arange(voussoirs // 2 + 1) + (0.5 if voussoirs % 2 else 0.0))
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        # A voussoir between straight edges is the difference of two triangles with their tip at the centre.
        area = 0.5 * math.sin(step) * (outer**2 - inner**2)
        reach = (math.sin(step) / 3) * math.cos(0.5 * step) * (outer**3 - inner**3) / area
        x = reach * np.cos(angle[:-1] - 0.5 * step)
        top, half = outer * ring[0], 0.5 * area * (voussoirs % 2)

        def thrust(point, stones):
            return (half * (point[0] - top[0]) + area * (point[0] - x[:stones]).sum()) / (top[1] - point[1])

        return thrust(inner * ring[joint], joint) - thrust(outer * ring[-1], len(x))

    limits = [0.0]
    for joint in range(1, voussoirs // 2):
        if excess(THINNEST, joint) * excess(THICKEST, joint) < 0:
            limits.append(brentq(excess, THINNEST, THICKEST, args=(joint,), xtol=1e-12))
    return max(limits)


def build(parameters):
    """The thinnest arch by the one-step test, by linear programmes and by hinges; its map over friction."""
    n, friction, accuracy = (parameters[key] for key in ("voussoirs", "friction", "accuracy"))
    undecided = []

    def stands(ratio):
        arch = trial(ratio, n, friction)
        answer = arch.one_step()
        if answer or answer.report.converged:
            return bool(answer)
        undecided.append(ratio)
        return bool(arch.programme())

    found = smallest(stands, accuracy)
    exact = smallest(lambda ratio: trial(ratio, n, friction).programme(), accuracy)
    hinged = by_hinges(n)
    thick, hinged_arch = trial(THICKEST, n, 1.0), trial(hinged + 20 * accuracy, n, 1.0)
    nothing = bisect(lambda mu: bool(thick.programme(mu)), 0.0, 1.0, 1e-5)
    rise = bisect(lambda mu: bool(hinged_arch.programme(mu)), 0.0, 1.0, 1e-5)
    points = np.concatenate([np.linspace(nothing + 1e-4, rise, max(2, parameters["map_points"] - 2)), [0.55, 0.8]])
    curve = [(mu, smallest(lambda ratio, mu=mu: trial(ratio, n, mu).programme(), 10 * accuracy)) for mu in points]
    return {"one_step": found, "programme": exact, "hinges": hinged, "nothing": nothing, "rise": rise,
            "map": np.array(curve, dtype=float), "undecided": undecided}  # fmt: skip


def check(outcome, parameters):
    """Thickness and friction against the linear programme, statics of five hinges and the published limits."""
    n, friction, accuracy = (parameters[key] for key in ("voussoirs", "friction", "accuracy"))
    found, exact, hinged = outcome["one_step"], outcome["programme"], outcome["hinges"]
    results = {
        "thickness_ratio": found,
        "thickness_ratio_linear_programme": exact,
        "thickness_ratio_of_hinges": hinged,
        "friction_below_which_the_limit_rises": outcome["rise"],
        "friction_below_which_nothing_stands": outcome["nothing"],
        "map": {"friction": outcome["map"][:, 0], "thickness_ratio": outcome["map"][:, 1]},
        "undecided_tests": len(outcome["undecided"]),
    }
    # Joints are fewer than in the continuous arch: hinges form near their best places only, by half a voussoir.
    coarse = 0.5 * math.pi / n
    rows = [
        Row("least friction of any arch", NOTHING_BELOW, outcome["nothing"],
            abs(outcome["nothing"] - NOTHING_BELOW) < 0.05 * coarse + 1e-3, "published"),
        Row("friction below which sliding counts", RISE_BELOW, outcome["rise"],
            abs(outcome["rise"] - RISE_BELOW) < 0.1 * coarse + 2e-3, "published"),
    ]  # fmt: skip
    if found is None or exact is None:
        nothing = found is None and exact is None and friction < outcome["nothing"] + 1e-4
        return Verdict(results, [Row("thickness / radius", "none stands", "none stands" if nothing else found, nothing,
                                     "published"),
                                 *rows])  # fmt: skip
    rows.insert(0, Row("thickness / radius, one-step test against linear programme", exact, found,
                       abs(found - exact) <= 2 * accuracy, "own reference"))  # fmt: skip
    if friction > outcome["rise"]:
        rows.insert(0, Row("thickness / radius of five hinges, by statics", hinged, found,
                           abs(found - hinged) <= 2 * accuracy, "own reference"))  # fmt: skip
        rows.insert(0, Row(f"thickness / radius (many voussoirs; here {n})", MILANKOVITCH, found,
                           abs(found - MILANKOVITCH) < coarse**2, "published"))  # fmt: skip
    else:
        rows.insert(
            0,
            Row(
                "thickness / radius, more than with large friction",
                f"> {hinged:.4f}",
                found,
                found > hinged,
                "own reference",
            ),
        )
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The map over friction, and the arch."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
    _draw_map(left, outcome, parameters)
    _draw_arch(right, outcome, parameters)
    return figure


def _draw_map(ax, outcome, parameters):
    friction, ratio = outcome["map"].T
    top = 1.6 * np.nanmax(ratio)
    ax.plot([outcome["nothing"]] * 2, [np.nanmax(ratio), top], "k-", lw=1.5)
    ax.plot(friction, ratio, "k.-", lw=1.5, label="linear programme")
    ax.fill_between(friction, ratio, top, color="#e8dcc0")
    ax.axhline(MILANKOVITCH, color="C0", ls="--", lw=1, label="Milankovitch, 0.1075")
    ax.axvline(NOTHING_BELOW, color="C3", ls=":", lw=1, label="Cocchetti and Rizzi, 0.309 and 0.395")
    ax.axvline(RISE_BELOW, color="C3", ls=":", lw=1)
    if outcome["one_step"] is not None:
        ax.plot(parameters["friction"], outcome["one_step"], "o", ms=9, mfc="none", mec="C2", mew=2, clip_on=False,
                label=f"one-step test, {parameters['voussoirs']} voussoirs")  # fmt: skip
    ax.text(0.6, 0.8 * top, "stands", ha="center")
    ax.text(0.6, 0.04, "hinges: falls", ha="center")
    ax.text(0.28, 0.7 * top, "slides at any thickness", rotation=90, va="center", ha="center")
    ax.set(
        xlabel="friction",
        ylabel="thickness over mean radius",
        xlim=(0.25, max(0.8, parameters["friction"])),
        ylim=(0, top),
    )
    ax.set_title("the smallest thickness that stands")
    ax.legend(frameon=True, framealpha=1, loc="center right", fontsize=8)


def _draw_arch(ax, outcome, parameters):
    """The arch at its limit with its line of thrust; a thick one where none stands."""
    ratio = THICKEST if outcome["programme"] is None else outcome["programme"]
    arch = trial(ratio, parameters["voussoirs"], parameters["friction"])
    answer = arch.programme()
    frame = arch.frame(answer)
    plot_scene(frame, ax, forces=False)
    stands = outcome["programme"] is not None
    if stands:
        analysis.thrust_line(frame, arch.arch.chain).plot(ax)
    ax.set(xlabel="x / R", ylabel="y / R")
    ax.set_title(f"at the limit {ratio:.4f}: the only line of thrust" if stands else "no thickness stands")
