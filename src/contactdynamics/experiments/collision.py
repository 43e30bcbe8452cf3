"""Collisions: the three-parameter law for two spheres, superballs, rows of balls, and a bar that gains energy.

2004, sections 7.3 to 8.2. Two free spheres against the formulas, for any options and over all angles of impact; a
superball under a table (Garwin 1969); a row of balls hit at its end, with all contacts together, against collisions one
after another and against elastic balls (Newton's cradle); a bar that leaves the floor with more energy than it had,
found by the ledgers of both engines.
"""

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.errors import EnergyWarning, InputError
from contactdynamics.experiments import _balls as balls
from contactdynamics.experiments import _rod as rods
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "2004, sections 7.3 to 8.2 (no figure)"
PARAMETERS = Options(
    restitution=Option(0.5, "normal restitution of the two spheres", "1", least=0, most=1),
    tangential_restitution=Option(0.4, "tangential restitution of the two spheres", "1", least=-1, most=1),
    friction=Option(0.2, "friction coefficient of the two spheres", "1", least=0, most=1e6),
    mass_ratio=Option(1.0, "mass of the second sphere over that of the first", "1", least=1e-6, most=1e6),
    incoming=Option([1.0, -1.0], "velocity before the impact: tangential, normal (< 0)", "m/s", least=-1e3, most=1e3,
                    numbers=(2,)),
    angles=Option(61, "angles of impact in the diagram", least=2, most=10_000),
    hopping=Option(2.2, "time of the superball on the floor", "s", least=0.5, most=60),
    count=Option(5, "balls in the row", least=2, most=100),
    bar_restitution=Option(1.0, "restitution of the bar on the floor", "1", least=0, most=1),
    bar_friction=Option(0.5, "friction coefficient of the bar on the floor", "1", least=0, most=1e6),
    grid=Option(41, "points of the bar's map, along each side", least=2, most=1000),
)  # fmt: skip
QUICK = {"angles": 25, "grid": 15, "hopping": 0.9}

RESTITUTIONS = (0.0, 0.5, 1.0)
TABLE = (1, -1, 1)  # floor, table, floor


def build(parameters):
    """Impacts of two spheres, superballs under a table and on a floor, rows of balls, and the map of the bar."""
    incoming, law = checked(parameters), law_of(parameters)
    outgoing, status, energy = balls.collide([incoming], mass_ratio=parameters["mass_ratio"], **law)
    angles = np.radians(np.linspace(0, 88, parameters["angles"]))
    swept = np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    sweep = balls.collide(swept, mass_ratio=parameters["mass_ratio"], **law)
    count = parameters["count"]
    return {
        "incoming": incoming,
        "outgoing": outgoing[0],
        "sticking": bool(status[0] == 2),
        "energy": energy,
        "angles": angles,
        "swept": swept,
        "sweep": sweep,
        "table": balls.superball(3.0, True, 0.36),
        "floor": balls.superball(1.0, False, parameters["hopping"]),
        "together": {rho: balls.row(count, rho) for rho in RESTITUTIONS},
        "apart": {rho: balls.row(count, rho, gap=0.01, duration=0.02 * (count + 1) ** 2) for rho in RESTITUTIONS},
        "cradle": balls.hertz_row(count),
        "bar": bar_map(parameters),
    }


def law_of(parameters):
    """The three parameters of the law."""
    return {key: parameters[key] for key in ("restitution", "tangential_restitution", "friction")}


def checked(parameters):
    """The incoming velocity, once it has been seen to come."""
    incoming = parameters["incoming"]
    if incoming[1] > 0:
        raise InputError(f"incoming={incoming[0]},{incoming[1]} separates; give a normal velocity < 0, as in 1,-1.")
    return np.array(incoming, dtype=float)


# ---- the bar ---------------------------------------------------------------------------------------------------------


def bar_map(parameters):
    """Energy after / before over the angle of the bar and of its velocity; the worst impact in both engines."""
    law = {"restitution": parameters["bar_restitution"], "friction": parameters["bar_friction"]}
    tilt, heading = np.linspace(2, 88, parameters["grid"]), np.linspace(-85, 85, parameters["grid"])
    grid = np.stack(np.meshgrid(tilt, heading, indexing="ij"), axis=-1).reshape(-1, 2)
    angle, normal, tangential = np.radians(grid[:, 0]), -np.cos(np.radians(grid[:, 1])), np.sin(np.radians(grid[:, 1]))
    steps = list(rods.impacts(angle, normal, tangential, cd.Law(**law)))
    ratio = np.array([s.kinetic_after / s.kinetic_before for s in steps])
    formula = [rods.energy_formula(*case, law["restitution"], law["friction"])
               for case in zip(angle, normal, tangential, strict=True)]  # fmt: skip
    worst = int(np.argmax(ratio))
    return {
        "tilt": tilt, "heading": heading, "ratio": ratio.reshape(len(tilt), -1),
        "error": float(np.abs(ratio - formula).max()), "worst": grid[worst].tolist(), "largest": float(ratio[worst]),
        "system": watched(lambda: bar_in_system(angle[worst], normal[worst], tangential[worst], law)),
        "scene": watched(lambda: bar_in_scene(angle[worst], normal[worst], tangential[worst], law)),
    }  # fmt: skip


def watched(run):
    """What a run says: energy after / before, energy created by its ledger, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before, after, created = run()
    told = [str(w.message) for w in caught if issubclass(w.category, EnergyWarning)]
    return {"ratio": after / before, "created": created, "gained": after - before, "warnings": told}


def bar_in_system(angle, normal, tangential, law, step=1e-6):
    """The worst impact as a motion of the finite-freedom engine, 100 steps with the impact in the middle."""
    height = math.sin(angle) - 50.5 * step * normal
    motion = cd.integrate(rods.rod(cd.Law(**law)), q=(0, height, angle), u=(tangential, normal, 0), step=step,
                          until=100 * step)  # fmt: skip
    return motion.ledger.kinetic[0], motion.ledger.kinetic[-1], float(motion.ledger.created.sum())


def bar_in_scene(angle, normal, tangential, law, step=1e-6):
    """The same impact of a thin bar made of disks."""
    radius = 0.005
    along = np.linspace(-1, 1, 11)[:, None] * [math.cos(angle), math.sin(angle)]
    scene = cd.Scene(gravity=(0, 0))
    scene.material("bar", density=1.0)
    scene.contact("bar", "bar", **law)
    scene.add(cd.HalfPlane((0, 1)), material="bar", fixed=True)
    scene.add(cd.Cluster(np.full(11, radius), along), material="bar", mass=1.0, inertia=rods.INERTIA,
              position=(0, math.sin(angle) + radius - 50.5 * step * normal),
              velocity=(tangential, normal))  # fmt: skip
    sim = cd.Simulation(scene, time_step=step, tolerance=1e-12)
    before = sim.energy.kinetic
    sim.run(until=100 * step, progress=False)
    return before, sim.energy.kinetic, sim.energy.created


# ---- results ---------------------------------------------------------------------------------------------------------


def check(outcome, parameters):
    """Two spheres, superballs and rows of balls against closed forms; how much a bar gains by Newton's rule."""
    law, count = law_of(parameters), parameters["count"]
    expected, sticking = balls.formula(outcome["incoming"], **law)
    error = np.abs(outcome["outgoing"] - expected).max() / max(1e-300, np.abs(outcome["incoming"]).max())
    theory = np.array([balls.formula(v, **law)[0] for v in outcome["swept"]])
    deviation = float(np.abs(outcome["sweep"][0] - theory).max())
    thrown = balls.superball_formula(TABLE)
    hops = balls.superball_formula([1] * len(outcome["floor"][2]))
    rows = [
        Row("outgoing velocity (tangential, normal)", expected.tolist(), outcome["outgoing"].tolist(), error < 1e-9,
            "closed form"),
        Row("deviation from the formulas, all angles", 0.0, deviation, deviation < 1e-9, "closed form"),
        Row("superball: back from under a table", thrown[-1], outcome["table"][2][2],
            np.allclose(outcome["table"][2][:3], thrown, atol=0.01), "closed form"),
        Row("superball: forward speed after the bounces", [round(v, 3) for v in hops],
            [round(v, 3) for v in outcome["floor"][2]], np.allclose(outcome["floor"][2], hops, atol=0.01),
            "closed form"),
    ]  # fmt: skip
    for rho, velocities in outcome["together"].items():
        law_of_row = balls.row_formula(count, rho)
        rows.append(Row(f"row, all contacts together, rho = {rho:g}: first, others", law_of_row[:2].tolist(),
                        velocities[[0, -1]].tolist(), np.abs(velocities - law_of_row).max() < 1e-9,
                        "closed form"))  # fmt: skip
        events = balls.one_after_another(count, rho)
        if rho > 0:  # with rho = 0 the balls with gaps end as one, too, but only after many collisions
            rows.append(Row(f"row with gaps, rho = {rho:g}: last ball", float(events[-1]),
                            float(outcome["apart"][rho][-1]),
                            abs(outcome["apart"][rho][-1] - events[-1]) < 1e-9, "closed form"))  # fmt: skip
    return Verdict(results_of(outcome, parameters, sticking), rows + bar_rows(outcome["bar"], parameters))


def bar_rows(bar, parameters):
    """The rows of the verdict that are about the bar."""
    rows = [
        Row("bar: error of the energy after impact, whole map", 0.0, bar["error"], bar["error"] < 1e-9, "closed form")
    ]
    creates = bar["largest"] > 1 + 1e-6
    told = "told once, with the amount" if creates else "none told"
    for engine in ("system", "scene"):
        said = bar[engine]
        passed = len(said["warnings"]) == int(creates) and abs(said["ratio"] - bar["largest"]) < 1e-3
        if creates:
            passed = passed and abs(said["created"] - said["gained"]) < 1e-9 * said["gained"]
        rows.append(
            Row(
                f"bar in a {engine}: energy created in the worst impact, warning",
                told,
                said["created"],
                passed,
                "closed form",
            )
        )
    return rows


def results_of(outcome, parameters, sticking):
    """The numbers of the summary."""
    bar = outcome["bar"]
    return {
        "outgoing": outcome["outgoing"],
        "sticking": outcome["sticking"],
        "critical_angle_degrees": critical_angle(parameters),
        "energy_ratio": outcome["energy"],
        "superball_under_table": outcome["table"][2][:3],
        "superball_on_floor": outcome["floor"][2],
        "row_together": {f"{rho:g}": v for rho, v in outcome["together"].items()},
        "row_with_gaps": {f"{rho:g}": v for rho, v in outcome["apart"].items()},
        "row_elastic_hertz": outcome["cradle"],
        "bar_largest_energy_ratio": bar["largest"],
        "bar_worst_angles_degrees": bar["worst"],
        "bar_share_of_the_map_with_gain": float((bar["ratio"] > 1 + 1e-9).mean()),
        "bar_warning": (bar["system"]["warnings"] or [None])[0],
    }


def critical_angle(parameters):
    """Angle (degrees from the normal) up to which impacts stick: tan = (1 + k) gamma (1 + rho) / (1 + tau)."""
    rise = (1 + balls.KAPPA) * parameters["friction"] * (1 + parameters["restitution"])
    return math.degrees(math.atan2(rise, 1 + parameters["tangential_restitution"]))


# ---- figures ---------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """Angles after impact, paths of the superballs, speeds in the row, energy of the bar."""
    figure, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(11, 8.5), layout="constrained")
    draw_angles(one, outcome, parameters)
    draw_superball(two, outcome)
    draw_row(three, outcome, parameters["count"])
    draw_bar(figure, four, outcome["bar"], parameters)
    return figure


def draw_angles(ax, outcome, parameters):
    """Velocities after impact over the angle, beside the formula."""
    degrees, (outgoing, status, _) = np.degrees(outcome["angles"]), outcome["sweep"]
    theory = np.array([balls.formula(v, **law_of(parameters))[0] for v in outcome["swept"]])
    ax.plot(degrees, theory, "k-", lw=0.8)
    for kind, colour, name in ((2, "#2166ac", "sticking"), (3, "#b2182b", "sliding")):
        picked = status == kind
        ax.plot(degrees[picked], outgoing[picked, 0], "o", ms=4, color=colour, label=f"tangential, {name} impact")
    ax.plot(degrees, outgoing[:, 1], "s", ms=3, color="0.5", label="normal")
    ax.axvline(critical_angle(parameters), color="0.6", lw=0.8, ls=":")
    ax.set(xlabel="angle of impact from the normal, degrees", ylabel="outgoing / incoming speed",
           title="two spheres: law (lines: formulas)")  # fmt: skip
    ax.legend(frameon=False, fontsize=8)


def draw_superball(ax, outcome):
    """The paths under a table and on a floor."""
    for key, colour, name in (("table", "#b2182b", "under a table"), ("floor", "#2166ac", "on a floor")):
        _, places, _ = outcome[key]
        ax.plot(*places.T, color=colour, lw=1.2, label=name)
    ax.axhline(0, color="0.4")
    ax.plot([-0.1, 0.55], [0.5, 0.5], color="0.4")
    ax.text(0.57, 0.5, "table", va="center", fontsize=8)
    ax.set(xlabel="x, m", ylabel="z, m", title="superball (ρ = τ = 1): path of the centre", ylim=(-0.02, 0.62))
    ax.legend(frameon=False, fontsize=8, loc="upper right")


def draw_row(ax, outcome, count):
    """Speeds of a row of balls, struck together and in turn."""
    width, ball = 0.13, np.arange(1, count + 1)
    bars = [(f"together, ρ = {rho:g}", outcome["together"][rho], shade) for rho, shade in
            zip(RESTITUTIONS, ("#fdae61", "#f46d43", "#a50026"), strict=True)]  # fmt: skip
    bars += [(f"with gaps, ρ = {rho:g}", outcome["apart"][rho], shade) for rho, shade in
             ((0.5, "#abd9e9"), (1.0, "#2166ac"))]  # fmt: skip
    bars.append(("elastic balls (Hertz)", outcome["cradle"], "0.3"))
    for k, (name, velocities, colour) in enumerate(bars):
        ax.bar(ball + (k - 2.5) * width, velocities, width, color=colour, label=name)
    ax.axhline(0, color="0.4", lw=0.8)
    ax.set(xlabel="ball of the row (ball 1 hits at speed 1)", ylabel="velocity after", title="a row of balls",
           xticks=ball)  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    ax.set_ylim(-0.75, 1.65)


def draw_bar(figure, ax, bar, parameters):
    """Energy after over energy before, over both angles."""
    ratio = bar["ratio"].T
    spread = max(1e-6, np.abs(ratio - 1).max())
    image = ax.pcolormesh(bar["tilt"], bar["heading"], ratio, cmap="RdBu_r", vmin=1 - spread, vmax=1 + spread,
                          shading="nearest")  # fmt: skip
    if bar["largest"] > 1 + 1e-6:
        ax.contour(bar["tilt"], bar["heading"], ratio, levels=[1.0], colors="k", linewidths=1)
    ax.plot(*bar["worst"], "k+", ms=9)
    title = f"bar, ρ = {parameters['bar_restitution']:g}, γ = {parameters['bar_friction']:g}: energy after / before"
    ax.set(xlabel="bar from the floor, degrees", ylabel="velocity from the normal, degrees", title=title)
    figure.colorbar(image, ax=ax)
