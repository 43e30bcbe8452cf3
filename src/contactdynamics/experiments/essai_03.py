"""Trial 3: ELAST with the tangent cone taken behind or ahead of the particle; both spoil it.

1986, section 15 and plate 4: the pendulum of trial 2 by ELAST, the gradient taken at q' = q_{i+1} + A_V h u_i. A
negative A_V, -0.5 (top), makes the violation grow regularly; a positive one, 0.5 (bottom), makes wrong incursions into
the allowed region, although the energy of each step is balanced.

Why: with persistent contact the velocity is reflected in a line turned by A_V h omega, so it leaves the tangent by
this angle, and the distance from the centre grows at the rate dr/dt = -A_V h v^2 / r: for A_V < 0 a drift outwards of
first order in h, for A_V > 0 an inward push at every contact, which throws the particle off the wall.
"""

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments import _pendulum60 as pendulum
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "1986, plate 4"
PARAMETERS = Options(
    step=Option(0.1, "time step", "s", least=1e-4, most=0.5),
    until=Option(40.0, "simulated time; an oscillation takes 18.94 s", "s", least=21, most=2000),
)
QUICK = {}

ANTICIPATIONS = ("-0.5", "0", "0.5")


def build(parameters):
    """Motions by ELAST with the cone taken behind, at and ahead of the particle."""
    return {key: pendulum.pendulum("elast", parameters, anticipation=float(key)) for key in ANTICIPATIONS}


def predicted_drift(motion, anticipation):
    """Integral of -A_V h v^2 / r over the computed motion."""
    r = pendulum.RADIUS - pendulum.gap(motion)[1:]
    return float((-anticipation * motion.step**2 * (motion.u[1:] ** 2).sum(axis=1) / r).sum())


def check(outcome, parameters):
    """What an anticipation behind or ahead does to the incursions, and that neither changes the energy."""
    behind, _, ahead = (outcome[key] for key in ANTICIPATIONS)
    whole = np.rint(np.arange(0, behind.times[-1] + 1e-9) / parameters["step"]).astype(int)
    violation = -pendulum.gap(behind)
    growing = int((np.diff(violation[whole]) > 0).sum())
    drift = predicted_drift(behind, -0.5)
    incursion = {key: pendulum.gap(m).max() for key, m in outcome.items()}
    middle, height = pendulum.flights(ahead)
    energy = {key: np.abs(pendulum.energy_change(m)).max() for key, m in outcome.items()}
    in_contact = int((behind.status[:, 0] > 0).sum())
    rows = [
        Row("A_V = -0.5: marks at which the violation has grown", f"all of {len(whole) - 1}", growing,
            growing == len(whole) - 1, "published"),
        Row("A_V = -0.5: violation at the end / integral of h v^2 / (2 r)", "regular growth: 1", violation[-1] / drift,
            abs(violation[-1] / drift - 1) < 0.05, "closed form"),
        Row("A_V = -0.5: steps in contact", f"all of {len(behind.status)}", in_contact,
            in_contact == len(behind.status), "own reference"),
        Row("A_V = 0.5: largest incursion / that of A_V = 0", ">> 1", incursion["0.5"] / incursion["0"],
            incursion["0.5"] > 10 * incursion["0"], "published"),
        Row("A_V = 0.5: incursions", "several", len(height), len(height) > 5, "published"),
        Row("change of energy, all runs", "0", max(energy.values()), max(energy.values()) < 1e-12, "published"),
        Row("largest distance to the arc is smallest for A_V", "0",
            best := min(ANTICIPATIONS, key=lambda k: np.abs(pendulum.gap(outcome[k])).max()), best == "0", "published"),
    ]  # fmt: skip
    results = {
        "violation_at_marks": violation[whole],
        "predicted_final_violation": drift,
        "largest_incursion": incursion,
        "flight_middle": middle,
        "flight_height": height,
        "energy_change": energy,
        "period": {key: pendulum.first_period(m) for key, m in outcome.items()},
    }
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The two plates: what the cone behind and the cone ahead do."""
    figure, axes = plt.subplots(2, 1, figsize=(8.2, 10), layout="constrained")
    for ax, key, what in zip(axes, ("-0.5", "0.5"), ("growing violation", "wrong incursions"), strict=True):
        caption = pendulum.caption(parameters, f"\nanticipation A_V = {key}")
        pendulum.draw(ax, outcome[key], f"ELAST, $A_V$ = {key}: {what}", caption)
    return figure
