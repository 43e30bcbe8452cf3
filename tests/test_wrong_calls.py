"""Wrong calls from a program: every public door answers in one sentence, never with an error from inside."""

import re

import numpy as np
import pytest

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
    with cd.open(tmp_path / "run.h5") as recording:
        assert len(recording) == 4
    one, many = system(), cd.System(inertia=[1.0, 1.0], constraints=[floor()])
    assert len(one.constraints) == len(many.constraints) == 1


@pytest.mark.parametrize("call, words", [
    (lambda: cd.Simulation(scene(), time_step=1e-3, recorders="run.h5"), r"the recorder 'r'; give one such as HDF5"),
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
])  # fmt: skip
def test_sentences(call, words):
    with pytest.raises(cd.InputError, match=words) as told:
        call()
    assert "\n" not in str(told.value) and "0 to -1" not in str(told.value)


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
