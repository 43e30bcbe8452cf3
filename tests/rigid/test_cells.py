"""Periodic cells, at rest and deforming: images, momentum, energy, stress, files."""

import numpy as np
import pytest

import contactdynamics as cd
from rigid_tools import BY_TURNS, assert_cell_closed, free_on_lattice

pytestmark = pytest.mark.usefixtures("watched")

H = 1e-3


def gas(d, n, cell, *, shift=None, friction=0.3, restitution=0.0, speed=1.0, seed=3, fill=0.38, cluster=False):
    """``n``^d grains on a lattice in the cell, with random velocities; ``shift`` (N, d) whole numbers of vectors."""
    rng = np.random.default_rng(seed)
    made = cd.Scene(gravity=np.zeros(d), cell=cell)
    made.material("m", density=1000.0)
    made.contact("m", "m", friction=friction, restitution=restitution)
    place, velocity = free_on_lattice(made, n, speed, rng, shift)
    radius = fill * np.sqrt((cell.vectors[:d, :d] ** 2).sum(axis=1)).min() / n
    spin = rng.normal(size=len(place) if d == 2 else place.shape)
    if cluster:
        ends = np.zeros((2, d))
        ends[:, 0] = -0.4 * radius, 0.4 * radius
        for x, v, w in zip(place, velocity, spin, strict=True):
            made.add(cd.Cluster([0.6 * radius] * 2, ends), material="m", position=x, velocity=v, spin=w)
    else:
        made.add_many(radius, material="m", position=place, velocity=velocity, spin=spin)
    return made


@pytest.mark.parametrize(("d", "cluster"), [(2, False), (3, False), (2, True), (3, True)])
def test_a_packing_moved_by_lattice_vectors_moves_in_the_same_way(d, cluster):
    # Each grain is replaced by another image of it. All differences of places are then rounded otherwise.
    vectors = np.eye(d) + 0.3 * np.triu(np.ones((d, d)), 1).T
    n = 5 if d == 2 else 3
    still = np.zeros((n**d, d))
    other = np.random.default_rng(1).integers(-2, 3, size=still.shape)
    runs = []
    for shift in (still, other):
        sim = cd.Simulation(gas(d, n, cd.Cell(vectors), shift=shift, cluster=cluster), time_step=H, tolerance=1e-10)
        sim.run(until=0.1, progress=False)
        runs.append(sim)
    one, two = runs
    assert one.energy.normal_work.sum() < -0.02 * one.energy.kinetic  # they have met
    assert two.positions - other @ vectors == pytest.approx(one.positions, abs=1e-9)
    assert two.velocities == pytest.approx(one.velocities, abs=1e-7)
    assert np.abs((one.velocities * one.bodies.mass[:, None]).sum(axis=0)).max() < 1e-10 * one.bodies.mass.sum()
    assert_cell_closed(one)
    inside = two.cell.wrapped() @ np.linalg.inv(vectors)
    assert inside.min() >= -1e-12 and inside.max() <= 1 + 1e-12
    assert two.cell.wrapped() == pytest.approx(two.frame().wrapped(), abs=1e-12)


@BY_TURNS
def test_shear_for_ever_knows_no_border(d, penetration):
    # Simple shear over two lengths: the cell is cut anew twice. Another choice of images, which move with the cell,
    # gives the same motion.

    rate = np.zeros((d, d))
    rate[0, 1] = 4.0
    n = 6 if d == 2 else 4
    cell = cd.Cell(np.ones(d), rate=rate)
    still = np.zeros((n**d, d))
    other = np.random.default_rng(1).integers(-1, 2, size=still.shape)
    runs = []
    for shift in (still, other):
        made = gas(d, n, cell, shift=shift, speed=1.5)
        sim = cd.Simulation(made, time_step=H, tolerance=1e-12, penetration=penetration)
        sim.run(until=0.05, progress=False)
        runs.append(sim)
    one, two = runs
    assert one.energy.drive_work > 0  # some have met across the border
    moved = two.positions - one.positions  # whole numbers of the moved vectors: those of the start, sheared by 0.2
    shares = moved @ np.linalg.inv(np.eye(d) + 0.05 * rate.T)
    assert shares == pytest.approx(other, abs=1e-7)
    assert two.velocities - moved @ rate.T == pytest.approx(one.velocities, abs=1e-5)
    for sim in runs:
        sim.tolerance = 1e-3
        sim.run(until=0.52, progress=False)
        assert_cell_closed(sim)
        assert sim.cell.strain[0, 1] == pytest.approx(4 * 0.52)
        assert abs(sim.cell.vectors[1, 0] - 0.08) < 1e-9 and sim.cell.volume == pytest.approx(1.0)
        assert sim.watch.overlap < 0.2


def test_a_cut_leaves_no_trace():
    # The same run with a cell that is never cut anew: the lattice is the same, and so is the motion.
    runs = []
    for far in (0.51, 10.0):
        sim = cd.Simulation(gas(2, 6, cd.Cell((1.0, 1.0), rate=[[0, 5.0], [0, 0]])), time_step=H, tolerance=1e-12)
        sim.cell_motion.RECUT = far
        sim.run(until=0.13, progress=False)
        runs.append(sim)
    one, two = runs
    assert one.cell.vectors[1, 0] == pytest.approx(-0.35) and two.cell.vectors[1, 0] == pytest.approx(0.65)
    assert one.positions == pytest.approx(two.positions, abs=1e-7)


@pytest.mark.parametrize("d", [2, 3])
def test_the_asked_stress_is_carried_by_the_contacts(d):
    # Compressed from a gas: at rest the contact forces balance the asked stress, component by component.
    cell = cd.Cell(np.ones(d), stress=500.0)
    sim = cd.Simulation(
        gas(d, 5 if d == 2 else 4, cell, speed=0.3), time_step=2e-3, tolerance=1e-4, on_failure="ignore"
    )
    sim.run(until=2.0, progress=False)
    assert_cell_closed(sim)
    assert sim.cell.volume < 0.9
    stress = sim.cell.stress
    assert np.diag(stress) == pytest.approx(500.0, abs=0.5) and stress == pytest.approx(stress.T, abs=0.5)
    assert np.abs(sim.cell.rate).max() < 1e-2 and np.abs(sim.cell.kinetic_stress).max() < 1.0
    from contactdynamics import analysis

    moments = analysis.grain_moments(sim.frame()).sum(axis=0) / sim.cell.volume
    assert moments == pytest.approx(stress, abs=1e-6 * 500)


def test_a_shear_stress_is_carried_too_and_the_work_of_the_cell_is_in_the_ledger():
    cell = cd.Cell((1.0, 1.0), stress={"xx": 500.0, "yy": 500.0, "xy": -30.0})
    made = gas(2, 6, cell, speed=0.3, friction=0.6)
    sim = cd.Simulation(made, time_step=2e-3, tolerance=1e-4, on_failure="ignore")
    sim.run(until=3.0, progress=False)
    assert_cell_closed(sim)
    assert sim.cell.stress[0] == pytest.approx([500.0, -30.0], abs=2.0)
    assert sim.cell.strain[0, 1] > 0  # the asked shear drives it to positive rates


def test_a_gas_in_shear_keeps_the_flow():
    # Frictionless elastic disks: v - L x has no mean and no gradient of its own, whatever the collisions do.
    rate = np.array([[0.0, 2.0], [0.0, 0.0]])
    made = gas(2, 8, cd.Cell((1.0, 1.0), rate=rate), friction=0.0, restitution=1.0, speed=0.0, fill=0.3)
    rng = np.random.default_rng(0)
    sim = cd.Simulation(made, time_step=H)
    sim.rows[:, :2] = sim.bodies.position[:, :2] @ rate.T + 0.5 * rng.normal(size=(64, 2))
    sim.ledger.kinetic = sim._kinetic()
    sim.run(until=2.0, progress=False)
    beyond = sim.velocities - sim.positions @ rate.T
    noise = beyond.std() / np.sqrt(64)
    gradient = np.polyfit(sim.positions[:, 1], sim.velocities[:, 0], 1)[0]
    assert abs(gradient - 2.0) < 5 * noise / sim.positions[:, 1].std()
    assert sim.energy.drive_work > 0  # the work of the shear heats the gas
    assert_cell_closed(sim)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(("d", "cluster"), [(2, False), (3, False), pytest.param(2, True, marks=pytest.mark.slow)])
def test_any_number_of_threads_sweeps_a_cell_to_the_same_bits(d, cluster, moves, monkeypatch):
    # Bodies of the first and the last slab touch across the border, and all contacts there act on a cell that moves.
    monkeypatch.setattr("contactdynamics.rigid.contact_set.SMALL", 50)
    rate = np.zeros((d, d))
    rate[0, 1] = 2.0
    motion = {"rate": rate, "stress": {"yy": 800.0}} if moves else {}
    states = []
    for threads in (1, 3):
        made = gas(d, 18 if d == 2 else 6, cd.Cell(np.ones(d), **motion), fill=0.4995, cluster=cluster, speed=0.2)
        sim = cd.Simulation(made, time_step=H, threads=threads, on_failure="ignore", penetration="anticipate")
        sim.run(until=5 * H, progress=False)
        states.append((sim.rows.tobytes(), sim.bodies.position.tobytes()))
        shared = [equations.kind.plan.cuts[-2:] for equations in sim.contact_set.equations]
        assert sim.contact_set.count > 100 and sum(after - first for first, after in shared) > 1
        assert_cell_closed(sim)
    assert states[0] == states[1]


@pytest.mark.parametrize("stress", [None, {"yy": 300.0}])
def test_a_cell_goes_on_from_a_file_with_the_same_bits(tmp_path, stress):
    def made():
        return gas(2, 6, cd.Cell((1.0, 1.0), rate=[[0, 3.0], [0, 0]], stress=stress))

    whole = cd.Simulation(made(), time_step=H)
    whole.run(until=0.4, progress=False)
    half = cd.Simulation(made(), time_step=H, recorders=cd.HDF5(tmp_path / "a.h5", every=100))
    half.run(until=0.2, progress=False)
    again = cd.Simulation.from_file(tmp_path / "a.h5")
    again.run(until=0.4, progress=False)
    assert (again.positions == whole.positions).all() and (again.cell.vectors == whole.cell.vectors).all()
    assert again.cell.strain == pytest.approx(whole.cell.strain)
    with cd.open(tmp_path / "a.h5") as recording:
        frame = recording[-1]
        assert (frame.cell == half.cell.vectors).all() and frame.periodic.all() and (frame.rate == half.cell.rate).all()


def test_walls_across_an_open_direction():
    # Grains fall on a floor in a cell that is periodic along x: the floor carries their weight, and nobody leaves.
    made = cd.Scene(gravity=(0, -9.81), cell=cd.Cell((1.0, 1.0), periodic=(True, False)))
    made.material("m", density=1000.0)
    made.contact("m", "m", friction=0.3)
    made.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    place = [(0.05 + 0.1 * i, 0.06 + 0.11 * j) for i in range(10) for j in range(4)]
    made.add_many(0.049, material="m", position=place, velocity=[(1.0, 0.0)] * 40)
    sim = cd.Simulation(made, time_step=H, tolerance=1e-5)
    sim.run(until=1.5, progress=False)
    c = sim.contacts
    floor = c.impulse[c.bodies[:, 0] == 0, 0].sum() / H
    weight = 9.81 * sim.bodies.mass[1:].sum()
    assert floor == pytest.approx(weight, rel=0.02)
    assert sim.positions[1:, 0].max() > 1.0  # unwrapped: some have gone across the border
    assert sim.cell.wrapped()[1:, 0].max() < 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vectors": (1.0, -1.0)}, "positive"),
        ({"vectors": [(1.0, 0.0), (2.0, 0.0)]}, "span no area"),
        ({"vectors": "a"}, "Cell"),
        ({"vectors": (1.0, 1.0), "periodic": (False, False)}, "one of them True"),
        ({"vectors": (1.0, 1.0), "periodic": (True, False), "stress": {"yy": 1.0}}, "not periodic along y"),
        ({"vectors": (1.0, 1.0), "periodic": (True, False), "rate": [[0, 1], [0, 0]]}, "not periodic"),
        ({"vectors": (1.0, 1.0), "stress": {"zz": 1.0}}, "xx, xy, yy"),
        ({"vectors": (1.0, 1.0), "rate": [1, 2]}, "2 x 2"),
        ({"vectors": (1.0, 1.0), "rate": [[1, 0], [0, 0]], "stress": 3.0}, "same component"),
        ({"vectors": (1.0, 1.0), "mass": 0}, "positive"),
    ],
)
def test_wrong_cells_are_told(options, words):
    vectors = options.pop("vectors")
    with pytest.raises(cd.InputError, match=words):
        cd.Cell(vectors, **options)


@pytest.mark.parametrize("mass", [None, 0.02])
def test_a_cell_without_contacts_is_set_in_motion_by_the_stress(mass):
    """M l^2 dL/dt = -V s: an empty cell closes; its mass is a tenth of that of its bodies where none is given."""
    scene = cd.Scene(gravity=(0, 0), cell=cd.Cell((1.5, 2.0), stress={"yy": 5.0}, mass=mass))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.0)
    scene.add(cd.Disk(radius=0.1), material="m")
    sim = cd.Simulation(scene, time_step=H)
    sim.step()
    has = 0.1 * np.pi * 0.1**2 if mass is None else mass
    assert sim.cell.rate == pytest.approx(np.diag([0.0, -H * 3.0 * 5.0 / (has * 3.0)]), rel=1e-12)


def test_what_does_not_fit_a_cell_is_told():
    def made(radius=0.1, **options):
        scene = cd.Scene(gravity=(0, 0), cell=cd.Cell((1.0, 1.0), **options))
        scene.material("m", density=1.0)
        scene.contact("m", "m", friction=0.0)
        scene.add(cd.Disk(radius=radius), material="m")
        return scene

    with pytest.raises(cd.InputError, match="twice as wide"):
        cd.Simulation(made(0.3), time_step=H)
    scene = made(periodic=(False, True))
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    with pytest.raises(cd.InputError, match="across a periodic direction"):
        cd.Simulation(scene, time_step=H)
    with pytest.raises(cd.InputError, match="no cell that moves"):
        cd.Simulation(made(stress=1.0), time_step=H).contact_problem()
    with pytest.raises(cd.InputError, match="dimensions"):
        cd.Scene(gravity=(0, 0, 0), cell=cd.Cell((1.0, 1.0)))
    sim = cd.Simulation(made(), time_step=H)
    with pytest.raises(cd.InputError, match="twice as wide"):
        sim.add(cd.Disk(radius=0.3), material="m", position=(0.5, 0.5))


def test_two_balls_in_the_smallest_cell_meet_on_the_right_side():
    # The cell is 4.2 radii wide: each ball has the other one on both sides, and bounces to and fro between its images.
    made = cd.Scene(gravity=(0, 0), cell=cd.Cell((0.42, 0.42)))
    made.material("m", density=1.0)
    made.contact("m", "m", friction=0.0, restitution=1.0)
    made.add_many(0.1, material="m", position=[(0.0, 0.0), (0.21, 0.0)], velocity=[(0.5, 0.0), (-0.5, 0.0)])
    sim = cd.Simulation(made, time_step=1e-4)
    signs = []
    for k in range(1, 60):
        sim.run(until=0.005 * k, progress=False)
        signs.append(np.sign(sim.velocities[0, 0]))
    assert (np.abs(sim.velocities[:, 0]) == pytest.approx(0.5)) and np.count_nonzero(np.diff(signs)) > 8
    assert sim.watch.overlap < 0.01


def test_what_contacts_may_lose_is_measured_by_the_pressure(monkeypatch):
    # p V |L| h, whatever the direction of the shear: its own work would vanish with the shear stress.
    from contactdynamics.rigid import step_solver

    seen, squeezing = [], step_solver.squeezing
    monkeypatch.setattr(step_solver, "squeezing", lambda *given: seen.append(squeezing(*given)) or seen[-1])
    sim = cd.Simulation(gas(2, 8, cd.Cell((1.0, 1.0)), speed=0.0, fill=0.5), time_step=1e-3, tolerance=1e-5)
    sim.cell.impose(stress=100.0)
    sim.run(until=1.0, progress=False)
    assert seen[-1] == 0.0  # nothing is imposed but the stress
    sim.cell.impose(rate=[[0, 1e-4], [0, 0]], stress={"yy": 100.0}, carry=True)
    sim.step()
    pressure = np.trace(sim.cell.stress) / 2
    sim.step()
    assert seen[-1] == pytest.approx(pressure * sim.cell.volume * 1e-4 * sim.time_step, rel=0.02)


def test_a_carried_flow_leaves_the_common_centre_as_it_was():
    sim = cd.Simulation(gas(2, 6, cd.Cell((1.0, 1.0)), speed=1.0, seed=5), time_step=H)
    before = sim.bodies.mass @ sim.velocities
    sim.cell.impose(rate=[[0, 3.0], [0, 0]], carry=True)
    assert sim.bodies.mass @ sim.velocities == pytest.approx(before, abs=1e-12 * sim.bodies.mass.sum())
    slope = np.polyfit(sim.positions[:, 1], sim.velocities[:, 0], 1)[0]
    assert slope == pytest.approx(3.0, abs=1.0)


def test_another_rate_than_that_of_the_file_is_told(tmp_path):
    def made(**options):
        return cd.Simulation(gas(2, 6, cd.Cell((1.0, 1.0))), time_step=H, **options)

    sim = made(recorders=cd.HDF5(tmp_path / "a.h5", every=100))
    sim.cell.impose(rate=[[0, 3.0], [0, 0]], stress={"yy": 300.0}, carry=True)
    sim.run(until=0.1, progress=False)
    again = made().restore(tmp_path / "a.h5")
    with pytest.warns(UserWarning, match="another rate and stress imposed on its cell"):
        again.run(until=0.11, progress=False)
