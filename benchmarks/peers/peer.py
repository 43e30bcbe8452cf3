"""What the scripts of all peers share: read the job, step, take times, write what was found (README.md: the format)."""

import json
import time

import numpy as np


def serve(peer, path, **about):
    """Do the job in the file ``path``.

    ``peer(scene, state, options)`` starts from a state; it has ``step()`` for one step of the scene, ``report()`` with
    counts of the last step, ``positions()`` and ``velocities()``. The first step of a part is done but not timed: it
    makes all contacts at once.
    """
    with open(path) as file:
        job = json.load(file)
    scene, states = load(job["scene"]), load(job["states"])
    found, arrays = dict(about, parts=[]), {}
    for number, (begin, steps) in enumerate(job["parts"]):
        names = ("positions", "velocities", "spins")
        code = peer(scene, {name: states[f"{name}_{begin}"] for name in names}, job["options"])
        code.step()
        cpu, reports, track = [], [], [code.positions()]
        deadline = time.perf_counter() + job["seconds"]
        while len(cpu) < steps and time.perf_counter() < deadline:
            start = time.process_time()
            code.step()
            cpu.append(time.process_time() - start)
            reports.append(code.report())
            track.append(code.positions())
        found["parts"].append({"begin": begin, "cpu": cpu, "reports": reports})
        arrays[f"track_{number}"], arrays[f"velocities_{number}"] = np.array(track), code.velocities()
    np.savez(job["arrays"], **arrays)
    with open(job["found"], "w") as file:
        json.dump(found, file)


def load(path):
    """The arrays of an npz file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}
