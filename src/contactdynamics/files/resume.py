"""Going on from a result file: the state of a simulation, and a simulation from its file alone."""

from pathlib import Path

import numpy as np

from ..scenes import hooks, packings, pressure  # noqa: F401, these have the hooks of the package
from . import reading, soundness
from .hdf5 import Recording
from .writer import cell_asked, others


def restore(simulation, path):
    """See `Simulation.restore`."""
    with Recording(path) as recording:
        reading.check_likeness(recording, simulation)
        tables = reading.last_block(recording)
        checkpoint = reading.checkpoint(recording)
        scaled = reading.scaled_spins(recording)
        _check_order(path, tables, checkpoint)
        said = recording.parameters
        simulation._awaited = (path, said.get("before_step"), said.get("recorders", []), said["options"].get("solver"),
                               said.get("cell"))  # fmt: skip
        residual = float(np.nanmax(recording.log["residual"], initial=0.0))
        simulation.steps, simulation.time = recording.frame_steps[-1].item(), float(recording.times[-1])
    simulation.scene.blocks = [tables]
    simulation.failures, simulation.scene.count = (int(n) for n in checkpoint["numbers"][:2])
    simulation.seconds = dict(zip(simulation.seconds, checkpoint["seconds"].tolist(), strict=True))
    simulation.roster.restore(tables, scaled, checkpoint)
    simulation.loading.follow_gravity(simulation.time)
    if simulation.cell_motion is not None:
        simulation.cell_motion.restore(checkpoint)
        simulation.contact_set.move_cell(simulation.cell_motion.space(), recut=True)
    for part in (simulation.ledger, simulation.watch, simulation.contact_set):
        part.restore(checkpoint)
    simulation.watch.residual = residual
    simulation.derive()
    if simulation._hardest is not None:
        simulation._hardest.goes_on = True
    for recorder in simulation.recorders:
        if getattr(recorder, "path", None) is not None and recorder.path.resolve() == Path(path).resolve():
            recorder.resume(simulation)
    return simulation


def differences(simulation, path, before_step, recorders, solver, cell) -> list[str]:
    """Sentences on what the run of the file ``path`` had and the ``simulation`` that goes on with it has not.

    Its hooks get back what those of the file had learnt.
    """
    present = others(simulation, path)
    lost = [name for name in recorders if name not in present]
    told = [] if before_step is None else [hooks.recalled(simulation.before_step, before_step)]
    if lost:
        told.append(
            f"The run of {path} had the recorders {', '.join(lost)} as well, which are in no file, and goes on without "
            "them; append them to simulation.recorders in the program that has them, or accept that they end here."
        )
    if str(solver).startswith(hooks.OWN):
        name, own = solver.removeprefix(hooks.OWN), simulation.solver
        if not (callable(own) and hooks.name_of(own) == name):
            told.append(
                f"The run of {path} was made with the solver {name}, a function, and goes on with "
                f"{hooks.name_of(own) if callable(own) else own}; give Simulation(solver={name}) to go on as it began."
            )
    here = cell_asked(simulation.scene)
    other = [what for what in ("rate", "stress") if cell is not None and cell.get(what) != here[what]]
    if other:
        told.append(
            f"The run of {path} had another {' and '.join(other)} imposed on its cell, and goes on with "
            f"{'that' if len(other) == 1 else 'those'} of this simulation; call simulation.cell.impose(...) to go on "
            "as it was."
        )
    return [sentence for sentence in told if sentence]


def _check_order(path, tables, checkpoint: dict) -> None:
    """The balls of a simulation stand in the order of its rows."""
    row = np.argsort(checkpoint.get("row_order", np.arange(len(tables.bodies.mass))))
    balls = checkpoint.get("ball_order", np.arange(len(tables.balls.radius)))
    if (np.diff(row[tables.balls.body][balls]) < 0).any():
        raise soundness.damaged(path, "checkpoint/ball_order is not in the order of checkpoint/row_order")


def from_file(kind, path, options: dict):
    """A simulation of the class ``kind``: see `Simulation.from_file`."""
    with Recording(path) as recording:
        scene = reading.load_scene(recording)
        scene.take_over(reading.last_block(recording))
        scene.count = int(reading.checkpoint(recording)["numbers"][1])
        kept = reading.options_of(recording) | {"about": recording.parameters["about"]}
        if "before_step" not in options:
            kept["before_step"] = hooks.made(recording.parameters.get("before_step", []), path)
    return kind(scene, **(kept | options), check=False).restore(path)
