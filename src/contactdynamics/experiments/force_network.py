"""Forces in a packing of disks: exponential above the mean, a power below; a strong and a weak network.

Radjai et al. (1996, by Contact Dynamics): P(f) falls as exp(-1.4 f) above the mean and as f^-0.3 below it, and some
60 % of the contacts carry less than the mean. Radjai et al. (1998): the strong ones carry the shear; nearly all
contacts that slide are weak. Disks with friction are compressed in a periodic cell, and then shortened in one
direction.
"""

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis, packings
from contactdynamics.experiments._granular import PRESSURE, compressed, sample, set_friction
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.state import SLIDING

FIGURE = "Radjai et al. 1996, 1998: P(f), strong and weak network"
PARAMETERS = Options(
    grains=Option(1000, "in the cell", least=100, most=100_000),
    friction=Option(0.5, "friction coefficient during the shortening; the compression has 0.1", "1", least=0, most=10),
    strain=Option(0.02, "by which the sample is shortened", "1", least=0, most=0.5),
    rate=Option(1e-3, "of the shortening times sqrt(m / P)", "1", least=1e-5, most=0.1),
    frames=Option(5, "over which forces are taken, at even strains", least=1, most=1000),
    seed=Option(1, "of the gas", least=0, most=10**9),
    tolerance=Option(1e-4, "to which steps are solved", "1", least=1e-8, most=1e-2),
    step=Option(0.1, "time step over sqrt(m / P)", "1", least=1e-3, most=0.5),
)  # fmt: skip
QUICK = {"grains": 200, "strain": 0.01, "rate": 3e-3, "tolerance": 1e-3}


def build(parameters):
    """Compress, shorten, and collect the contacts."""
    scene, unit = sample(parameters, dimension=2, sizes=packings.Sieve.uniform(0.7, 1.3), friction=0.1)
    sim, _ = compressed(scene, unit, parameters, longest=120.0, quiet=1e-6)
    set_friction(sim, parameters["friction"])
    rate = parameters["rate"] / unit
    sim.cell.impose(rate=[[0, 0], [0, -rate]], stress={"xx": PRESSURE}, carry=True)
    steps = max(parameters["frames"], round(parameters["strain"] / (rate * sim.time_step)))
    every, kept = steps // parameters["frames"], []
    with recorded(sim, until=sim.time + steps * sim.time_step):
        for k in range(1, steps + 1):
            sim.step()
            if k % every == 0:
                c = sim.contacts
                push = c.impulse[:, 0] > 0
                kept.append((c.impulse[push] / sim.time_step, c.normal[push], c.status[push]))
    return {"kept": kept, "frame": sim.frame(), "stress": sim.cell.stress}


def gathered(outcome):
    """Normal forces over the mean of their frame, which slide, and their directions."""
    force = np.concatenate([f[:, 0] / f[:, 0].mean() for f, _, _ in outcome["kept"]])
    slides = np.concatenate([status == SLIDING for _, _, status in outcome["kept"]])
    return force, slides, np.concatenate([n for _, n, _ in outcome["kept"]])


def check(outcome, parameters):
    """The distribution, and who slides."""
    force, slides, normal = gathered(outcome)
    spread = analysis.force_distribution(force)
    weak = float((force <= 1).mean())
    sliding_weak = float((slides & (force <= 1)).sum() / max(1, slides.sum()))
    strong = force > 1
    along = [float((force[some] * (normal[some, 1] ** 2 - normal[some, 0] ** 2)).sum()) for some in (strong, ~strong)]
    share = along[0] / (along[0] + along[1])
    few = parameters["grains"] ** -0.5  # of a finite sample
    rows = [
        Row(f"decay of the tail, within {0.2 + 4 * few:.2f}", 1.4, spread.beta,
            abs(spread.beta - 1.4) <= 0.2 + 4 * few, "published"),
        Row(f"power below the mean, within {0.2 + 4 * few:.2f}", -0.3, spread.alpha,
            abs(spread.alpha + 0.3) <= 0.2 + 4 * few, "published"),
        Row(f"share of weak contacts, within {0.03 + 0.6 * few:.3f}", 0.6, weak, abs(weak - 0.6) <= 0.03 + 0.6 * few,
            "published"),
        Row("share of sliding contacts that are weak, 0.8 or more", 0.95, sliding_weak, sliding_weak >= 0.8,
            "published"),
        Row("share of the deviator carried by strong contacts, 0.8 or more", 1.0, share, share >= 0.8, "published"),
    ]  # fmt: skip
    results = {
        "beta": spread.beta, "beta_error": spread.beta_error, "alpha": spread.alpha, "alpha_error": spread.alpha_error,
        "weak": weak, "sliding": float(slides.mean()), "sliding_weak": sliding_weak, "strong_share": share,
        "contacts": len(force), "grains": parameters["grains"], "seeds": 1,
    }  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The network, and P(f) with its fits and the published laws."""
    from contactdynamics.plotting import plot_scene

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    plot_scene(outcome["frame"], axes[0], forces=True)
    spread = analysis.force_distribution(gathered(outcome)[0])
    spread.plot(axes[1])
    f = np.linspace(1, max(3.0, spread.relative[-1]), 30)
    axes[1].plot(f, 0.4 * 1.4 * np.exp(1.4 * (1 - f)), "k--", lw=1, label="Radjai et al. 1996")
    axes[1].legend(frameon=False)
    return figure
