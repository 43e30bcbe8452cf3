"""Runs that go on from their file: with all that acts on them and the same bits, or a refusal that names what lacks."""

import numpy as np
import pytest

import contactdynamics as cd
from command import cdyn
from contactdynamics.scenes import hooks
from contactdynamics.scenes.packings import Irregular, Outlet, Pour


def poured(d, path=None, *, shape=None, outlet=True, penetration="moreau", **options):
    """Grains poured at 400 per second on a small table of balls, from which they fall; an outlet takes those away."""
    scene = cd.Scene(gravity=(*[0.0] * (d - 1), -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    cd.packings.pavement(scene, material="m", sizes=(0.04, 0.05), extent=0.1, seed=2)
    pour = Pour(scene, material="m", sizes=(0.03, 0.05), rate=400.0, count=180, radius=0.08, seed=4, shape=shape)
    recorders = [] if path is None else [cd.HDF5(path, every=11)]
    sim = cd.Simulation(scene, time_step=1e-3, recorders=recorders, penetration=penetration, **options)
    sim.before_step.append(pour)
    if outlet:
        below = np.zeros(d)
        below[-1] = -0.05
        sim.before_step.append(Outlet(position=below, normal=-np.array(scene.gravity)))
    return sim


def assert_same(one, two):
    """The same state to the bit."""
    assert np.array_equal(one.identities, two.identities)
    for name in ("positions", "velocities", "spins", "rotations"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.time == two.time and one.steps == two.steps
    assert one.energy.kinetic == two.energy.kinetic and one.energy.inflow == two.energy.inflow


pytestmark = [
    pytest.mark.usefixtures("watched"),
    pytest.mark.filterwarnings("ignore:Bodies .* overlap"),  # the grains are poured fast, and that is told
]

# ---- what is part of the package goes on ---------------------------------------------------------------------------


ANGULAR = Irregular(sides=(5, 7))


# Each mode and shape once; the others in the longer tier.
@pytest.mark.parametrize("d, shape, penetration", [
    (3, None, "anticipate"),
    (2, ANGULAR, "moreau"),
    pytest.param(2, None, "moreau", marks=pytest.mark.slow),
    pytest.param(2, None, "anticipate", marks=pytest.mark.slow),
    pytest.param(3, None, "moreau", marks=pytest.mark.slow),
    pytest.param(2, ANGULAR, "anticipate", marks=pytest.mark.slow),
])  # fmt: skip
def test_pour_and_outlet_go_on_with_the_same_bits(tmp_path, d, shape, penetration):
    whole = poured(d, shape=shape, penetration=penetration).run(until=0.4, progress=False)
    ground = int((whole.bodies.kind == 1).sum())
    outlet = whole.before_step[1]
    assert len(whole.identities) == ground + 160 - outlet.removed and outlet.removed > 5
    path = tmp_path / "run.h5"
    poured(d, path, shape=shape, penetration=penetration).run(until=0.32, progress=False)
    again = cd.Simulation.from_file(path)
    assert [type(hook) for hook in again.before_step] == [Pour, Outlet]
    assert 0 < again.before_step[1].removed < outlet.removed
    assert_same(whole, again.run(until=0.4, progress=False))
    assert again.before_step[1].removed == outlet.removed
    assert cdyn("resume", path, "--until", "0.4") == 0
    assert_same(whole, cd.Simulation.from_file(path))


def test_a_run_cut_and_resumed_twice_is_the_run(tmp_path):
    whole = poured(2).run(until=0.2, progress=False)
    poured(2, tmp_path / "run.h5").run(until=0.05, progress=False)
    assert cdyn("resume", tmp_path / "run.h5", "--until", "0.1") == 0
    assert cdyn("resume", tmp_path / "run.h5", "--until", "0.2") == 0
    assert_same(whole, cd.Simulation.from_file(tmp_path / "run.h5"))


def test_a_file_holds_the_pour_as_it_was_made(tmp_path):
    sieve = cd.packings.Sieve([0.02, 0.03, 0.05], [0.0, 0.4, 1.0], by="mass")
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1000.0, friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    pour = Pour(scene, material="m", sizes=sieve, rate=np.float64(30), count=np.int64(9), radius=0.1, seed=3,
                axis=(0.1, 0.2), from_above=True)  # fmt: skip
    sim = cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(tmp_path / "run.h5")])
    sim.before_step.append(pour)
    sim.run(until=0.01, progress=False)
    (again,) = cd.Simulation.from_file(tmp_path / "run.h5").before_step
    assert again.to_file() == pour.to_file() and again.first == pour.first == 1
    for k in range(9):
        assert again.grain(k)[0] == pour.grain(k)[0] and np.array_equal(again.grain(k)[1], pour.grain(k)[1])


class Count(hooks.Hook):
    """A hook of a user's program, which counts the steps."""

    def __init__(self, start):
        self.start, self.steps = start, 0

    def __call__(self, simulation):
        self.steps += 1

    def to_file(self):
        return {"start": self.start}

    def memory(self):
        return {"steps": self.steps}

    def remember(self, memory):
        self.steps = memory["steps"]


def test_a_hook_of_the_user_goes_on_where_its_class_is_known(tmp_path, monkeypatch):
    sim = poured(2, tmp_path / "run.h5")
    sim.before_step.append(Count(7))
    sim.run(until=0.1, progress=False)
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    assert again.before_step[2].start == 7 and again.before_step[2].steps == 100
    other = poured(2)
    other.restore(tmp_path / "run.h5")
    other.before_step.append(Count(7))  # after restore, and before the first step
    other.step()
    assert other.before_step[2].steps == 101 and other.before_step[1].removed == sim.before_step[1].removed
    monkeypatch.delitem(hooks.Hook.kinds, "Count")  # another program, in which the class is not known
    with pytest.raises(cd.InputError, match=r"calls Count before each step.*restore"):
        cd.Simulation.from_file(tmp_path / "run.h5")


# ---- what is not is refused by name --------------------------------------------------------------------------------


def push(simulation):
    """A function of the user, which acts on the motion."""
    simulation.rows[simulation.bodies.kind == 0, 0] += 1e-3


def test_a_function_is_refused_by_name_and_goes_on_in_its_program(tmp_path, capsys):
    path = tmp_path / "run.h5"

    def make(file=None):
        sim = poured(2, file)
        sim.before_step.append(push)
        return sim

    whole = make().run(until=0.2, progress=False)
    make(path).run(until=0.1, progress=False)
    with pytest.raises(cd.InputError, match=r"calls push before each step.*restore"):
        cd.Simulation.from_file(path)
    capsys.readouterr()
    assert cdyn("resume", path, "--until", "0.2") == 2
    error = capsys.readouterr().err
    assert "push" in error and "restore" in error and error.count("\n") == 1
    assert_same(whole, make().restore(path).run(until=0.2, progress=False))
    fresh = make().before_step  # the same functions at their start; what they had learnt is in the file
    assert_same(whole, cd.Simulation.from_file(path, before_step=fresh).run(until=0.2, progress=False))


def test_a_shape_that_is_a_function_is_refused_by_name(tmp_path):
    def hexagon(diameter, rng):
        return cd.Polygon.regular(6, radius=diameter / 2)

    poured(2, tmp_path / "run.h5", shape=hexagon).run(until=0.05, progress=False)
    with pytest.raises(cd.InputError, match=r"Pour are made by the function hexagon.*restore"):
        cd.Simulation.from_file(tmp_path / "run.h5")
    whole = poured(2, shape=hexagon).run(until=0.1, progress=False)
    assert_same(whole, poured(2, shape=hexagon).restore(tmp_path / "run.h5").run(until=0.1, progress=False))


def test_motions_and_forces_that_are_functions_are_refused_by_name(tmp_path):
    def swing(t):
        return (np.sin(t), 0.0)

    for k, name in enumerate(("motion", "force")):
        scene = cd.Scene(gravity=(0, -9.81))
        scene.material("m", density=1.0, friction=0.5)
        scene.add(cd.HalfPlane((0, 1)), material="m", **({"motion": swing} if k == 0 else {"fixed": True}))
        scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
        if k == 1:
            scene.force(1, swing)
        path = tmp_path / f"{name}.h5"
        cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path)]).run(until=0.01, progress=False)
        with pytest.raises(cd.InputError, match=rf"The {name} of body {k} .* function swing.*restore"):
            cd.Simulation.from_file(path)


def test_a_program_that_goes_on_with_other_functions_is_told(tmp_path):
    poured(2, tmp_path / "run.h5").run(until=0.05, progress=False)
    for change, words in (
        (lambda hooks: hooks.clear(), "had Pour, Outlet in before_step and goes on with nothing"),
        (lambda hooks: hooks.append(push), "had Pour, Outlet in before_step and goes on with Pour, Outlet, push"),
    ):
        sim = poured(2).restore(tmp_path / "run.h5")
        change(sim.before_step)
        with pytest.warns(UserWarning, match=words):
            sim.run(until=0.06, progress=False)
        sim.run(until=0.07, progress=False)  # told once


def test_a_program_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "run.h5"
    poured(2, path).run(until=0.05, progress=False)
    with pytest.raises(cd.InputError, match="has dimension 2, and the simulation 3"):
        poured(3).restore(path)
    with pytest.raises(cd.InputError, match=r"has time_step 0\.001, and the simulation 0\.002"):
        cd.Simulation.from_file(path, time_step=2e-3)
    scene = cd.Scene(gravity=(0, -1))
    scene.material("other", density=1.0, friction=0.1)
    scene.add(cd.Disk(1.0), material="other")
    with pytest.raises(cd.InputError, match="materials"):
        cd.Simulation(scene, time_step=1e-3).restore(path)


# ---- laws ----------------------------------------------------------------------------------------------------------


def test_fixed_balls_need_no_law_among_themselves(tmp_path):
    def make(path=None):
        scene = cd.Scene(gravity=(0, -9.81))
        for name in ("ground", "shelf", "grain"):
            scene.material(name, density=1000.0)
        scene.contact("ground", "grain", friction=0.4)
        scene.contact("shelf", "grain", friction=0.2)  # nothing of ground, shelf or of grains among themselves
        scene.add_many(np.full(9, 0.1), material="ground", position=[(0.15 * k, 0.0) for k in range(-4, 5)], fixed=True)
        scene.add(cd.Cluster([0.1, 0.1], [(0, 0), (0.1, 0)]), material="shelf", position=(2.0, 0.0), fixed=True)
        scene.add(cd.Cluster([0.06, 0.05], [(0, 0), (0.05, 0)]), material="grain", position=(0.02, 0.25))
        return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=10)] if path else [])

    whole = make().run(until=0.4, progress=False)
    make(tmp_path / "run.h5").run(until=0.1, progress=False)
    assert_same(whole, cd.Simulation.from_file(tmp_path / "run.h5").run(until=0.4, progress=False))
    assert cdyn("resume", tmp_path / "run.h5", "--until", "0.4") == 0
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    assert_same(whole, again)
    with pytest.raises(cd.InputError, match="'grain' with 'grain' is not stated"):  # as in the scene itself
        again.add(cd.Disk(0.05), material="grain", position=(0.5, 1.0))


# ---- outlets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_an_outlet_takes_what_lies_wholly_outside(d):
    """Balls fall freely: that of radius r from the height y has left the half-space above 0 once y - g t²/2 < -r."""
    up = np.eye(d)[-1]
    scene = cd.Scene(gravity=-10.0 * up)
    scene.material("m", density=1.0, friction=0.1)
    heights, radii = np.array([0.1, 0.5, 1.0, 3.0]), np.array([0.05, 0.2, 0.1, 0.1])
    numbers = scene.add_many(
        radii, material="m", position=heights[:, None] * up + 2.0 * np.arange(4)[:, None] * np.eye(d)[0]
    )
    sim = cd.Simulation(scene, time_step=1e-3)
    outlet = Outlet(position=np.zeros(d), normal=up)
    sim.before_step.append(outlet)
    leave = np.sqrt((heights + radii) / 5.0)
    for t in (0.1, 0.2, 0.3, 0.4, 0.5, 0.7):
        sim.run(until=t, progress=False)
        sim.step()  # those that are outside at t go at the begin of this step
        assert sim.identities.tolist() == [n for n, end in zip(numbers, leave, strict=True) if end > t]
        assert outlet.removed == 4 - len(sim.identities)
    sim.run(until=1.5, progress=False)
    assert sim.identities.tolist() == [3]  # the last free body stays


def test_the_outlet_of_a_box_has_its_sides():
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1.0, friction=0.1)
    velocity = [(1, 0), (-1, 0), (0, 1), (0, -1), (0.0, 0.0)]
    scene.add_many(np.full(5, 0.1), material="m", position=2 * np.array(velocity), velocity=10 * np.array(velocity))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.before_step.append(Outlet(low=(-3, -np.inf), high=(4, 5)))
    sim.run(until=0.5, progress=False)
    assert sim.identities.tolist() == [3, 4]  # nothing bounds it below


def test_wrong_outlets_are_told():
    for options in ({}, {"position": (0, 0)}, {"low": (np.inf, np.inf)}, {"low": (0, 0), "high": (1, 1, 1)},
                    {"position": (0, 0), "normal": (0, 0)}, {"position": (0, 0, 0), "normal": (0, 1)}):  # fmt: skip
        with pytest.raises(cd.InputError, match="Outlet"):
            Outlet(**options)
    sim = poured(2, outlet=False)
    sim.before_step.append(Outlet(low=(0, 0, 0)))
    with pytest.raises(cd.InputError, match="dimensions"):
        sim.step()


# ---- recorders of the user's program are in no file ------------------------------------------------------------------


class Probe:
    """A recorder of the user's own."""

    def __init__(self):
        self.times = []

    def begin(self, simulation):
        """Nothing to open."""

    def __call__(self, simulation):
        self.times.append(simulation.time)

    def end(self, simulation):
        """Nothing to close."""


def probed(path, *more):
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.add(cd.Disk(0.1), material="m", position=(0, 0))
    return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path), *more])


def test_recorders_that_are_lost_are_told_by_name(tmp_path):
    path, second = tmp_path / "run.h5", tmp_path / "second.h5"
    probed(path, Probe(), cd.HDF5(second)).run(until=0.02, progress=False)
    for go_on in (lambda: cd.Simulation.from_file(path).step(), lambda: cdyn("resume", path, "--until", 0.03)):
        with pytest.warns(UserWarning, match=r"recorders Probe, HDF5\('.*second.h5'\) as well") as told:
            go_on()
        assert len(told) == 1


def test_recorders_that_come_along_are_not_told_of(tmp_path):
    path, probe = tmp_path / "run.h5", Probe()
    probed(path, Probe()).run(until=0.02, progress=False)
    sim = probed(path, probe).restore(path)
    sim.run(until=0.03, progress=False)
    assert len(probe.times) == 10 and probe.times[0] == pytest.approx(0.021)
    again = cd.Simulation.from_file(path)  # appended later, and before the first step
    again.recorders.append(probe)
    again.step()
