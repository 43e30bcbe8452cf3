"""Trial 1: a particle falling on a sinusoidal wall, with elastic and with inelastic shocks.

1986, section 15; plates 1 and 2 are missing in the surviving file and no data are printed, so these are chosen here
(cm, s): wall y = 8 sin(2 pi x / 60), gravity 981, start at (0, 40) with the velocity (80, 0). Plate 1 is the
reflection (7.4) "without control of the energy balance": the energy grows a little at each rebound. Plate 2 is INEL.
ELAST is run as well: its energy stays constant.

The ledger says how much: with the gradient (-f', 1) and the multiplier P, a rebound by reflection gains exactly
h g P / 2, which vanishes with h. INEL loses in the shocks; on the curved wall it loses in proportion to h, and a single
step in contact can gain at most (h g)^2 / 8 (on crests). Parabolas are exact for any step: a small one only serves to
keep the violation small. The elastic trajectory is unstable: after some rebounds it depends on the step.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plates 1 and 2 (missing)"
PARAMETERS = Options(
    step=Option(0.0005, "time step", "s", least=1e-6, most=0.01),
    until=Option(4.0, "simulated time; the inelastic motion settles in 1.5 s", "s", least=1.5, most=1000),
)
QUICK = {"step": 0.001, "until": 2.5}

HEIGHT, WAVE, GRAVITY = 8.0, 60.0, 981.0
START, SPEED = (0.0, 40.0), (80.0, 0.0)
NUMBER = 2 * math.pi / WAVE


def wall(x):
    """The height of the wall at x."""
    return HEIGHT * np.sin(NUMBER * x)


def particle(scheme, step, until, **options) -> Motion:
    """The motion of the falling particle by one scheme."""
    sinusoid = Constraint(
        gap=lambda t, q: q[1] - HEIGHT * math.sin(NUMBER * q[0]),
        gradient=lambda t, q: np.array([-HEIGHT * NUMBER * math.cos(NUMBER * q[0]), 1.0]),
    )
    system = System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (0.0, -GRAVITY),
        potential=lambda t, q: GRAVITY * (q[1] + HEIGHT),  # zero at the bottom of the valleys
        constraints=[sinusoid],
    )
    return integrate(system, q=START, u=SPEED, step=step, until=until, scheme=scheme, **options)


def build(parameters):
    """Motions by reflection, ELAST and INEL, at the step of the report and at twice the step."""
    step, until = parameters["step"], parameters["until"]
    return {
        "reflection": particle("reflection", step, until),
        "reflection_coarse": particle("reflection", 2 * step, until),
        "inel": particle("inel", step, until, anticipation=0.5),
        "inel_coarse": particle("inel", 2 * step, until, anticipation=0.5),
        "elast": particle("elast", step, until),
    }


def energy(motion):
    """Total energy, relative to the initial one."""
    total = motion.ledger.kinetic + motion.ledger.potential
    return total / total[0]


def violation(motion):
    """Largest depth below the wall, measured vertically."""
    return float(np.max(wall(motion.q[:, 0]) - motion.q[:, 1]))


def rebounds(motion):
    """Impulses and gains of energy (relative to the initial one) of the steps with an impulse."""
    hit = motion.impulses[:, 0, 0] > 0
    total = motion.ledger.kinetic[0] + motion.ledger.potential[0]
    return motion.impulses[hit, 0, 0], motion.ledger.contact_work[hit, 0, 0] / total, total


def check(outcome, parameters):
    """What a rebound gains by reflection and not by ELAST, and where INEL loses: in shocks, almost all of it."""
    elastic_results, elastic_rows = check_elastic(outcome, parameters["step"])
    inel_results, inel_rows = check_inel(outcome, parameters["step"])
    return Verdict(elastic_results | inel_results, elastic_rows + inel_rows)


def check_elastic(outcome, step):
    """Results and rows of the elastic schemes."""
    impulses, gains, total = rebounds(outcome["reflection"])
    _, coarse, _ = rebounds(outcome["reflection_coarse"])
    identity = np.abs(gains * total / (step * GRAVITY * impulses / 2) - 1).max()
    ratio = coarse.mean() / gains.mean()
    constant = np.abs(energy(outcome["elast"]) - 1).max()
    results = {
        "reflection_rebounds": len(gains),
        "reflection_gains": gains,
        "reflection_total_gain": gains.sum(),
        "elast_rebounds": len(rebounds(outcome["elast"])[1]),
        "elast_energy_change": constant,
        "largest_violation": {key: violation(outcome[key]) for key in ("reflection", "inel", "elast")},
    }
    gaining = int((gains > 0).sum())
    rows = [
        Row(
            "reflection: rebounds that gain energy",
            f"all of {len(gains)}",
            gaining,
            gaining == len(gains) > 0,
            "published",
        ),
        Row("reflection: mean gain of a rebound", "slight", gains.mean(), gains.mean() < 0.01, "published"),
        Row("reflection: gain / (h g P / 2), worst error", "0", identity, identity < 1e-9, "closed form"),
        Row(
            "reflection: mean gain, double step / step",
            "2: vanishes with the step",
            ratio,
            1.5 < ratio < 2.7,
            "closed form",
        ),
        Row("ELAST: change of energy", "0", constant, constant < 1e-12, "identity"),
    ]
    return results, rows


def check_inel(outcome, step):
    """Results and rows of INEL."""
    motion = outcome["inel"]
    lost = {key: split_loss(outcome[key]) for key in ("inel", "inel_coarse")}
    shocks, curved = lost["inel"]
    ratio = lost["inel_coarse"][1] / curved
    _, works, total = rebounds(motion)
    bound = (step * GRAVITY) ** 2 / 8 / total
    crest = 2 * GRAVITY * HEIGHT / total
    last = motion.times[1:] > 0.75 * motion.times[-1]
    away = np.max(motion.q[1:, 1][last] - wall(motion.q[1:, 0][last]))
    results = {
        "inel_loss_in_shocks": shocks,
        "inel_loss_in_contact": curved,
        "inel_loss_in_contact_double_step": lost["inel_coarse"][1],
        "inel_energy": energy(motion)[-1],
        "inel_end": motion.q[-1],
    }
    rows = [
        Row("INEL: share of the loss that is lost in shocks", "almost all", shocks / (shocks + curved),
            shocks / (shocks + curved) > 0.9, "own reference"),
        Row("INEL: loss in contact, double step / step", "2: vanishes with the step", ratio, 1.5 < ratio < 2.7,
            "closed form"),
        Row("INEL: largest gain of a step / ((h g)^2 / 8)", "<= 1", works.max() / bound, works.max() <= bound,
            "closed form"),
        Row("INEL: largest distance to the wall in the last quarter", "in contact", away, away < 0.1, "own reference"),
        Row("INEL: energy at the end / that of rest on a crest", "< 1: held in a valley", energy(motion)[-1] / crest,
            energy(motion)[-1] < crest, "own reference"),
    ]  # fmt: skip
    return results, rows


def split_loss(motion):
    """Energy lost in shocks (impulses after a free step) and in lasting contact, relative to the initial one."""
    hit = motion.impulses[:, 0, 0] > 0
    shock = hit & ~np.concatenate([[False], hit[:-1]])
    lost = -motion.ledger.contact_work[:, 0, 0] / (motion.ledger.kinetic[0] + motion.ledger.potential[0])
    return lost[shock].sum(), lost[hit & ~shock].sum()


def figure(outcome, parameters):
    """The two plates, and the energies."""
    return {"figure": plates(outcome), "energy": energies(outcome)}


def plates(outcome):
    """Plates 1 and 2: the two trajectories above the wall, in the same frame."""
    figure, axes = plt.subplots(2, 1, figsize=(10, 6.2), sharex=True, layout="constrained")
    shown = [outcome[key].q for key in ("reflection", "inel")]
    low, high = min(q[:, 0].min() for q in shown) - 8, max(q[:, 0].max() for q in shown) + 8
    x = np.linspace(low, high, 600)
    titles = ("elastic shocks by reflection (plate 1)", "inelastic shocks by INEL (plate 2)")
    for ax, q, title in zip(axes, shown, titles, strict=True):
        ax.fill_between(x, wall(x), -2 * HEIGHT, color="0.9")
        ax.plot(x, wall(x), color="0.45", lw=1)
        ax.plot(*q.T, "k", lw=0.9)
        ax.plot(*q[0], "ko", ms=3)
        ax.set(aspect="equal", xlim=(low, high), ylim=(-1.4 * HEIGHT, 52), ylabel="y", title=title)
    axes[1].set_xlabel("x")
    return figure


def energies(outcome):
    """Total energy of the three schemes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for key, colour, name in (("reflection", "tab:red", "reflection"), ("elast", "k", "ELAST")):
        left.plot(outcome[key].times, energy(outcome[key]), color=colour, lw=1.2, label=name)
    right.plot(outcome["inel"].times, energy(outcome["inel"]), color="tab:blue", lw=1.2, label="INEL")
    left.set(xlabel="t", ylabel="total energy / initial", title="elastic shocks")
    right.set(xlabel="t", title="inelastic shocks", ylim=(0, 1.05))
    for ax in (left, right):
        ax.legend(frameon=False)
    return figure
