"""Kernels whose types are taken for settled (`_jit.Settled`) get arguments of one type, whatever happens to a scene."""

import numba
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import _jit


def scene(shapes):
    """A floor, and ``shapes`` above each other."""
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5, restitution=0.1)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    for k, shape in enumerate(shapes):
        scene.add(shape, material="m", position=(0.01 * k, 0.1 + 0.2 * k))
    return scene


@pytest.mark.parametrize(
    "shapes",
    [[cd.Disk(0.1)] * 3, [cd.Rectangle(0.2, 0.2), cd.Rectangle(0.2, 0.2), cd.Disk(0.1)]],
    ids=["disks", "blocks"],
)
def test_types_stay_the_same_in_a_run(shapes, watched, tmp_path):
    sim = cd.Simulation(scene(shapes), time_step=1e-3, recorders=cd.HDF5(tmp_path / "run.h5", every=5e-3))
    sim.run(until=0.02, progress=False)
    number = sim.add(shapes[0], material="m", position=(0.5, 0.1))
    sim.run(until=0.03, progress=False)
    sim.tolerance, sim.max_iterations = 1, np.int64(50)
    sim.run(until=0.035, progress=False)
    sim.remove(number)
    sim.is_equilibrium()
    sim.run(until=0.04, progress=False)
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    again.run(until=0.05, progress=False)
    assert len(watched) >= 8
    assert np.isfinite(again.positions).all()


def test_a_settled_kernel_is_the_kernel():
    @_jit.kernel
    def twice(table, factor):
        return 2.0 * factor * table[0].sum()

    settled, table = _jit.Settled(twice), (np.arange(3.0),)
    results = [settled(table, 0.5 * k) for k in range(3 * _jit.CALLS)]
    assert results == [twice(table, 0.5 * k) for k in range(3 * _jit.CALLS)]
    assert numba.config.DISABLE_JIT or settled.call != settled._look


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_one_made_anew_is_settled_at_once_for_the_same_types_alone():
    @_jit.kernel
    def largest(column, factor):
        return factor * column.max()

    column, other = np.arange(4.0), np.arange(8.0)[::2].astype(np.float32)
    first = _jit.Settled(largest)
    for _ in range(_jit.CALLS):
        assert first.call == first._look and first(column, 2.0) == 6.0
    again, another = _jit.Settled(largest), _jit.Settled(largest)
    assert again(column[:3], 2.0) == 4.0 and again.call == first.call
    assert another(other, 2.0) == 12.0 and another.call == another._look
