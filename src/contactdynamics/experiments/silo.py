"""Discharge of a silo in 2D: the rate against the opening.

Beverloo's law in the plane: the number of grains that leave per second is C (D - k d)^(3/2), with k of 1 to 3, and does
not depend on the height of the filling. Disks, flat bottom, opening D in the middle.
"""

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics import packings
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "Beverloo 1961 in 2D: flow rate of a silo against its opening"
PARAMETERS = Options(
    grains=Option(1500, "in the silo at the start", least=100, most=100_000),
    openings=Option([5.0, 7.0, 9.0, 12.0], "width of the opening over the mean diameter", "1", least=3, most=100),
    width=Option(36.0, "of the silo over the mean diameter", "1", least=10, most=1000),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=10),
    seed=Option(1, "of the grains", least=0, most=10**9),
    tolerance=Option(3e-3, "to which steps are solved", "1", least=1e-8, most=1e-1),
    step=Option(0.02, "time step over sqrt(d / g)", "1", least=1e-4, most=0.1),
)  # fmt: skip
QUICK = {"grains": 260, "openings": [5.5, 7.0, 9.0], "width": 18.0, "step": 0.05, "tolerance": 1e-2}


def discharge(parameters, opening):
    """Times at which grains leave, and the height of the filling then."""
    half, count = 0.5 * parameters["width"], parameters["grains"]
    scene = cd.Scene(gravity=(0, -1.0))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=parameters["friction"])
    for side in (-1, 1):
        scene.add(cd.HalfPlane(normal=(-side, 0)), material="grain", position=(side * half, 0), fixed=True)
    beads = np.arange(0.5 * opening + 0.1, half + 0.2, 0.2)
    scene.add_many(0.1, material="grain", position=[(s * x, -0.1) for s in (-1, 1) for x in beads], fixed=True)
    lid = scene.add(cd.HalfPlane(normal=(0, 1)), material="grain", fixed=True)
    packings.rain(scene, material="grain", sizes=(0.8, 1.2), count=count, low=(-half, 0.05),
                  high=(half, 0.05 + 2.4 * count / parameters["width"]), seed=parameters["seed"])  # fmt: skip
    sim = cd.Simulation(scene, time_step=parameters["step"], tolerance=parameters["tolerance"], on_failure="ignore",
                        penetration="anticipate")  # fmt: skip
    sim.run(until=sim.time_step * round(12 / sim.time_step), progress=False)
    sim.remove(lid)
    outlet = packings.Outlet(position=(0, -4.0), normal=(0, 1))
    sim.before_step.append(outlet)
    start, rows, last = sim.time, [], 0
    most = 2.5 * count / (0.5 * max(0.5, opening - 1.5) ** 1.5)
    with recorded(sim, until=start + most):
        while outlet.removed < 0.6 * count and sim.time - start < most:
            sim.step()
            if outlet.removed > last:
                rows.append((sim.time - start, outlet.removed))
                last = outlet.removed
    return np.array(rows if rows else [(0.0, 0)])


def rate_of(rows, count, first, after):
    """Grains per time between two shares of the silo."""
    some = rows[(rows[:, 1] >= first * count) & (rows[:, 1] <= after * count)]
    return float(np.polyfit(some[:, 0], some[:, 1], 1)[0]) if len(some) > 3 else 0.0


def build(parameters):
    """One discharge for each opening."""
    out = []
    for opening in parameters["openings"]:
        rows = discharge(parameters, opening)
        n = parameters["grains"]
        out.append({"opening": opening, "rows": rows, "rate": rate_of(rows, n, 0.1, 0.55),
                    "early": rate_of(rows, n, 0.1, 0.3), "late": rate_of(rows, n, 0.3, 0.55)})  # fmt: skip
    return out


def beverloo(opening, rate):
    """k and C of C (D - k)^(3/2), by least squares in rate^(2/3), which is linear; and the exponent with this k."""
    slope, shift = np.polyfit(opening, rate ** (2 / 3), 1)
    k = -shift / slope
    exponent = float(np.polyfit(np.log(opening - k), np.log(rate), 1)[0])
    fixed = float(np.polyfit(np.log(opening - 1.4), np.log(rate), 1)[0])
    return float(k), float(slope**1.5), exponent, fixed


def check(outcome, parameters):
    """The law, and no memory of the height."""
    flows = [run for run in outcome if run["rate"] > 0]
    if len(flows) < 3:
        stuck = Row("openings that flow, 3 or more", 3, len(flows), False, "own reference")
        return Verdict({"opening": [run["opening"] for run in outcome], "rate": [run["rate"] for run in outcome],
                        "exponent": None, "k": None}, [stuck])  # fmt: skip
    opening, rate = (np.array([run[key] for run in flows]) for key in ("opening", "rate"))
    k, scale, _, exponent = beverloo(opening, rate)
    error = float(np.abs(scale * (opening - k) ** 1.5 / rate - 1).max())
    change = float(np.mean([run["late"] / run["early"] for run in flows if run["early"] > 0]))
    few = parameters["grains"] ** -0.5  # of a finite sample
    rows = [
        Row(
            f"exponent of D - 1.4 d, within {0.15 + 2 * few:.2f}",
            1.5,
            exponent,
            abs(exponent - 1.5) <= 0.15 + 2 * few,
            "published",
        ),
        Row("k, between 0.5 and 3", 1.4, k, 0.5 <= k <= 3, "published"),
        Row(
            f"largest deviation from the law, within {0.06 + 2 * few:.2f}",
            0.0,
            error,
            error <= 0.06 + 2 * few,
            "published",
        ),
        Row(f"rate at half the height over that before, within {0.1 + 4 * few:.2f}", 1.0, change,
            abs(change - 1) <= 0.1 + 4 * few, "published"),
    ]  # fmt: skip
    results = {"opening": opening.tolist(), "rate": rate.tolist(), "exponent": exponent, "k": k, "scale": scale,
               "late_over_early": change, "grains": parameters["grains"], "seeds": 1}  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Rates over the law, and what has left over time."""
    flows = [run for run in outcome if run["rate"] > 0]
    opening, rate = (np.array([run[key] for run in flows]) for key in ("opening", "rate"))
    k, scale, _, _ = beverloo(opening, rate)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    line = np.linspace(max(k, 0), opening.max(), 100)
    axes[0].plot(opening, rate, "o", label="computed")
    axes[0].plot(line, scale * (line - k) ** 1.5, "k--", label=f"{scale:.2f} (D − {k:.2f} d)^1.5")
    axes[0].set(xlabel="opening D / d", ylabel="grains per sqrt(d / g)")
    axes[0].legend(frameon=False)
    for run in outcome:
        axes[1].plot(*run["rows"].T, label=f"D = {run['opening']:g} d")
    axes[1].set(xlabel="time / sqrt(d / g)", ylabel="grains that have left")
    axes[1].legend(frameon=False)
    return figure
