"""How long a run takes to begin: import, the first step of a small scene, and the first run that compiles."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..experiments.options import Option
from .options import takes

IMPORT = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import contactdynamics
print(time.perf_counter() - wall, time.process_time() - cpu)
"""

# From the start of the process (its CPU time counts from there) to the end of the first step of `cdyn run FILE`.
RUN = """
import os, sys, time
from contactdynamics import cli
from contactdynamics.rigid import simulation

def first(self, step=simulation.Simulation.step):
    step(self)
    os.write(1, f"{time.time() - float(sys.argv[1])} {time.process_time()}".encode())
    os._exit(0)

simulation.Simulation.step = first
cli.main(["run", *sys.argv[2:]])
"""

SCENE = '''"""A ball on the ground."""
import contactdynamics as cd

FIGURE, PARAMETERS, QUICK = "", {"duration": 0.1}, {}

def build(parameters):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=1000.0)
    scene.contact("stone", "stone", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="stone", position=(0, 0, 0), fixed=True)
    scene.add(cd.Sphere(0.05), material="stone", position=(0, 0, 0.05))
    return cd.Simulation(scene, time_step=1e-3)

def check(outcome, parameters): ...
def figure(outcome, parameters): ...
'''


def _times(script: str, *arguments: str, cache: Path | None = None) -> tuple[float, float]:
    """Wall and CPU seconds that a script prints in a process of its own, which may keep its bytecode as usual."""
    environment = os.environ | ({"CONTACTDYNAMICS_CACHE": str(cache)} if cache else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


@takes(
    repeats=Option(5, "times that each is measured; the best counts", least=1),
    cold=Option(False, "also the first run of all, which compiles the kernels"),
)
def start(echo, *, repeats: int, cold: bool) -> dict:
    """Seconds of `import contactdynamics` and of `cdyn run` until the end of the first step; best of ``repeats``.

    With ``cold`` also the first run of all, which compiles the kernels into an empty cache.
    """
    results = {}
    with tempfile.TemporaryDirectory(prefix="cdyn-") as scratch:
        scene, out = Path(scratch) / "ball.py", str(Path(scratch) / "out")
        scene.write_text(SCENE)

        def run(*arguments, cache=None):
            return _times(RUN, repr(time.time()), *arguments, "--out", out, "--force", cache=cache)

        run(str(scene))  # compiles what is not compiled yet
        measurements = [
            ("import", lambda: _times(IMPORT), repeats),
            ("start", lambda: run(str(scene)), repeats),
            ("pile_start", lambda: run("pile", "--quick"), repeats),
        ]
        if cold:
            measurements.append(("first_run", lambda: run(str(scene), cache=Path(scratch) / "cache"), 1))
        for name, measure, times in measurements:
            found = [measure() for _ in range(times)]
            results[f"{name}_seconds"] = min(wall for wall, _ in found)
            results[f"{name}_cpu_seconds"] = min(cpu for _, cpu in found)
            echo(f"{name:<11} {results[f'{name}_seconds']:.3f} s, CPU {results[f'{name}_cpu_seconds']:.3f} s")
    return results | {"import_target": 0.6, "start_target": 1.0}
