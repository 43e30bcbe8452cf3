"""Trial 2: a pendulum by ELAST, and by naive reflection with its incorrect energy balance.

1986, section 15 and plate 3. A particle of mass 1 inside the circle of centre (0, -60) and radius 60, force (0, 8),
starts at (0, 0) with the velocity (25, 0). The exact motion keeps the contact; its period is 18.9416 ("of the order
of 19.5" in the report). ELAST (top) cannot be told from the arc. The reflection (7.4) with the same data and step
(bottom) gains energy at every rebound: spurious bounces grow linearly with time (section 7). The duration of the
plate is not printed; two oscillations are drawn.

How fast: a rebound at the normal speed w gains h Q_n w, where Q_n is the normal component of the force; a flight lasts
2 w / N with N = Q_n + v^2 / R; slow changes of N alone would keep w^3 / N. Together, the bounces have the height
(h/2) N^(-1/3) * integral of Q_n N^(1/3) dt, which is h Q_n t / 2 where N is constant.
"""

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments import _pendulum60 as pendulum
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "1986, plate 3"
PARAMETERS = Options(
    step=Option(0.1, "time step", "s", least=1e-4, most=0.5),
    until=Option(40.0, "simulated time; an oscillation takes 18.94 s", "s", least=21, most=2000),
)
QUICK = {}


def build(parameters):
    """Motions by ELAST and by naive reflection."""
    return {scheme: pendulum.pendulum(scheme, parameters) for scheme in ("elast", "reflection")}


def check(outcome, parameters):
    """Period, swing, reaction and energy of ELAST; reflection, whose rebounds gain energy."""
    elast_results, elast_rows = check_elast(outcome["elast"], parameters["step"])
    reflection_results, reflection_rows = check_reflection(outcome["reflection"], outcome["elast"])
    results = {
        "exact_period": pendulum.PERIOD,
        "exact_amplitude": pendulum.AMPLITUDE,
        "elast": elast_results,
        "reflection": reflection_results,
    }
    return Verdict(results, elast_rows + reflection_rows)


def check_elast(motion, step):
    """The pendulum on its arc, with the exact mean reaction (v^2/R + Q cos theta; by energy, a function of theta).

    Contact is kept by small hops: a flight of 2 h under the largest reaction N = v^2/R + Q rises N h^2 / 2.
    """
    period, swings = pendulum.first_period(motion), pendulum.swings(motion)
    distance = np.abs(pendulum.gap(motion)).max()
    bound = (pendulum.SPEED**2 / pendulum.RADIUS + pendulum.FORCE) * step**2 / 2
    open_steps = np.diff(np.flatnonzero(motion.impulses[:, 0, 0])).max() - 1
    force, cosine = pendulum.FORCE, np.cos(pendulum.angle(motion))
    exact_reaction = np.mean(pendulum.SPEED**2 / pendulum.RADIUS - 2 * force + 3 * force * cosine)
    reaction = motion.impulses.sum() / motion.times[-1] / exact_reaction
    energy = np.abs(pendulum.energy_change(motion)).max()
    spread = np.abs(swings / pendulum.AMPLITUDE - 1).max()
    results = {
        "period": period,
        "swings": swings,
        "largest_distance_to_arc": distance,
        "mean_reaction_relative_to_exact": reaction,
        "longest_flight_steps": open_steps,
        "energy_change": energy,
    }
    exact = pendulum.PERIOD
    small = 1e-3 * (step / PARAMETERS["step"]) ** 2  # errors are of second order; 1e-3 cannot be seen on the plate
    rows = [
        Row("ELAST: period (exact value)", exact, period, abs(period / exact - 1) < small, "closed form"),
        Row("ELAST: amplitude of each swing, worst error", "0", spread, spread < small, "closed form"),
        Row("ELAST: largest distance to the arc / radius", "indiscernible", distance / pendulum.RADIUS,
            distance / pendulum.RADIUS < small, "published"),
        Row("ELAST: the same / (N h^2 / 2), one flight of 2 h", "<= 1", distance / bound, distance <= bound,
            "closed form"),
        Row("ELAST: mean reaction / exact", "1: contact persists", reaction, abs(reaction - 1) < 0.01, "closed form"),
        Row("ELAST: change of energy", "0", energy, energy < 1e-12, "identity"),
    ]  # fmt: skip
    return results, rows


def estimated_height(reference, times):
    """Height of small bounces of a step 1 at ``times``; N and Q_n are those of the exact motion, here by ELAST."""
    pressing = pendulum.FORCE * np.cos(pendulum.angle(reference))
    normal = pressing + (reference.u**2).sum(axis=1) / pendulum.RADIUS
    gained = np.cumsum(pressing * normal ** (1 / 3)) * reference.step
    return np.interp(times, reference.times, normal ** (-1 / 3) * gained / 2)


def check_reflection(motion, reference):
    """Each rebound gains energy (the ledger's contact work), and the bounces grow; ``reference`` is by ELAST."""
    impulses, work = motion.impulses[:, 0, 0], motion.ledger.contact_work[:, 0, 0]
    rebounds = impulses > 0
    count, gaining = int(rebounds.sum()), int((work[rebounds] > 0).sum())
    middle, height = pendulum.flights(motion)
    estimate = motion.step * estimated_height(reference, middle)
    late = len(height) // 3  # the first bounces last a few steps only
    agreement = np.median(height[late:] / estimate[late:])
    correlation = np.corrcoef(middle, height)[0, 1]
    energy, swings = pendulum.energy_change(motion)[-1], pendulum.swings(motion)
    period, exact, amplitude = pendulum.first_period(motion), pendulum.PERIOD, pendulum.AMPLITUDE
    results = {
        "period": period,
        "swings": swings,
        "rebounds": count,
        "energy_change": energy,
        "flight_middle": middle,
        "flight_height": height,
        "estimated_height": estimate,
    }
    rows = [
        Row("reflection: rebounds that gain energy", f"all of {count}", gaining, gaining == count > 0, "published"),
        Row("reflection: energy at the end", "grows", energy, energy > 0.01, "published"),
        Row("reflection: height of bounces against time, correlation", "grows linearly", correlation,
            correlation > 0.8, "published"),
        Row("reflection: first period", f"{exact:.4f} (fairly well)", period, abs(period / exact - 1) < 0.02,
            "closed form"),
        Row("reflection: first swing", f"{amplitude:.4f} (fairly well)", swings[0],
            abs(swings[0] / amplitude - 1) < 0.05, "closed form"),
        Row("reflection: next swing / first", "slightly growing", swings[1] / swings[0],
            1 < swings[1] / swings[0] < 1.1, "published"),
    ]  # fmt: skip
    if motion.step <= PARAMETERS["step"]:  # with a coarser one the bounces are not small
        rows.append(
            Row(
                "reflection: height of bounces / estimate",
                "1 for small h",
                agreement,
                abs(agreement - 1) < 0.25,
                "closed form",
            )
        )
    return results, rows


def figure(outcome, parameters):
    """The two plates, one for each scheme."""
    figure, axes = plt.subplots(2, 1, figsize=(8.2, 10), layout="constrained")
    caption = pendulum.caption(parameters)
    pendulum.draw(axes[0], outcome["elast"], "ELAST", caption, numbered=19)
    pendulum.draw(axes[1], outcome["reflection"], "naive reflection: incorrect energy balance", caption)
    return figure
