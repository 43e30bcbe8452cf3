"""The conical pile: grains poured one by one on a rough ground, and how the forces go through it.

1999, part IV; 2003, section 9; 2004, section 10. Lengths in cm, masses in g: pressures are in dyn/cm², that is in
deciPascal. The grains come at rest, 200 per second, each as low as possible on a vertical near the axis. In the first
pictures the pile is still being poured; cuts and ground pressure are those of the pile at rest, ``relaxation`` seconds
later. `--from-data` draws a stored pile; `export` makes the file it reads.
"""

import math
from pathlib import Path

import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.experiments._pile import Pile
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.files import archive
from contactdynamics.files import hdf5 as storage
from contactdynamics.files.layout import STAGES
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import packings
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import Plane
from contactdynamics.state import FREE

FIGURE = "1999, figures 1 to 5; 2003, figures 2 to 6; 2004, figures 3 to 7"
PARAMETERS = Options(
    grains=Option(14_000, "grains poured", least=15, most=100_000_000),
    rate=Option(200.0, "grains per second", "1/s", least=1, most=1e6),
    step=Option(2e-4, "time step", "s", least=1e-7, most=5e-3),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=100),
    gravity=Option(981.0, "acceleration of gravity", "cm/s²", least=1, most=1e5),
    smallest=Option(0.25, "smallest diameter of the grains", "cm", least=0.01, most=100),
    largest=Option(0.5, "largest diameter of the grains", "cm", least=0.01, most=100),
    pour_radius=Option(0.8, "radius of the disk above which grains come", "cm", least=0, most=1000),
    relaxation=Option(2.0, "time after the last grain", "s", least=0, most=1000),
    # Halved and doubled, the same slope and pressure: docs/guide/performance.md.
    tolerance=Option(2e-3, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    seed=Option(1, "seed of the random numbers", least=0),
    layer=Option((15.5, 18.7), "dates of the fossil layer; in shorter runs at the same share of the pouring", "s",
                 least=0, most=1e6, numbers=(2,)),
    frame_every=Option(0.5, "time between the frames in the file", "s", least=1e-3, most=1000),
    from_data=Option("", 'result file to draw from instead of computing, or "true" for the stored pile'),
)  # fmt: skip
QUICK = {"grains": 400, "relaxation": 1.0, "frame_every": 0.1}

PHYSICS = ("rate", "step", "friction", "gravity", "smallest", "largest", "pour_radius")
LARGE = 10_000  # grains from which the published numbers are asked: the papers' pile has 14 000
STORED = Path(packings.__file__).parents[3] / "examples" / "data" / "pile.h5"  # of the project, also for a copy


def duration(parameters):
    """The pouring and the relaxation."""
    return parameters["grains"] / parameters["rate"] + parameters["relaxation"]


def ground_radius(parameters):
    """Wide enough for a cone of 22° at a packing fraction of 0.6, and for grains that run on."""
    p = parameters
    low, high = p["smallest"], p["largest"]
    cube = low**3 if high == low else (high**4 - low**4) / (4 * (high - low))  # mean of d^3
    volume = p["grains"] * math.pi / 6 * cube / 0.6
    return 1.15 * (3 * volume / (math.pi * math.tan(math.radians(22)))) ** (1 / 3) + p["pour_radius"] + 2 * high


def build(parameters):
    """The pile about to be poured, or the path of a stored one."""
    p = parameters
    if p["from_data"]:
        path = STORED if p["from_data"].lower() == "true" else Path(p["from_data"])
        if not path.is_file():
            why = ", which is part of the source and not of an installed package" if path == STORED else ""
            raise InputError(f"There is no stored pile {path}{why}; give the run.h5 of a pile, --from-data FILE.")
        return path
    scene = Scene(gravity=(0.0, 0.0, -p["gravity"]))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=p["friction"])
    sizes = packings.Sieve.uniform(p["smallest"], p["largest"])
    packings.pavement(scene, material="grain", sizes=sizes, extent=ground_radius(p), seed=p["seed"])
    # Nothing passes through the pavement; a table under it catches what runs over its edge.
    table = (0.0, 0.0, -0.5 * p["largest"])
    scene.add(Plane(normal=(0, 0, 1)), material="grain", position=table, fixed=True)
    pour = packings.Pour(
        scene, material="grain", sizes=sizes, rate=p["rate"], count=p["grains"], radius=p["pour_radius"], seed=p["seed"]
    )
    simulation = Simulation(scene, time_step=p["step"], tolerance=p["tolerance"])
    simulation.before_step.append(pour)
    return simulation


def _recording(outcome):
    """The result file of a run, or the stored one."""
    return storage.open(outcome if isinstance(outcome, Path) else outcome.recorders[-1].path)


def check(outcome, parameters):
    """Everything measured in the result file, and the bars."""
    with _recording(outcome) as recording:
        if "grains" not in recording.parameters["about"].get("parameters", {}):
            raise InputError(f"{recording.path} is no run of the pile; give the run.h5 of `cdyn run pile`.")
        pile = Pile(recording)
        results = _results(pile)
        return Verdict(results, _rows(pile, results))


def _results(pile):
    log, frame = pile.recording.log, pile.relaxed
    seconds = sum(log[stage] for stage in STAGES)
    pressure, angles = pile.pressure, pile.layer_angles
    friction = analysis.mobilised_friction(frame)
    return {
        "grains": int((frame.kinds == FREE).sum()),
        "contacts": len(frame.contacts.gap),
        "slope_degrees": pile.slope.degrees,
        "slope_error_degrees": pile.slope.error,
        "slope_while_pouring_degrees": pile.slopes.mean,
        "slope_deviation_degrees": pile.slopes.deviation,
        "slope_lost_degrees": analysis.slope(pile.poured).degrees - pile.slope.degrees,
        "height_cm": pile.height,
        "volume_mass": pile.volume_mass,
        "central_pressure_dPa": float(pressure.final.values[0]),
        "hydrostatic_pressure_dPa": pile.hydrostatic,
        "pressure_profile": {
            "radii": pressure.final.radii,
            "values": pressure.final.values,
            "mean_of_epochs": pressure.mean,
            "deviation_of_epochs": pressure.deviation,
            "epochs": pressure.times,
        },
        "weight_balance": analysis.weight_balance(frame),
        "reciprocity_error": pile.reciprocity_error,
        "force_to_layer_degrees": float(np.abs(angles[:, 3] - angles[:, 2]).mean()) if len(angles) else None,
        "coordination": analysis.coordination(frame).mean,
        "mobilised_friction": friction.mean,
        "force_decay": analysis.normal_forces(frame).decay,
        "wall_seconds": float(seconds.mean() * pile.recording.steps),
        "seconds_per_step_at_end": float(seconds[-max(1, len(seconds) // 50) :].mean()),
        "sweeps_per_step": float(log["iterations"].mean()),
        "steps": pile.recording.steps,
        "largest_penetration": float(log["penetration"].max()),
        "largest_relative_penetration": float(log["relative_penetration"].max()),
        "largest_residual": float(log["residual"].max()),
    }


def _rows(pile, results):
    """The bars; numbers of the papers only for a pile of their size and material."""
    p, r = pile.parameters, results
    # A contact is seen half a step late at most: what falls from the top of the pile sinks in by a step of its travel.
    sink = math.sqrt(2 * p["gravity"] * r["height_cm"]) * p["step"]
    tolerance = pile.recording.parameters["options"]["tolerance"]
    rows = [
        Row("ground carries the weight", 1, r["weight_balance"], abs(r["weight_balance"] - 1) < 1e-3, "identity"),
        Row("largest overlap, cm", f"< {sink:.4f}, one step of free fall", r["largest_penetration"],
            r["largest_penetration"] < sink, "closed form"),
        Row("largest residual", f"<= {tolerance:g}", r["largest_residual"], r["largest_residual"] <= tolerance,
            "identity"),
    ]  # fmt: skip
    if r["grains"] < LARGE or any(p[key] != PARAMETERS[key] for key in PHYSICS):
        return rows
    mass, centre = r["volume_mass"], r["central_pressure_dPa"]
    # A state stands where its last avalanche left it, which hangs on the last bit; the mean over the pouring does not.
    # Relaxing changes nothing that can be seen (1999, part IV): no more than two states of the pouring differ.
    slope, lost = r["slope_while_pouring_degrees"], r["slope_lost_degrees"]
    doubt = 2 * math.sqrt(2) * r["slope_deviation_degrees"]
    return [
        Row("slope, mean of the later half of the pouring, degrees", 26, slope, abs(slope - 26) <= 1.5, "published"),
        Row("slope lost while it relaxes, degrees", f"0 within {doubt:.1f}, as two states of the pouring", lost,
            abs(lost) <= doubt, "published"),
        Row("volume mass, g/cm³", 0.615, mass, abs(mass - 0.615) <= 0.02, "published"),
        Row("pressure at the centre, dPa", f"< {r['hydrostatic_pressure_dPa']:.0f}, hydrostatic (3320 in print)",
            centre, centre < r["hydrostatic_pressure_dPa"], "published"),
        *rows,
    ]  # fmt: skip


def figure(outcome, parameters):
    """The figures of the papers, and those of stress, force chains, statistics and cost."""
    from contactdynamics.experiments import _pile_figures as figures

    with _recording(outcome) as recording:
        pile = Pile(recording)
        return {
            "figure": figures.speeds(pile),
            "layers": figures.fossil_layers(pile),
            "cuts": figures.cuts(pile),
            "arching": figures.forces_and_layers(pile),
            "ground": figures.pressure(pile),
            "stress": figures.stress(pile),
            "chains": figures.chains(pile),
            "statistics": figures.statistics(pile),
            "growth": figures.growth(pile),
        }


def export(source, target, **note):
    """Write what the figures need of a run into a small file: ``export("results/pile/run.h5", "pile.h5")``."""
    with storage.open(source) as recording:
        pile = Pile(recording)
        full = [pile.relaxed.time, pile.poured.time, pile.layers[0][1]]
        times = [*full, *pile.epoch_times(), *pile.pressure_times()]
    archive.export_frames(source, target, times, full=full, note=note)
