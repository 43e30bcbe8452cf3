"""The steps of ``cdyn bench late``, by the public face alone: any version of the package can be asked.

Run as a program, ``late_steps.py FILE``, it goes on with the pile in the FILE (see `late`), as it is poured, by the
package that it finds. For each line with a number it makes so many steps, and answers with seconds of CPU and by stage
and with sweeps, as a line of JSON.
"""

import json
import sys
import time

import numpy as np

import contactdynamics as cd
from contactdynamics import packings

SETTLE = 200  # steps before the first answer: the impulses of the pile are not known


def simulation(path: str) -> cd.Simulation:
    """The pile of a file, grains to come included."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    scene = cd.Scene(gravity=(0.0, 0.0, -981.0))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="grain", position=(0.0, 0.0, -0.25), fixed=True)
    scene.add_many(data["floor_radii"], material="grain", position=data["floor"], fixed=True)
    scene.add_many(data["radii"], material="grain", position=data["positions"], velocity=data["velocities"])
    sizes = packings.Sieve.uniform(0.25, 0.5)
    pour = packings.Pour(scene, material="grain", sizes=sizes, rate=200.0, count=10_000, radius=0.8, seed=7)
    sim = cd.Simulation(scene, time_step=2e-4, tolerance=2e-3, on_failure="ignore", check=False)
    sim.before_step.append(pour)
    return sim


def _say(what) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(path: str) -> None:
    """Make the steps that are asked for."""
    sim = simulation(path)
    for _ in range(SETTLE):
        sim.step()
    _say("ready")
    for line in sys.stdin:
        before, begin, sweeps = dict(sim.seconds), time.process_time(), 0
        for _ in range(int(line)):
            sweeps += sim.step().report.iterations
        used, stages = time.process_time() - begin, {name: sim.seconds[name] - before[name] for name in before}
        _say({"cpu": used, "sweeps": sweeps} | stages)


if __name__ == "__main__":
    main(sys.argv[1])
