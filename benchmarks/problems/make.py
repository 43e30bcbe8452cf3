"""Makes the contact problems of this folder: `python benchmarks/problems/make.py [NAME ...]`, all in some minutes.

Each is one step of a scene of this package (one, the frame of boxes in 3D, is written out as bodies), small, and hard
for a reason that its description says. `cdyn bench solvers` solves them with all solvers.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import contactdynamics as cd
from contactdynamics.experiments import _bridge, bridge
from contactdynamics.rigid.hardest import NAME

HERE = Path(__file__).parent


def stone(gravity=(0.0, -9.81), friction=0.6):
    """An empty scene of stones."""
    scene = cd.Scene(gravity=gravity)
    scene.material("stone", density=2400.0)
    scene.contact("stone", "stone", friction=friction)
    return scene


def at_rest(scene, step=1e-3, slack=1e-6):
    """The step from rest that asks whether a structure stands."""
    return cd.Simulation(scene, time_step=step).contact_problem(from_rest=True, slack=slack)


def arch():
    """A semicircular arch of 100 voussoirs, 1 % thicker than the least thickness: the line of thrust just fits in."""
    scene = stone(friction=0.7)
    cd.packings.arch(scene, material="stone", span=10.0, thickness=1.01 * 0.1075 * 5, voussoirs=100)
    return {"arch-near-collapse": at_rest(scene)}


def bridges():
    """The stone bridge pushed down at its crown: two steps with the largest residuals, at least 50 steps apart."""
    found = {}
    for friction in (0.6, 0.3):
        pushed = _bridge.bridge(bridge.PARAMETERS, friction)
        with tempfile.TemporaryDirectory() as scratch:
            sim = cd.Simulation(pushed.scene, time_step=2e-3, tolerance=1e-6, on_failure="ignore", solver="accelerated",
                                save_problems=Path(scratch) / "hard")  # fmt: skip
            sim.run(until=3.0, progress=False)
            steps = {int(NAME.fullmatch(p.name)[1]): p for p in (Path(scratch) / "hard").iterdir()}
            order = sorted(steps, key=lambda k: -float(steps[k].stem.rpartition("residual-")[2]))
            apart = [k for k in order if abs(k - order[0]) >= 50]
            for k in [order[0], *apart[:1]]:
                found[f"bridge-{friction:g}-step-{k}"] = cd.read_problem(steps[k])
    return found


def wall():
    """A wall of 12 courses with a window, its ground tilted to nine tenths of the angle at which it slides."""
    angle = np.arctan(0.9 * 0.5)
    scene = stone((9.81 * np.sin(angle), -9.81 * np.cos(angle)), friction=0.5)
    cd.packings.wall(scene, material="stone", length=4.0, courses=12, block=(0.4, 0.2), openings=[(1.6, 0.8, 2.4, 1.6)])
    scene.add(cd.HalfPlane(normal=(0, 1)), material="stone", fixed=True)
    return {"wall-tilted": at_rest(scene)}


def jammed():
    """Disks of several sizes settled in a box, as wedged as they came to rest: many forces, few freedoms."""
    scene = stone(friction=0.8)
    cd.packings.box(scene, material="stone", low=(0, 0), high=(1.0, 1.0))
    sizes = cd.packings.Sieve.uniform(0.05, 0.09)
    cd.packings.rain(scene, material="stone", sizes=sizes, count=110, low=(0, 0.02), high=(1.0, 1.9), seed=3)
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-4, penetration="anticipate", on_failure="ignore")
    sim.run(until=1.5, progress=False)
    return {"packing-jammed": sim.contact_problem(from_rest=True, slack=1e-3)}


def chain():
    """A column of 25 balls whose masses grow from 1 at the floor to a million at the top."""
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("ball", density=1.0)
    scene.contact("ball", "ball", friction=0.3)
    scene.add(cd.Plane(normal=(0, 0, 1)), material="ball", fixed=True)
    for k in range(25):
        scene.add(cd.Sphere(0.5), material="ball", position=(0, 0, k + 0.5), mass=10.0 ** (k / 4))
    return {"chain-of-masses": at_rest(scene, step=1e-2)}


def heap():
    """150 spheres in a box, while they come to rest: the everyday problem, for which sweeps are made."""
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("grain", density=2500.0)
    scene.contact("grain", "grain", friction=0.4)
    cd.packings.box(scene, material="grain", low=(0, 0, 0), high=(0.6, 0.6, 2.0))
    cd.packings.rain(scene, material="grain", sizes=cd.packings.Sieve.uniform(0.08, 0.12), count=150, low=(0, 0, 0.02),
                     high=(0.6, 0.6, 1.9), seed=5)  # fmt: skip
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-4, penetration="anticipate", on_failure="ignore")
    sim.run(until=0.8, progress=False)
    return {"heap-of-balls": sim.contact_problem()}


def frame():
    """A frame of boxes in 3D, three storeys of posts and beams, four contacts in each joint, pushed to the side.

    Every joint has twelve unknowns for six freedoms.
    """
    posts, beams, h, gravity, density = [], [], 1e-3, 9.81, 2400.0
    for storey in range(3):
        for x in (-1.0, 1.0):
            posts.append(((x, 0.0, 1.2 * storey + 0.5), (0.3, 0.3, 1.0)))
        beams.append(((0.0, 0.0, 1.2 * storey + 1.1), (2.4, 0.3, 0.2)))
    boxes = posts + beams
    mass, free = np.zeros((6 * len(boxes),) * 2), np.zeros(6 * len(boxes))
    for k, (_, (a, b, c)) in enumerate(boxes):
        weight = density * a * b * c
        inertia = weight / 12 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        mass[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = np.diag([weight] * 3 + inertia.tolist())
        free[6 * k : 6 * k + 3] = h * gravity * np.array([0.12, 0.0, -1.0])
    rows = []
    for storey in range(3):
        for side in (0, 1):
            post = 2 * storey + side
            below = None if storey == 0 else len(posts) + storey - 1
            centre, size = boxes[post]
            for low, high, z in ((below, post, centre[2] - 0.5), (post, len(posts) + storey, centre[2] + 0.5)):
                for dx in (-0.5, 0.5):
                    for dy in (-0.5, 0.5):
                        point = np.array([centre[0] + dx * size[0], dy * size[1], z])
                        rows += joint(boxes, low, high, point)
    jacobian = np.array(rows)
    bodies = cd.BodyForm(mass, jacobian, free, np.zeros((len(jacobian) // 3, 3)))
    return {"frame-of-boxes": cd.ContactProblem.of_bodies(bodies, np.full((len(jacobian) // 3, 2), 0.5))}


def joint(boxes, low, high, point):
    """Rows n, t1, t2 of a contact at ``point``, its normal up from the box ``low`` (None: ground) to ``high``."""
    rows = []
    for axis in np.eye(3)[[2, 0, 1]]:
        row = np.zeros(6 * len(boxes))
        for box, sign in ((low, -1.0), (high, 1.0)):
            if box is not None:
                arm = point - np.array(boxes[box][0])
                row[6 * box : 6 * box + 6] += sign * np.concatenate([axis, np.cross(arm, axis)])
        rows.append(row)
    return rows


MAKERS = {f.__name__: f for f in (arch, bridges, wall, jammed, chain, heap, frame)}


def main(names):
    """Make the problems of these makers, or all."""
    for name in names or MAKERS:
        made = MAKERS[name]()
        for file, problem in made.items():
            said = " ".join(MAKERS[name].__doc__.split())
            with tempfile.TemporaryDirectory() as scratch:
                cd.write_problem(problem, Path(scratch) / "new.hdf5", description=said)
                shutil.move(Path(scratch) / "new.hdf5", HERE / f"{file}.hdf5")
            size = (HERE / f"{file}.hdf5").stat().st_size
            print(f"{file:<24}{problem.contacts:>6} contacts, {problem.components}D, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
