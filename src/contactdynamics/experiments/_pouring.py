"""What the piles of grains with corners share: pouring until all is at rest, and what every pile is asked."""

import numpy as np

from contactdynamics import analysis
from contactdynamics.experiments.runner import Row, recorded
from contactdynamics.state import FREE

WEIGHED = 0.1  # s


def pour(sim, pouring, p, name) -> float:
    """Pour and let the pile come to rest; what the ground bears over the weight, mean of the last tenth of a second."""
    sim.before_step.append(pouring)
    until, borne = pouring.duration + p["relaxation"], []
    with recorded(sim, until=until, name=name):
        sim.run(until=until - WEIGHED, progress=False)
        for _ in range(round(WEIGHED / p["step"])):
            sim.step()
            borne.append(analysis.weight_balance(sim.frame()))
    return float(np.mean(borne))


def results(pile) -> dict:
    """Numbers of a pile at rest, of any grains; it has frame, slope, weight, energy, failures."""
    e, free = pile.energy, pile.frame.kinds == FREE
    return {
        "slope_degrees": pile.slope.degrees,
        "slope_error_degrees": pile.slope.error,
        "coordination": analysis.coordination(pile.frame).mean,
        "mobilised_friction": analysis.mobilised_friction(pile.frame).mean,
        "weight_balance": pile.weight,
        "largest_speed": float(np.abs(pile.frame.velocities[free]).max()),
        "energy_closure": e.closure / max(abs(e.force_work), 1e-300),
        "steps_not_solved": pile.failures,
    }


def identities(name, pile, within: float) -> list:
    """Rows that hold for any pile: its weight, to a share ``within``, and its energy ledger."""
    closure = results(pile)["energy_closure"]
    return [
        Row(f"{name}: ground carries the weight", 1, pile.weight, abs(pile.weight - 1) < within, "identity"),
        Row(f"{name}: energy ledger, relative", "closed", closure, closure < 1e-9, "identity"),
    ]
