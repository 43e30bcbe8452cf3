"""Polygons and polyhedra in periodic cells: the images of all of them move in the same way, and carry what is asked."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.rigid.search.recovery import moved_by
from rigid_tools import assert_cell_closed, free_on_lattice

pytestmark = pytest.mark.usefixtures("watched")

H = 1e-3


def shape(d, size):
    """A pentagon, or a box."""
    if d == 2:
        return cd.Polygon.regular(5, radius=size)
    return cd.Box((1.1 * size, 1.2 * size, 1.3 * size))


def filled(d, n, cell, *, shift=None, friction=0.3, speed=1.0, fill=0.42):
    """``n``^d shapes on a lattice in the cell, turned at random, with random velocities; ``shift`` as in `Cell`."""
    rng, made = np.random.default_rng(5), cd.Scene(gravity=np.zeros(d), cell=cell)
    made.material("m", density=1000.0)
    made.contact("m", "m", friction=friction)
    place, velocity = free_on_lattice(made, n, speed, rng, shift)
    for x, v in zip(place, velocity, strict=True):
        turn = {"rotation": rng.uniform(0, 6)} if d == 2 else {}
        made.add(shape(d, fill / n), material="m", position=x, velocity=v, **turn)
    return made


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_other_images_move_in_the_same_way(d):
    # At rest and sheared: each body is replaced by another image of it, and touches others across the border.
    n, rate = 3, np.zeros((d, d))
    rate[0, 1] = 3.0
    other = np.random.default_rng(1).integers(-1, 2, size=(n**d, d))
    for motion in ({}, {"rate": rate}):
        runs = []
        for shift in (np.zeros_like(other), other):
            made = filled(d, n, cd.Cell(np.ones(d), **motion), shift=shift, speed=4.0, fill=0.47 if d == 2 else 0.6)
            sim = cd.Simulation(
                made, time_step=2 * H, tolerance=1e-7, solver="nlgs", penetration="anticipate", on_failure="ignore"
            )
            for _ in range(14 if d == 2 else 7):
                sim.step()
            assert_cell_closed(sim)
            runs.append(sim)
        one, two = runs
        assert one.energy.normal_work.sum() < -0.1 * one.energy.kinetic  # they have met
        assert two.contact_set.searches[0]._images(two.contact_set.near).any()
        assert two.cell.wrapped() == pytest.approx(one.cell.wrapped(), abs=1e-12)
        assert two.cell.stress == pytest.approx(one.cell.stress, abs=1e-8 * np.abs(one.cell.stress).max())


@pytest.mark.slow
def test_pentagons_carry_the_asked_stress_and_go_on_from_a_file(tmp_path):
    made = filled(2, 5, cd.Cell((1.0, 1.0), stress=500.0), speed=0.3)
    sim = cd.Simulation(made, time_step=2e-3, tolerance=1e-4, on_failure="ignore", recorders=cd.HDF5(tmp_path / "a.h5"))
    sim.run(until=1.0, progress=False)
    assert_cell_closed(sim)
    assert sim.cell.volume < 0.9 and sim.watch.overlap < 0.1
    again = cd.Simulation.from_file(tmp_path / "a.h5")
    for one in (sim, again):
        one.recorders.clear()
        one.run(until=1.1, progress=False)
    assert np.array_equal(sim.positions, again.positions)
    sim.run(until=3.0, progress=False)
    stress = sim.cell.stress
    assert np.diag(stress) == pytest.approx(500.0, abs=5.0) and stress == pytest.approx(stress.T, abs=5.0)


def test_the_fraction_counts_bodies_of_all_shapes():
    made = cd.Scene(gravity=(0, 0, 0), cell=cd.Cell((3.0, 3.0, 3.0)))
    made.material("m", density=1.0)
    made.contact("m", "m", friction=0.0)
    made.add(cd.Box((0.5, 0.4, 0.3)), material="m", position=(2.9, 0.1, 1.0))
    made.add(cd.Polyhedron.regular(8, radius=0.5), material="m", position=(1.0, 1.0, 1.0))
    made.add(cd.Sphere(radius=0.3), material="m", position=(2.0, 2.0, 2.0))
    frame = cd.Simulation(made, time_step=H).frame()
    assert 27 * analysis.solid_fraction(frame) == pytest.approx(0.06 + 4 / 3 * 0.125 + 4 / 3 * np.pi * 0.027)


def test_what_is_given_back_moves_bodies_and_no_rows_of_the_cell():
    # Kernels do not look whether an index is in range: what stands after the places must stay as it is.
    memory = np.arange(15.0).reshape(5, 3)
    shift = np.zeros((5, 3))
    shift[0], shift[4] = (1.0, 0.0, 0.0), (7.0, 7.0, 7.0)
    moved_by(shift, memory[:2], 0.5, np.zeros(3), np.ones(2))
    assert memory[0].tolist() == [0.5, 1.0, 2.0] and np.array_equal(memory[1:], np.arange(15.0).reshape(5, 3)[1:])
