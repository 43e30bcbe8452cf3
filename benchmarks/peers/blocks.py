"""What the scripts of all peers of blocks share: read the job, step, take times, write what was found.

A job is a JSON file: ``blocks`` (``corners`` (k, 3) in space, ``faces``, ``fixed``), ``friction``, ``density``,
``gravity``, ``step``, ``steps``, ``seconds``, ``options``, ``found`` (where to write).
"""

import json
import time

import numpy as np


def serve(peer, path, version):
    """Do the job: ``peer(job, blocks)`` has ``step()`` and ``positions()`` of all blocks, (N, 3)."""
    with open(path) as file:
        job = json.load(file)
    blocks = [dict(b, corners=np.array(b["corners"], dtype=float)) for b in job["blocks"]]
    code = peer(job, blocks)
    free = ~np.array([b["fixed"] for b in blocks])
    start = before = np.array(code.positions())[free]
    cpu, speed, deadline = [], 0.0, time.perf_counter() + job["seconds"]
    while len(cpu) < job["steps"] and time.perf_counter() < deadline:
        begin = time.process_time()
        code.step()
        cpu.append(time.process_time() - begin)
        now = np.array(code.positions())[free]
        speed, before = float(np.linalg.norm(now - before, axis=1).max()) / job["step"], now
    moved = float(np.linalg.norm(before - start, axis=1).max())
    with open(job["found"], "w") as file:
        json.dump({"version": version, "cpu": cpu, "speed": speed, "moved": moved}, file)


def box(corners):
    """Centre and half edges of a block that is a box along the axes; None where it is none."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    size = float((high - low).max())
    at_ends = np.minimum(np.abs(corners - low), np.abs(corners - high)).max() <= 1e-9 * size
    return (0.5 * (low + high), 0.5 * (high - low)) if at_ends and len(corners) == 8 else None


def middle(block):
    """The centre of mass of a block: tetrahedra from one corner to the triangles of all faces."""
    corners, volume, first = block["corners"], 0.0, np.zeros(3)
    for face in block["faces"]:
        for k in range(1, len(face) - 1):
            a, b, c = corners[[face[0], face[k], face[k + 1]]] - corners[0]
            each = np.dot(a, np.cross(b, c)) / 6
            volume, first = volume + each, first + each * (a + b + c) / 4
    return corners[0] + first / volume
