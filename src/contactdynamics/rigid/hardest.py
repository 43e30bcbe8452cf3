"""The hardest steps of a run as problem files: those with the most sweeps and those with the largest residuals.

``step-000123-sweeps-1000-residual-3e-05.hdf5`` in FCLIB's form, with the impulses found as the solution; an iteration
of all contacts together counts as a sweep. The ten hardest by each measure are kept, 20 files at most. A resumed run
goes on with the files that are there: steps that it makes again give the same bits, and so the same files as the run
that was not interrupted.
"""

import re
from pathlib import Path

import numpy as np

from ..errors import InputError, as_path
from . import assembly, motion
from .step import Step

MOST = 10  # by each measure
NAME = re.compile(r"step-(\d+)-sweeps-(\d+)-residual-\S+\.hdf5")
SAID = re.compile(r"step (\d+) .* (\d+) sweeps, residual (\S+)")


def check_folder(folder, laws) -> str | None:
    """The folder of ``save_problems`` as text; refused where it is none, or where no file can hold one of the laws."""
    if folder is None:
        return None
    path = as_path("Simulation (save_problems)", folder)
    if path.is_file() or not path.absolute().parent.is_dir():
        raise InputError(f"save_problems is {path}, which is no folder and cannot be made one; give another name.")
    for law in laws:
        beyond = [name for name in ("rolling", "spinning", "cohesion", "tension") if getattr(law, name)]
        if beyond:
            raise InputError(
                f"save_problems cannot keep steps of a scene whose laws have {beyond[0]}: a contact problem knows "
                "friction alone; leave save_problems out, or the law."
            )
    return str(path.absolute())


class Hardest:
    """Keeps the hardest steps of a simulation in a folder."""

    def __init__(self, folder: str):
        self.folder, self.kept = Path(folder), None  # step -> (sweeps, residual, file)
        self.goes_on = False  # the simulation has taken over the state of a file

    def consider(self, simulation, step: Step, found) -> None:
        """Keep the step that was just solved, if it is among the hardest; bodies are still at its midpoint."""
        if self.kept is None:
            self._begin()
        number, count = simulation.steps + 1, simulation.contact_set.count
        again = self.kept.pop(number, None)  # of a run that was resumed before this step
        if count:
            self.kept[number] = (found.iterations, float(found.residual), self._name(number, found))
        keep = self._hardest()
        if number in keep:
            self._write(simulation, step, found, number)
        left = [kept[2] for key, kept in self.kept.items() if key not in keep and key != number]
        for name in [*left, *([again[2]] if again and again[2] != self.kept.get(number, (0, 0, ""))[2] else [])]:
            (self.folder / name).unlink(missing_ok=True)
        self.kept = {key: self.kept[key] for key in keep}

    def _hardest(self) -> set:
        """The steps among the hardest by one of the measures; of equals the worse by the other, then the earlier."""
        ranks = [
            sorted(self.kept, key=lambda key, k=k: (-self.kept[key][k], -self.kept[key][1 - k], key))[:MOST]
            for k in (0, 1)
        ]
        return set().union(*ranks)

    @staticmethod
    def _name(number: int, found) -> str:
        return f"step-{number:06d}-sweeps-{found.iterations}-residual-{found.residual:.0e}.hdf5"

    def _begin(self) -> None:
        """Find what an interrupted run has kept; refuse what another run has."""
        from ..files import problems

        self.folder.mkdir(exist_ok=True)
        self.kept = {}
        for path in sorted(self.folder.iterdir()):
            if not NAME.fullmatch(path.name):
                continue
            if not self.goes_on:
                self.kept = None
                raise InputError(
                    f"{self.folder} holds problems of an earlier run ({path.name}); give save_problems another folder, "
                    "or remove them."
                )
            said = SAID.match(problems.description(path))
            if said:
                self.kept[int(said[1])] = (int(said[2]), float(said[3]), path.name)

    def _write(self, simulation, step: Step, found, number: int) -> None:
        from ..files import problems

        model, d = simulation.model, simulation.model.dimension
        b, inverse = model.bodies, np.empty((len(model.bodies.mass), 3, 3))
        motion.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse, b.held)
        written, gaps = simulation.contact_set.explicit(step.free, d)
        problem = assembly.assemble(b, step.free, inverse, written, gaps, d)
        solution = np.concatenate([part.impulse[:, :d] for part in written])
        said = f"step {number} from t = {step.time!r}: {found.iterations} sweeps, residual {float(found.residual)!r}"
        problems.write_problem(problem, self.folder / self.kept[number][2], solution=solution, description=said)
