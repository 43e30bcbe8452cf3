"""Wrong calls from a program: every public door answers in one sentence, never with an error from inside."""

import contextlib
import re
import tempfile
import types
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics import errors
from contactdynamics.cli import main


def scene(dimension=2):
    """A disk or a ball on the ground."""
    made = cd.Scene(gravity=(0, -9.81) if dimension == 2 else (0, 0, -9.81))
    made.material("wood", density=600)
    made.contact("wood", "wood", friction=0.4)
    wall, ball = (cd.HalfPlane((0, 1)), cd.Disk(0.1)) if dimension == 2 else (cd.Plane((0, 0, 1)), cd.Sphere(0.1))
    made.add(wall, material="wood", fixed=True)
    made.add(ball, material="wood", position=(0, 0.1) if dimension == 2 else (0, 0, 0.1))
    return made


def simulation(dimension=2):
    return cd.Simulation(scene(dimension), time_step=1e-3).run(until=0.01, progress=False)


def floor():
    return cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=0.3))


def system():
    return cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -10.0), constraints=floor())


def problem():
    return cd.contact_problem(system(), system().start((0, -1e-9), (1, 0)), 1e-3)


# ---- sentences -------------------------------------------------------------------------------------------------------


def test_numbers_of_numpy_are_shown_plainly():
    values = [np.float64(-1.0), np.int64(3), np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("a")]
    assert str(cd.InputError(f"got {values!r}.")) == "got [-1.0, 3, 0.5, nan, True, 'a']."
    assert str(cd.InputError(f"got {np.eye(2)!r}.")).count("\n") == 0
    with pytest.raises(cd.InputError, match=r"radius=-1\.0; give"):
        cd.Disk(np.float64(-1.0))


def test_one_recorder_and_one_function_are_lists_of_one(tmp_path):
    sim = cd.Simulation(scene(), time_step=1e-3, recorders=cd.HDF5(tmp_path / "run.h5"))
    seen = []
    sim.before_step = lambda simulation: seen.append(simulation.steps)
    sim.run(until=0.003, progress=False)
    assert seen == [0, 1, 2] and isinstance(sim.before_step, list)
    stated = cd.Simulation(scene(), time_step=1e-3, before_step=lambda simulation: seen.append("stated"))
    stated.step()
    assert seen[3:] == ["stated"]
    with cd.open(tmp_path / "run.h5") as recording:
        assert len(recording) == 4
    one, many = system(), cd.System(inertia=[1.0, 1.0], constraints=[floor()])
    assert len(one.constraints) == len(many.constraints) == 1


@pytest.mark.parametrize("call, words", [
    (lambda: cd.Simulation(scene(), time_step=1e-3, recorders="run.h5"), r"recorder 'run.h5'; give one such as HDF5"),
    (lambda: cd.Simulation(scene(), time_step=1e-3, recorders=3), "the recorder 3"),
    (lambda: setattr(simulation(), "before_step", 3), r"give a function of \(simulation\)"),
    (lambda: setattr(simulation(), "before_step", [lambda: 1]), r"<lambda>\(\), which is called with \(simulation\)"),
    (lambda: cd.System(inertia=[1.0], constraints="stop"), "the constraint 'stop'; give Constraint"),
    (lambda: cd.System(inertia=[1.0], constraints=3), "the constraint 3"),
    (lambda: cd.Constraint(lambda q: q[0]), r"gap=<lambda>\(q\), which is called with \(t, q\); write .*lambda t, q:"),
    (lambda: cd.Constraint(lambda t, q: 1, gradient=lambda q: q), r"gradient=<lambda>\(q\)"),
    (lambda: cd.System(inertia=[1.0], force=lambda t: 1), r"force=<lambda>\(t\), .* \(t, q, u\)"),
    (lambda: cd.System(inertia=[1.0], potential=lambda t: 1), r"potential=<lambda>\(t\)"),
    (lambda: cd.System(inertia=[1.0], kinematics=lambda t: 1), r"kinematics=<lambda>\(t\)"),
    (lambda: cd.System(inertia=lambda t: 1), r"inertia=<lambda>\(t\)"),
    (lambda: cd.solve("x"), "solve got 'x'; give a ContactProblem"),
    (lambda: cd.integrate("x", q=(0,), u=(0,), step=1, until=2), "integrate got 'x'; give a System"),
    (lambda: cd.integrate(system(), q=(0, 1), u=(0, 0), step=1e-3, until=1e300), "1e.303 steps"),
    (lambda: simulation().run(until=1e300), "steps of 0.001, too many"),
    (lambda: cd.Scene(gravity=(0, -1)).force(0, (1, 0)), "no body 0; add bodies first"),
    (lambda: scene().force(7, (1, 0)), "no body 7; .* 0 to 1"),
    (lambda: scene().force("ball", (1, 0)), "no body 'ball'"),
    (lambda: cd.Simulation(scene(), time_step=1e-3, before_step=3), r"before_step got .* give a function"),
    (lambda: cd.Simulation(scene(), time_step=1e-3, tolerence=1), "unknown option tolerence; did you mean tolerance?"),
    (lambda: cd.Simulation(scene()), "Simulation: missing a required .*'time_step'; it takes scene, time_step, "),
    (lambda: scene().add(cd.Disk(1), material="wood", pos=(0, 0)), "add got the unknown option pos; did you mean pos"),
    (lambda: scene().add_many([1.0], material="wood", places=0), "add_many got the unknown option places; it takes"),
    (lambda: cd.Disk(radii=1.0), "Disk got the unknown option radii; did you mean radius"),
    (lambda: cd.Disk(), "Disk: missing a required argument: 'radius'; it takes radius"),
    (lambda: cd.Plane(normals=(0, 0, 1)), "Plane got the unknown option normals"),
    (lambda: cd.HDF5("run.h5", evry=1), "HDF5 got the unknown option evry; did you mean every"),
    (lambda: cd.Cell((1, 1), rates=1), "Cell got the unknown option rates; did you mean rate"),
    (lambda: cd.System(inertia=[1.0], forces=1), "System got the unknown option forces; did you mean force"),
    (lambda: cd.loads.sine((0, 1), freq=1.0), "sine got the unknown option freq; did you mean frequency"),
    (lambda: cd.packings.rain(scene(), counts=3), "rain got the unknown option counts; did you mean count"),
    (lambda: cd.packings.Pour(scene(), coun=3), "Pour got the unknown option coun; did you mean count"),
    (lambda: cd.Law(fricton=0.3), "Law got the unknown option fricton; did you mean friction"),
    (lambda: cd.Law(0.3), "Law: too many positional arguments; it takes friction, static_friction"),
    (lambda: cd.Polygon(corners=[(0, 0)]), "Polygon got the unknown option corners; it takes vertices"),
    (lambda: cd.Polyhedron.prism([(0, 0)], heigth=1), "Polyhedron.prism got the unknown option heigth; did you mean h"),
    (lambda: cd.integrate(system(), q=(0, 1), u=(0, 0), until=1), "integrate: missing a required argument: 'step'; it"),
    (lambda: cd.Drive(speed=1), "Drive got the unknown option speed; it takes velocity, spin"),
    (lambda: simulation().run(untill=1), "run got the unknown option untill; did you mean until"),
    (lambda: cd.solve(problem(), tol=1), "solve got the unknown option tol; did you mean tolerance"),
])  # fmt: skip
def test_sentences(call, words):
    with pytest.raises(cd.InputError, match=words) as told:
        call()
    assert "\n" not in str(told.value) and "0 to -1" not in str(told.value)


def test_an_error_within_a_right_call_stays_what_it_is():
    @errors.explained
    def call(a, b=1):
        return a + "word"

    assert call("x") == "xword"
    with pytest.raises(TypeError, match="unsupported operand"):
        call(3, b=2)
    with pytest.raises(TypeError, match="call got the unknown option c"):  # of Python's kind as well
        call(3, c=2)


def test_a_function_that_does_not_tell_what_it_takes_is_taken():
    errors.check_function("f", max, "a", "b")
    errors.check_function("f", lambda *values: 1, "a", "b")
    errors.check_function("f", None, "a", optional=True)


@pytest.mark.parametrize("dimension, count", [(2, 200), (2, 10_000_000), (3, 400)])
def test_rain_advises_a_number_that_fits(dimension, count):
    where = {"low": np.zeros(dimension), "high": np.ones(dimension)}
    grains = {"material": "wood", "sizes": (0.08, 0.16), "seed": 1}
    with pytest.raises(cd.InputError, match=f"no room for {count}") as told:
        cd.packings.rain(scene(dimension), count=count, **where, **grains)
    advised = int(re.search(r"ask for (\d+)", str(told.value))[1])
    assert len(cd.packings.rain(scene(dimension), count=advised, **where, **grains)) == advised > 10
    with pytest.raises(cd.InputError, match="wider than the box"):
        cd.packings.rain(scene(dimension), count=1, **where, **(grains | {"sizes": 2.0}))


def test_plot_into_an_unknown_kind_of_picture(tmp_path, capsys):
    cd.Simulation(scene(), time_step=1e-3, recorders=cd.HDF5(tmp_path / "run.h5")).run(until=0.01, progress=False)
    for name in ("x.xyz", "x"):
        with pytest.raises(SystemExit) as end:
            main(["plot", str(tmp_path / "run.h5"), "--out", str(tmp_path / name)])
        told = capsys.readouterr().err
        assert end.value.code == 2 and ".png" in told and told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


# ---- any public door, any argument -----------------------------------------------------------------------------------


def ground(t, q):
    return q[1]


def frame(dimension=2):
    return simulation(dimension).frame()


def door(function, /, **arguments):
    return function, arguments


def in_a_cell(**options):
    """A simulation of one disk in a cell."""
    made = cd.Scene(gravity=(0, 0), cell=cd.Cell(**options))
    made.material("wood", density=600, friction=0.4)
    made.add(cd.Disk(0.1), material="wood", position=(0.5, 0.5))
    return cd.Simulation(made, time_step=1e-3)


def poured(shape):
    """What makes grains of a pour."""
    return lambda **options: cd.packings.Pour(
        scene(2 if shape is cd.packings.Irregular else 3), material="wood", sizes=0.1, rate=10.0, count=3, radius=0.1,
        seed=1, shape=shape(**options),
    )  # fmt: skip


def blocks():
    """Two boxes on a ground."""
    made = scene(3)
    for k in range(2):
        made.add(cd.Box((1, 1, 1)), material="wood", position=(5, 0, 0.5 + k))
    return made


DOORS = {
    "Box": lambda: door(cd.Box, size=(1, 2, 3)),
    "Cell": lambda: door(in_a_cell, vectors=(1.0, 1.0), periodic=True, rate=None, stress=None, mass=None),
    "Cell, stress": lambda: door(in_a_cell, vectors=(1.0, 1.0), stress=500.0, mass=1.0),
    "Polyhedron": lambda: door(cd.Polyhedron, points=[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    "Polyhedron.irregular": lambda: door(
        cd.Polyhedron.irregular, radius=1.0, corners=(8, 16), spread=0.5, elongation=1.0, seed=1
    ),
    "Polyhedron.prism": lambda: door(cd.Polyhedron.prism, outline=[(0, 0), (1, 0), (0, 1)], height=1.0),
    "Polyhedron.read": lambda: door(cd.Polyhedron.read, path="nowhere.obj", scale=1.0, repair=False),
    "Polyhedron.regular": lambda: door(cd.Polyhedron.regular, faces=8, radius=1.0),
    "Polyhedron.wedge": lambda: door(cd.Polyhedron.wedge, size=(3, 2, 1)),
    "Pressure": lambda: door(cd.Pressure, wall=0, pressure=100.0, area=1.0, direction=None),
    "Scene.from_compas": lambda: door(cd.Scene.from_compas, source="nowhere.json", friction=0.5, scale=1.0),
    "Scene.joint": lambda: door(blocks().joint, first=2, second=3, friction=0.3, cohesion=10.0),
    "Table": lambda: door(cd.Table, path="run.csv", every=0.1, columns=None),
    "loads.tilting": lambda: door(cd.loads.tilting, gravity=(0, 0, -9.81), angle=0.1, axis=(1, 0, 0)),
    "packings.Irregular": lambda: door(poured(cd.packings.Irregular), sides=(5, 9), spread=0.5, elongation=1.0),
    "packings.Outlet": lambda: door(cd.packings.Outlet, position=(0, -1), normal=(0, 1), low=None, high=None),
    "packings.Rocks": lambda: door(poured(cd.packings.Rocks), corners=(8, 16), spread=0.5, elongation=1.0),
    "packings.blocks": lambda: door(cd.packings.blocks, scene=scene(3), path="nowhere.obj", material="wood", scale=1.0),
    "packings.dome": lambda: door(
        cd.packings.dome, scene=scene(3), material="wood", radius=2.0, thickness=0.3, rings=3, segments=8, angle=80.0
    ),
    "packings.house": lambda: door(
        cd.packings.house, scene=scene(3), material="wood", size=(2.0, 1.6), courses=2, block=(0.4, 0.2)
    ),
    "packings.random": lambda: door(
        cd.packings.random, cell=cd.Cell((1.0, 1.0)), sizes=0.1, fraction=0.3, count=None, seed=1
    ),
    "packings.stairs": lambda: door(
        cd.packings.stairs, scene=scene(3), material="wood", steps=3, tread=0.3, riser=0.2, width=1.0
    ),
    "packings.vault": lambda: door(
        cd.packings.vault, scene=scene(3), material="wood", span=2.0, thickness=0.2, voussoirs=7, length=1.0, rows=2
    ),
    "penalty.damping_ratio": lambda: door(cd.penalty.damping_ratio, restitution=0.5),
    "sets.Intersection": lambda: door(
        lambda one, two: cd.sets.Intersection(one, two).project(0.0, (3, 0)), one=cd.sets.Ball((0, 0), 1.0),
        two=cd.sets.HalfSpace((0, 1), 0.0),
    ),
    "sets.Moved": lambda: door(cd.sets.Moved, set=cd.sets.Ball((0, 0), 1.0), shift=lambda t: (t, 0.0), rotation=None),
    "sets.Polyhedron": lambda: door(cd.sets.Polyhedron, normals=[(1, 0), (0, 1)], offsets=[0.0, 1.0]),
    "sets.Region": lambda: door(cd.sets.Region, function=lambda t, x: x[0], gradient=lambda t, x: (1.0, 0.0)),
    "BodyForm": lambda: door(
        lambda **options: cd.ContactProblem.of_bodies(cd.BodyForm(**options), friction=[[0.5, 0.5]]),
        mass=np.eye(2), jacobian=np.eye(2), free=[-1.0, 0.3], drift=[[0.0, 0.0]], momentum=None,
    ),
    "Cluster": lambda: door(cd.Cluster, radii=[0.1, 0.1], centres=[[0, 0], [0.1, 0]]),
    "Constraint": lambda: door(
        cd.Constraint, gap=ground, gradient=ground, contact_map=ground, boundary=ground, law=cd.Law(), name="floor"
    ),
    "ContactProblem": lambda: door(
        lambda **options: cd.solve(cd.ContactProblem(**options)),
        delassus=np.eye(2), velocity=[[-1.0, 0.3]], friction=[[0.5, 0.5]], gap=[0.0], bodies=None,
    ),
    "Disk": lambda: door(cd.Disk, radius=0.1),
    "Drive": lambda: door(
        lambda **options: scene().add(cd.Disk(0.1), material="wood", motion=cd.Drive(**options)),
        velocity=(1, 0), spin=0,
    ),
    "HDF5": lambda: door(cd.HDF5, path="run.h5", every=0.1),
    "HalfPlane": lambda: door(cd.HalfPlane, normal=(0, 1)),
    "InputError": lambda: door(cd.InputError, message="wrong"),
    "Law": lambda: door(
        cd.Law, friction=0.3, static_friction=0.4, two_sided=None, anisotropic=None, restitution=0.5,
        tangential_restitution=0.1, rolling=0.0, spinning=0.0, cohesion=0.0, tension=0.0,
    ),
    "Plane": lambda: door(cd.Plane, normal=(0, 0, 1)),
    "Polygon": lambda: door(cd.Polygon, vertices=[[0, 0], [1, 0], [0, 1]]),
    "Polygon.irregular": lambda: door(
        cd.Polygon.irregular, radius=1.0, sides=(5, 9), spread=0.5, elongation=1.0, seed=1
    ),
    "Polygon.regular": lambda: door(cd.Polygon.regular, sides=5, radius=1.0),
    "Rectangle": lambda: door(cd.Rectangle, width=1.0, height=2.0),
    "Scene": lambda: door(cd.Scene, gravity=(0, -9.81)),
    "Scene.add": lambda: door(
        scene().add, shape=cd.Disk(0.1), material="wood", position=(0, 1), velocity=(0, 0), spin=0.0, rotation=0.0,
        fixed=False, motion=None, mass=1.0, inertia=1.0,
    ),
    "Scene.add, 3D": lambda: door(
        scene(3).add, shape=cd.Sphere(0.1), material="wood", position=(0, 0, 1), velocity=(0, 0, 0), spin=(0, 0, 0),
        rotation=(1, 0, 0, 0), fixed=False, motion=None, mass=1.0, inertia=(1, 1, 1),
    ),
    "Scene.add_many": lambda: door(
        scene().add_many, shapes=[0.1, 0.1], material="wood", position=[[0, 1], [0, 2]], velocity=(0, 0), spin=0.0,
        fixed=False,
    ),
    "Scene.contact": lambda: door(scene().contact, a="wood", b="wood", axis=None, friction=0.3, restitution=0.1),
    "Scene.force": lambda: door(scene().force, body=1, force=(1, 0), torque=0.1),
    "Scene.material": lambda: door(scene().material, name="iron", density=7800, friction=0.2),
    "Scene.spring": lambda: door(
        scene().spring, first=1, second=None, stiffness=1.0, damping=0.1, length=0.1, anchor=(0, 0), other=(0, 1)
    ),
    "Simulation": lambda: door(
        cd.Simulation, scene=scene(), time_step=1e-3, tolerance=1e-3, max_iterations=100, solver="nlgs", threads=1,
        penetration="moreau", recovery=0.1, on_failure="warn", repair=False, recorders=(), save_problems=None, about={},
        check=True,
    ),
    "Simulation.from_file": lambda: door(cd.Simulation.from_file, path="nowhere.h5"),
    "Simulation.is_equilibrium": lambda: door(
        simulation().is_equilibrium, tolerance=1e-8, limit=1e-3, max_iterations=100
    ),
    "Simulation.remove": lambda: door(simulation().remove, numbers=[0]),
    "Simulation.restore": lambda: door(simulation().restore, path="nowhere.h5"),
    "Simulation.run": lambda: door(simulation().run, until=0.02, progress=False),
    "Sphere": lambda: door(cd.Sphere, radius=0.1),
    "System": lambda: door(
        cd.System, inertia=[1.0, 1.0], force=None, constraints=(), kinematics=None, potential=None,
        stiffness=[1.0, 1.0], damping=[1.0, 1.0], rest=[0.0, 0.0],
    ),
    "contact_problem": lambda: door(
        cd.contact_problem, system=system(), state=system().start((0, 0), (1, 0)), step=1e-3
    ),
    "elastic.bar": lambda: door(cd.elastic.bar, length=1.0, mass=1.0, wave_speed=1.0, elements=4),
    "elastic.beam": lambda: door(cd.elastic.beam, length=1.0, mass=1.0, bending=1.0, elements=4),
    "elastic.impacting_bar": lambda: door(
        cd.elastic.impacting_bar, height=[0.1, 0.2], time=0.1, length=1.0, wave_speed=1.0, speed=1.0
    ),
    "elastic.modes": lambda: door(cd.elastic.modes, inertia=np.eye(3), stiffness=np.eye(3), count=2),
    "events.integrate": lambda: door(
        cd.events.integrate, system=system(), q=(0, 0.1), u=(0, 0), until=0.1, tolerance=1e-6
    ),
    "explore_forces": lambda: door(
        cd.explore_forces, problem=problem(), samples=3, seed=1, vary="order", tolerance=1e-6, max_iterations=100
    ),
    "friction_surface": lambda: door(cd.friction_surface, system=system(), q=(0, 0), constraint=0, time=0.0),
    "integrate": lambda: door(
        cd.integrate, system=system(), q=(0, 0.1), u=(0, 0), step=1e-2, until=0.1, time=0.0, scheme="midpoint",
        start=None, on_failure="warn", tolerance=1e-8, max_iterations=100,
    ),
    "integrate, elast": lambda: door(
        cd.integrate, system=cd.System(inertia=[1.0, 1.0], constraints=cd.Constraint(ground)), q=(0, 0.1), u=(0, 0),
        step=1e-2, until=0.1, scheme="elast", anticipation=0.5,
    ),
    "loads.constant": lambda: door(cd.loads.constant, value=1.0),
    "loads.ramp": lambda: door(cd.loads.ramp, start=(0, 0), end=(1, 0), begin=0.0, finish=1.0),
    "loads.read_table": lambda: door(cd.loads.read_table, path="nowhere.txt"),
    "loads.shaking": lambda: door(
        cd.loads.shaking, times=[0.0, 0.1, 0.2], accelerations=[0.0, 1.0, 0.0], direction=(1.0, 0.0)
    ),
    "loads.sine": lambda: door(cd.loads.sine, amplitude=(1, 0), frequency=1.0, phase=0.0, offset=(0, 0)),
    "loads.table": lambda: door(cd.loads.table, times=[0.0, 1.0], values=[0.0, 1.0]),
    "open": lambda: door(cd.open, path="nowhere.h5"),
    "packings.Pour": lambda: door(
        cd.packings.Pour, scene=scene(), material="wood", sizes=0.1, rate=10.0, count=3, radius=0.1, seed=1, axis=(0,),
        from_above=False, shape=None,
    ),
    "packings.Sieve": lambda: door(cd.packings.Sieve, diameters=[0.1, 0.2], passing=[0.0, 1.0], by="mass"),
    "packings.arch": lambda: door(
        cd.packings.arch, scene=scene(), material="wood", span=2.0, rise=1.0, thickness=0.2, voussoirs=8
    ),
    "packings.box": lambda: door(cd.packings.box, scene=scene(), material="wood", low=(0, 0), high=(1, 1), lid=False),
    "packings.column": lambda: door(
        cd.packings.column, scene=scene(), material="wood", drums=3, width=1.0, height=0.2
    ),
    "packings.lattice": lambda: door(
        cd.packings.lattice, scene=scene(), material="wood", sizes=0.1, counts=(2, 2), origin=(0, 1), spacing=0.2,
        dense=True, seed=1,
    ),
    "packings.passing": lambda: door(cd.packings.passing, diameters=[0.1, 0.2], sieves=[0.15], by="mass"),
    "packings.pavement": lambda: door(
        cd.packings.pavement, scene=scene(), material="wood", sizes=0.1, extent=1.0, seed=1, level=0.0, cover=0.9
    ),
    "packings.rain": lambda: door(
        cd.packings.rain, scene=scene(), material="wood", sizes=0.1, count=3, low=(0, 1), high=(1, 2), seed=1
    ),
    "packings.wall": lambda: door(
        cd.packings.wall, scene=scene(), material="wood", length=2.0, courses=2, block=(0.5, 0.2)
    ),
    "penalty.integrate": lambda: door(
        cd.penalty.integrate, system=system(), q=(0, 0.1), u=(0, 0), until=0.1, overlap=1e-2, speed=1.0
    ),
    "read_problem": lambda: door(cd.read_problem, path="nowhere.hdf5"),
    "read_solution": lambda: door(cd.read_solution, path="nowhere.hdf5"),
    "sets.Ball": lambda: door(cd.sets.Ball, centre=(0, 0), radius=1.0),
    "sets.Box": lambda: door(cd.sets.Box, lower=(0, 0), upper=(1, 1)),
    "sets.HalfSpace": lambda: door(cd.sets.HalfSpace, normal=(0, 1), offset=0.0),
    "sets.Ball.project": lambda: door(cd.sets.Ball((0, 0), 1.0).project, t=0.0, x=(2, 0)),
    "solve": lambda: door(
        cd.solve, problem=problem(), guess=None, solver="auto", tolerance=1e-8, max_iterations=100, callback=None
    ),
    "sweep": lambda: door(
        cd.sweep, set=cd.sets.Ball((0, 0), 1.0), q0=(0, 0), times=[0.0, 1.0], scheme="catching-up"
    ),
    "write_problem": lambda: door(
        cd.write_problem, problem=problem(), path="problem.hdf5", solution=None, guesses=(), description="a block"
    ),
}  # fmt: skip

# Not doors: what functions return, what is handed over by them, and what has tests of its own.
RETURNED = {
    "Motion", "events.Event", "events.EventMotion", "events.Interval", "loads.Profile", "packings.Arch",
    "packings.Dome", "packings.Vault", "penalty.PenaltyMotion", "sets.Rows", "sets.Set", "loads.Drive",
}  # fmt: skip
ELSEWHERE = {
    "analysis": "tests/analysis/test_hostile.py", "compas": "tests/scenes/test_compas.py", "study": "tests/studies",
    "schemes": "the doors of integrate", "packings.compress": "tests/rigid/test_filling.py",
    "packings.resting_heights": "a part of Pour", "loads.as_function": "a part of Scene.force and of drives",
}  # fmt: skip


def public_names():
    """Names of all that a user can call: those of the package, and those of its public modules."""
    for name in cd.__all__:
        thing = getattr(cd, name)
        if not isinstance(thing, types.ModuleType):
            yield from [name] * callable(thing)
            continue
        for inner in getattr(thing, "__all__", None) or vars(thing):
            part = getattr(thing, inner)
            if callable(part) and inner[0] != "_" and part.__module__.startswith("contactdynamics"):
                if hasattr(thing, "__all__") or part.__module__ == thing.__name__:
                    yield f"{name}.{inner}"


def test_every_public_name_is_a_door():
    known = {name.partition(",")[0] for name in DOORS} | RETURNED | set(ELSEWHERE)
    assert {name for name in public_names() if name not in known and name.partition(".")[0] not in ELSEWHERE} == set()


# What is called with functions of the test, or gives its options to something that knows them.
ANY_OPTION = {"InputError", "Simulation.from_file", "sets.Ball.project", "sets.Intersection"}


@pytest.mark.parametrize("name", sorted(set(DOORS) - ANY_OPTION))
def test_an_option_that_there_is_not_is_told_with_those_there_are(name):
    function, arguments = DOORS[name]()
    with pytest.raises(cd.InputError, match=r"option[s]? '?no_such_option'?; it (takes|has|may have) \w+"):
        function(**arguments, no_such_option=1)


def test_what_draws_and_measures_tells_its_options_too():
    for name in cd.analysis.__all__:
        thing = getattr(cd.analysis, name)
        with pytest.raises(cd.InputError, match=f"{name} got the unknown option no_such_option; it takes"):
            thing(no_such_option=1)


def test_warnings_lead_to_the_line_of_the_program():
    """Not to the function that looks at the arguments."""
    with pytest.warns(UserWarning, match="not convex") as told:
        cd.Polygon([(0, 0), (2, 0), (2, 1), (1, 0.2), (0, 1)])
    assert told[0].filename == __file__
    with pytest.warns(errors.ConvergenceWarning) as told:
        cd.integrate(system(), q=(0, 0), u=(1, -1), step=0.1, until=0.2, tolerance=1e-300, max_iterations=1)
    assert told[0].filename == __file__
    sim = cd.Simulation(scene(), time_step=1e-3, tolerance=1e-300, max_iterations=1)
    sim.rows[1, 0] = 1.0
    with pytest.warns(errors.ConvergenceWarning) as told:
        sim.run(until=5e-3, progress=False)
    assert told[0].filename == __file__


JUNK = (
    None, "word", "", b"bytes", True, -1, 0, 1.5, 10**30, 1e300, -1e300, 1e-300, float("nan"), float("inf"), 1j, [], {},
    object(), [1.0], (1.0, 2.0, 3.0), [1.0, float("nan")], [[1.0, 2.0], [3.0]], ["a", "b"], [None, None],
    np.zeros((2, 3, 4)), np.zeros(0), np.float64("nan"), np.array("word"), np.array([1, 2], dtype=object), lambda: 1,
    lambda *arguments: "word", lambda *arguments: None,
)  # fmt: skip


def try_door(name, key, value):
    """Call a door with one argument wrong: it works, or says so in a sentence."""
    function, arguments = DOORS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**(arguments | {key: value}))
        except cd.InputError as error:
            assert "\n" not in str(error) and not re.search(r"np\.(float|int|str_|True|False)", str(error))
        except (FileNotFoundError, IsADirectoryError) as error:  # say it themselves
            assert "nowhere" in str(error)
        except errors.ConvergenceError:
            pass


DEAR = ("ContactProblem", "events.integrate", "explore_forces", "integrate", "integrate, elast", "penalty.integrate")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in DEAR else []) for n in DOORS])
def test_a_wrong_argument_is_told_in_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments = DOORS[name]()
    if not any("nowhere" in str(value) for value in arguments.values()):
        function(**arguments)  # the door itself is open
    for key in arguments:
        for value in JUNK:
            try_door(name, key, value)


def numbers_and_nests():
    """Numbers of any size, words, and nested lists of them: what no list of examples foresees."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    return st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from([name for name in DOORS if name not in ("Simulation", *DEAR)]), st.data())
def test_anything_is_told_in_a_sentence(name, data):
    key = data.draw(st.sampled_from(sorted(DOORS[name]()[1])))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some write a file
        try_door(name, key, data.draw(numbers_and_nests()))
