"""The accelerated solver against plain Gauss-Seidel: same law, same residual, same forces where these are unique."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.bench import heaps
from contactdynamics.rigid import solvers, step_solver, threads
from contactdynamics.rigid.equations import contract


def heap(d, friction, solver, ratio=2.0, seed=0, count=40, **options):
    """Balls of radii 0.05 to 0.05 ``ratio`` falling into a box; masses differ by ratio^d."""
    scene = cd.Scene(gravity=(0,) * (d - 1) + (-9.81,))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=friction)
    wall = cd.Plane if d == 3 else cd.HalfPlane
    axes = np.eye(d)
    scene.add(wall(axes[-1]), material="m", fixed=True)
    for axis in axes[:-1]:
        for sign in (1, -1):
            scene.add(wall(sign * axis), material="m", position=-sign * 0.3 * ratio * axis, fixed=True)
    rng = np.random.default_rng(seed)
    radii = rng.uniform(0.05, 0.05 * ratio, count)
    side = 3 if d == 3 else 4
    numbers = np.arange(count)
    places = [0.14 * ratio * (numbers % side - (side - 1) / 2)]
    if d == 3:
        places.append(0.14 * ratio * (numbers // side % side - (side - 1) / 2))
    places.append(0.06 * ratio + 0.12 * ratio * (numbers // side ** (d - 1)))
    position = np.stack(places, axis=1) + rng.uniform(-4e-3, 4e-3, (count, d)) * ratio
    scene.add_many(radii, material="m", position=position)
    return cd.Simulation(scene, time_step=1e-3, solver=solver, max_iterations=20_000, **options)


@pytest.mark.parametrize("friction", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("d", [2, 3])
def test_no_step_fails_where_the_reference_does_not(d, friction):
    # Both solve each step from the state of the accelerated run, so that they meet the same problems: impacts, jams.
    sim = heap(d, friction, "accelerated", tolerance=1e-4)
    sums = [0, 0]
    for _ in range(300):
        report = sim.step().report
        assert report.converged, report.message
        assert report.residual <= 1e-4
        sums[0] += report.iterations
    plain = heap(d, friction, "nlgs", tolerance=1e-4)
    for _ in range(300):
        report = plain.step().report
        assert report.converged, report.message
        sums[1] += report.iterations
    assert sim.energy.closure < 1e-10 * abs(sim.energy.force_work)
    assert sums[0] < 1.5 * sums[1]


@pytest.mark.parametrize("ratio", [4.0, 8.0])
def test_large_mass_ratios(ratio):
    sim = heap(3, 0.5, "accelerated", ratio=ratio, count=30)  # masses up to ratio^3 = 512
    sim.run(until=0.4, progress=False)
    assert sim.failures == 0


@pytest.mark.parametrize("d", [2, 3])
def test_same_forces_where_they_are_unique(d):
    # A vertical stack is isostatic: the force under ball k is the weight above it, whatever the solver.
    forces = []
    for solver in ("nlgs", "accelerated"):
        scene = cd.Scene(gravity=(0,) * (d - 1) + (-10.0,))
        scene.material("m", density=1.0, friction=0.4)
        up = np.eye(d)[-1]
        scene.add(cd.Plane(up) if d == 3 else cd.HalfPlane(up), material="m", fixed=True)
        shape = cd.Sphere if d == 3 else cd.Disk
        for k in range(8):
            scene.add(shape(0.5), material="m", position=(0.5 + k) * up, mass=1.0 + k)
        sim = cd.Simulation(scene, time_step=1e-3, solver=solver, tolerance=1e-12, max_iterations=10_000)
        sim.run(until=0.05, progress=False)
        order = np.argsort(sim.contacts.bodies[:, 1])
        forces.append(sim.contacts.impulse[order, 0] / sim.time_step)
    weights = 10.0 * np.arange(1, 9)
    expected = weights[::-1].cumsum()[::-1]
    assert forces[0] == pytest.approx(expected, rel=1e-8)
    assert forces[1] == pytest.approx(expected, rel=1e-8)


def test_unknown_solver():
    with pytest.raises(cd.InputError, match="solver"):
        heap(2, 0.3, "newton")


@pytest.mark.parametrize("solver", ["auto", "accelerated", "nlgs"])
def test_roundings_are_not_improved(solver):
    # One ball that rolls on a plane that turns is solved by one sweep, to the last bits. Asked for 1e-11, it was swept
    # up to 20 000 times for a thousandth of that, where the last bits went to and fro.
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=2.0)
    scene.add(cd.Plane((0, 0, 1)), material="m", motion=cd.Drive(spin=(0, 0, 2.1)))
    scene.add(cd.Sphere(0.1), material="m", position=(0.3, 0, 0.1 * (1 - 1e-13)), velocity=(0.05, 0.1, 0),
              spin=(5.3, 0.5, 0.0))  # fmt: skip
    sim = cd.Simulation(scene, time_step=4e-3, solver=solver, tolerance=1e-11, max_iterations=20_000)
    sweeps = [sim.step().report.iterations for _ in range(100)]
    assert max(sweeps) <= 10
    assert sim.report.residual <= 1e-12


@pytest.fixture(scope="module")
def first_step():
    """A solver's arguments in the first step of a lattice of balls, which no sweep solves."""
    taken, sim = [], heaps.lattice(1500)
    solve = step_solver.StepSolver._swept

    def swept(self, team, filled, goal):
        taken.append((filled.rows, filled.mobility, self._table, goal, self._scratch, threads.ALONE._meetings[0]))
        taken.append(filled.kinds[0])
        return solve(self, team, filled, goal)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_solver.StepSolver, "_swept", swept)
        sim.step()
    return taken[-2:]  # as they are after it


def test_the_residual_is_estimated_by_four_contacts_of_each_64(first_step):
    arguments, kind = first_step
    rows, mobility, _, goal, _, _ = arguments
    plan, chosen = kind.plan, []
    got = solvers.estimate(*arguments)
    for group in range(contract.ALL):
        some = plan.order[plan.cuts[group] : plan.cuts[group + 1]]
        chosen.append(some[np.arange(len(some)) % 64 < 4])
        assert np.array_equal(plan.few[plan.cuts[group] : plan.few_ends[group]], chosen[-1])
    chosen = np.concatenate(chosen)
    assert 100 < len(chosen) < 0.1 * len(plan.order)
    error, size = contract.KERNELS[type(kind.contacts)].measure(
        rows, mobility, kind.contacts, chosen, np.empty((len(plan.order), 2))
    )[:2]
    assert got == pytest.approx(np.sqrt(16 * error / max(16 * size, goal.scale)), rel=1e-12)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_the_errors_told_are_those_of_all_contacts(most):
    # Also where sweeps end before those were looked at that a part of the contacts has asked for.
    sim = heaps.lattice(1500, max_iterations=most, solver="accelerated")
    report = sim.step().report
    assert report.iterations == most and not report.converged
    assert 1e-2 < report.residual < 1.0 and report.left > 0.0
