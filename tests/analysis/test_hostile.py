"""Every analysis, called on frames and with arguments it was not made for: a number, or one sentence with a cure."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis as an

NO_FUNCTIONS_OF_FRAMES = {"Box", "Cylinder", "Under", "Pressure", "reciprocity"}
FUNCTIONS = sorted(set(an.__all__) - NO_FUNCTIONS_OF_FRAMES)


def scene_of(d, *, gravity=9.81, floor=True):
    scene = cd.Scene(gravity=(0,) * (d - 1) + (-gravity,))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    if floor:
        up = (0,) * (d - 1) + (1,)
        scene.add(cd.HalfPlane(up) if d == 2 else cd.Plane(up), material="m", fixed=True)
    return scene


def ball(scene, *place):
    shape = (cd.Disk if scene.dimension == 2 else cd.Sphere)(0.1)
    return scene.add(shape, material="m", position=(place[0], *(0,) * (scene.dimension - 2), place[1]))


def run(scene, until):
    return cd.Simulation(scene, time_step=1e-2, penetration="anticipate").run(until=until, progress=False).frame()


def drum(d):
    """Grains in a ring that turns about a horizontal axis."""
    scene, angle = scene_of(d, floor=False), 2 * np.pi * np.arange(40) / 40
    centres = np.zeros((40, d))
    centres[:, 0], centres[:, -1] = np.cos(angle), np.sin(angle)
    spin = 0.5 if d == 2 else (0, 0.5, 0)
    scene.add(cd.Cluster(np.full(40, 0.1), centres), material="m", motion=cd.Drive(spin=spin))
    for k in range(4):
        ball(scene, -0.3 + 0.2 * k, -0.7)
    return scene


def row(d, **options):
    scene = scene_of(d, **options)
    for k in range(6):
        ball(scene, 0.2 * k, 0.1)
    return scene


def emptied(frame):
    """The frame without any body."""
    names = ("identities", "positions", "rotations", "velocities", "spins", "masses", "kinds", "ball_radii",
             "ball_centres", "ball_bodies", "plane_normals", "plane_points", "materials")  # fmt: skip
    contacts = type(frame.contacts)(*(column[:0] for column in frame.contacts))
    return frame._replace(**{name: getattr(frame, name)[:0] for name in names}, contacts=contacts)


@pytest.fixture(scope="module")
def frames():
    found = {}
    for d in (2, 3):
        flying = scene_of(d)
        ball(flying, 0.0, 5.0)
        alone = scene_of(d)
        ball(alone, 0.0, 0.1)
        found |= {
            f"no contact, {d}D": run(flying, 0.0), f"one grain, {d}D": run(alone, 0.1),
            f"drum, {d}D": run(drum(d), 0.3), f"a row, {d}D": run(row(d), 0.1),
            f"no gravity, {d}D": run(row(d, gravity=0.0), 0.05),
        }  # fmt: skip
        found[f"empty, {d}D"] = emptied(found[f"a row, {d}D"])
        bare = found[f"a row, {d}D"]
        found[f"no laws, {d}D"] = bare._replace(laws=(), law_index=np.zeros((0, 0), dtype=int))
    blocks = scene_of(2)
    for k in range(3):
        blocks.add(cd.Rectangle(1, 0.2), material="m", position=(0, 0.1 + 0.2 * k))
    return found | {"blocks": run(blocks, 0.05), "cell, 2D": crowded_cell()}


def crowded_cell():
    """Disks that touch and run into each other in a periodic cell."""
    rng, scene = np.random.default_rng(1), cd.Scene(gravity=(0, 0), cell=cd.Cell((1.0, 1.0)))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    for k in range(25):
        place = 0.1 + 0.2 * np.array(divmod(k, 5))
        scene.add(cd.Disk(0.1), material="m", position=place, velocity=rng.normal(size=2))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    return sim.frame()


def arguments(name, d):
    """What a user may give, right and wrong."""
    far, other = an.Box((90,) * d, (91,) * d), an.Box((-1,) * (5 - d), (1,) * (5 - d))
    regions = [an.Box((-1,) * d, (1,) * d), far, other, an.Cylinder(1.0, 0.0, 1.0), an.Box((0,) * d, (0,) * d), "box"]
    if name in ("stress", "packing_fraction", "volume_mass"):
        return [{"region": region} for region in regions] + [{"region": regions[0], "meridian": True}] * (
            name == "stress"
        )
    if name in ("directions", "fabric"):
        return [{}, {"meridian": True}, {"meridian": True, "axis": (0.0,)}, *({"region": region} for region in regions)]
    if name in ("force_chains", "normal_forces", "coordination", "mobilised_friction"):
        return [{}, *({"region": region} for region in regions)]
    return {
        "stress_map": [
            {"cell": cell, "reach": reach, "low": low, "high": 1.0}
            for cell, reach, low in ((0.2, 1.0, 0.0), (-0.2, 1.0, 0.0), (0.2, 0.0, 0.0), (0.2, 1.0, 2.0))
        ],
        "strip": [{"segment": s} for s in (((0, 0.05), (1, 0.05)), ((0, 0), (0, 1)), ((0, 0), (0, 0)), (0, 1), "x")],
        "ground_pressure": [{"width": 0.2}, {"width": 0}, {"width": 0.2, "reach": -1.0}, {"width": 0.2, "axis": "x"}],
        "thrust_line": [{"chain": [0, 1]}, {"chain": []}, {"chain": "x"}, {"chain": [[0, 1]]}],
        "largest_push": [{"body": 0}, {}, {"body": 77}, {"body": 0, "friction": "much"}],
        "balance": [{}, {"friction": 0.3}, {"friction": [0.1, 0.2]}, {"friction": -1}],
        "slope": [{}, {"axis": (0.0,) * (d - 1)}, {"axis": (0.0,) * (4 - d)}, {"share": (0.8, 0.2)}, {"sectors": 0}],
        "load_factor": [{"direction": (1.0,) + (0.0,) * (d - 1)}, {"direction": (0.0,) * d}, {"direction": "x"}],
        "interior": [{}, {"axis": (0.0,) * (4 - d)}, {"margin": 0.01}],
        "surface": [{}, {"spacing": 0.02}, {"spacing": 0.0}, {"ignore": [0]}],
    }.get(name, [{}])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_or_a_sentence(name, frames):
    answers = 0
    for label, frame in frames.items():
        for options in arguments(name, frame.dimension):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    given = {"dilation": [[frame] * 2], "joint_openings": [frame, frame]}.get(name, [frame])
                    answer = getattr(an, name)(*given, **options)
                    if hasattr(answer, "plot"):
                        answer.plot()
                except cd.InputError as error:
                    assert str(error).endswith(".") and "; " in str(error), (label, options)  # and the cure
                except Exception as error:  # so that the frame and the arguments are told
                    raise AssertionError(f"{name} of {label} with {options}: {error!r}") from error
                else:
                    answers += 1
        plt.close("all")
    assert answers  # not all of them are refused


def test_the_sentence_on_a_drum_and_its_cure(frames):
    with pytest.raises(cd.InputError, match=r"drum.*ignore"):
        an.slope(frames["drum, 2D"])
    seen = an.surface(frames["drum, 2D"], ignore=[0])
    assert seen.covered.any() and -1 < seen.height[seen.covered].max() < 0


def test_force_chains_do_not_meet_in_the_centre_of_a_drum(frames):
    for d in (2, 3):
        frame = frames[f"drum, {d}D"]
        chains = an.force_chains(frame)
        assert len(chains.forces) and np.sqrt((chains.segments**2).sum(axis=2)).min() > 0.5


def test_a_region_of_ones_own_needs_only_to_contain_points(frames):
    class Left:
        def contains(self, points):
            return points[:, 0] < 0.3

    for d in (2, 3):
        frame = frames[f"a row, {d}D"]
        assert len(an.coordination(frame, Left()).counts) == 2
        assert 0 < len(an.force_chains(frame, Left()).forces) < len(an.force_chains(frame).forces)
