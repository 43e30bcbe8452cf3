"""Small runs that the tests of the views look at, and a twin of how the page opens its boxes."""

import json
import zlib

import numpy as np

import contactdynamics as cd

NAME = "<img src=x onerror=alert(1)>&\"'"  # a material that no page may take for anything but a name


def flat(path, *, until=0.2, recorder=None):
    """Six disks of one radius side by side on a half-plane, and a rectangle."""
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material(NAME, density=600)
    scene.contact(NAME, NAME, friction=0.4)
    scene.add(cd.HalfPlane(normal=(0, 1)), material=NAME, fixed=True)
    for k in range(6):
        scene.add(cd.Disk(0.1), material=NAME, position=(0.4 * k, 0.1), velocity=(0, 0.5 * k))
    scene.add(cd.Rectangle(0.4, 0.3), material=NAME, position=(-0.6, 0.15))
    recorders = [recorder or cd.HDF5(path, every=10)]
    return cd.Simulation(scene, time_step=1e-3, recorders=recorders).run(until=until, progress=False)


def space(path, *, until=0.2):
    """Five spheres of two materials apart from each other, a pair that leans on one another, a cluster, a floor."""
    scene = cd.Scene(gravity=(0, 0, -9.81))
    for name in "mn":
        scene.material(name, density=1000.0)
    for pair in ("mm", "mn", "nn"):
        scene.contact(*pair, friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    for k in range(5):
        scene.add(cd.Sphere(0.1), material="mn"[k % 2], position=(0.4 * k, 0, 0.1), velocity=(0, 0, 0.3 * k))
    scene.add(cd.Cluster([0.05, 0.04], [(0, 0, 0), (0.06, 0, 0)]), material="m", position=(0, 0.6, 0.06))
    return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=10)]).run(until=until, progress=False)


def cell(path, *, until=0.2):
    """Three disks of a heap on a floor, each in another image of a cell of width 1, and one that flies over its border.

    In the cell the heap stands across the border: disks at x = 0.9 and 0.1, one upon them at 0.
    """
    scene = cd.Scene(gravity=(0, -9.81), cell=cd.Cell((1.0, 1.0), periodic=(True, False)))
    scene.material("m", density=600)
    scene.contact("m", "m", friction=0.6)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    for place in ((0.9, 0.1), (3.1, 0.1), (-3.0, 0.1 + 0.1 * 3**0.5)):
        scene.add(cd.Disk(0.1), material="m", position=place)
    scene.add(cd.Disk(0.05), material="m", position=(0.7, 0.7), velocity=(2.5, 1.0))
    return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=20)]).run(until=until, progress=False)


def unbox(data: bytes) -> tuple[dict[str, np.ndarray], dict]:
    """What `packing.box` was given, as the page reads it."""
    data = zlib.decompress(data)
    start = 4 + int.from_bytes(data[:4], "little")
    head, out = json.loads(data[4:start]), {}
    for name, kind, count, wide in head["columns"]:
        raw = np.zeros((count, 4), dtype=np.uint8)
        raw[:, :wide] = np.frombuffer(data, np.uint8, count * wide, start).reshape(wide, count).T
        start += count * wide
        if kind == "f":
            out[name] = raw.view("<f4").ravel()
        else:
            folded = raw.view("<u4").ravel()
            out[name] = (folded >> np.uint32(1)).astype(np.int32) ^ -(folded & np.uint32(1)).astype(np.int32)
    return out, head["about"]
