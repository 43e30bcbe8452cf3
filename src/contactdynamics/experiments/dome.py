"""The thinnest hemispherical dome of rings of stones: by limit analysis, held from rest, and what falls first.

Joints along meridians run through, as those into which old domes have cracked: rings can be pressed, not pulled. Heyman
(1967) found 0.042 of the radius for the thinnest such hemisphere, by the line of thrust of a lune. Here it is found by
a cone programme over all joints (`analysis.balance`), and by dynamics: a dome that is held from rest.
"""

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments import _thinnest as thinnest
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.plotting import plot_scene
from contactdynamics.scenes import packings

FIGURE = "none; Heyman 1967"
PARAMETERS = Options(
    rings=Option(12, "rings of stones, without the keystone", least=3, most=60),
    segments=Option(12, "stones of a ring", least=4, most=100),
    **thinnest.options("dome"),
)
QUICK = {"rings": 6, "segments": 4, "accuracy": 0.1, "hold": 0.4, "falling": 0.8}

HEYMAN = 0.042


def make(parameters, ratio):
    """The dome of a thickness over the radius, in a scene of its own."""
    scene = thinnest.stone_scene(parameters["friction"])
    add(scene, parameters, ratio)
    return scene


def add(scene, parameters, ratio) -> packings.Dome:
    """A dome whose thickness is ``ratio`` of its radius."""
    return packings.dome(scene, material="stone", radius=thinnest.RADIUS, thickness=ratio * thinnest.RADIUS,
                         rings=parameters["rings"], segments=parameters["segments"])  # fmt: skip


def build(parameters):
    """The limit, the thinnest that is held, and the fall of a thinner one."""
    p = parameters
    bound = thinnest.limit(lambda ratio: make(p, ratio), 0.005, 0.3, 0.1 * p["accuracy"])
    found, trials = thinnest.held(lambda ratio: make(p, ratio), bound, p)
    built = add(thinnest.stone_scene(p["friction"]), p, bound)
    names = {int(n): f"ring {r + 1} of {p['rings']}" for n, r in zip(built.stones, built.rings, strict=True)}
    names[built.keystone] = "keystone"
    falling = thinnest.fall(lambda ratio: make(p, ratio), p["thin"] * bound, names, p)
    return {"limit": bound, "held": found, "trials": trials, "fall": falling}


def check(outcome, parameters):
    """The limit against Heyman's, what is held against the limit, and that a thinner one falls."""
    p, bound, found, falling = parameters, outcome["limit"], outcome["held"], outcome["fall"]
    results = {
        "thickness_ratio": found,
        "limit_ratio": bound,
        "heyman_ratio": HEYMAN,
        "stones": p["rings"] * p["segments"] + 1,
    } | falling.results()
    rows = [
        # Hinges form at joints only, each within half a ring of its best place.
        Row("limit analysis, thickness / radius", HEYMAN, bound, abs(bound / HEYMAN - 1) < 0.03 + 0.5 / p["rings"],
            "published"),
        Row("held from rest, thickness / radius", bound, found, abs(found / bound - 1) < 0.03 + p["accuracy"],
            "own reference"),
        thinnest.falls(falling, p["thin"], bound),
    ]  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The dome as it falls, and the trials."""
    return draw(outcome, parameters, f"Heyman, {HEYMAN}", HEYMAN, azimuth=-60.0, elevation=22.0)


def draw(outcome, parameters, word, reference, **view):
    """Frames of the fall, coloured by how far each stone has come, and the trials beside the limit."""
    falling = outcome["fall"]
    shown = falling.frames[1:] if len(falling.frames) > 1 else falling.frames
    figure, axes = plt.subplots(1, len(shown) + 1, figsize=(4 * len(shown) + 4, 4), layout="constrained")
    start = falling.frames[0].positions
    for ax, frame in zip(axes[:-1], shown, strict=True):
        moved = np.linalg.norm(frame.positions - start, axis=1)
        plot_scene(frame, ax, forces=False, colours=moved, **view)
        ax.set_title(f"{parameters['thin']:g} of the limit, t = {frame.time:.2f} s", fontsize=9)
    ax = axes[-1]
    ratio, moved = np.array(sorted(outcome["trials"])).T
    stands = moved <= thinnest.STILL
    ax.semilogy(ratio[stands], np.maximum(moved[stands], 1e-12), "o", color="C2", label="stands")
    ax.semilogy(ratio[~stands], moved[~stands], "x", color="C3", label="falls")
    ax.axvline(outcome["limit"], color="k", ls="--", lw=1, label=f"limit analysis, {outcome['limit']:.4f}")
    ax.axvline(outcome["held"], color="C0", lw=1, label=f"held, {outcome['held']:.4f}")
    ax.axvline(reference, color="0.6", ls=":", lw=1.5, label=word)
    ax.xaxis.set_major_locator(plt.MaxNLocator(4))
    ax.set(xlabel="thickness / radius", ylabel="moved while held, over the thickness")
    ax.legend(fontsize=8, framealpha=1.0)
    return figure
