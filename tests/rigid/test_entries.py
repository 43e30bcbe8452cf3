"""Kernels of one kind that are called by their address."""

import copy
import pickle
import sys

import numba
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.rigid import entries, solvers
from contactdynamics.rigid.equations.contract import Kind
from contactdynamics.rigid.threads import Meeting
from rigid_tools import ball, floor, world

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are not compiled")


def stack(*shapes):
    """A column of bodies on a floor, after some steps."""
    scene = world(2)
    floor(scene)
    for k, shape in enumerate(shapes):
        scene.add(shape, material="m", position=(0.0, 0.1 + 0.2 * k))
    sim = cd.Simulation(scene, time_step=1e-3)
    for _ in range(3):
        sim.step()
    return sim


def square():
    return cd.Polygon([(-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1)])


def active(sim):
    return tuple(equations.kind for equations in sim.contact_set.equations if equations.count)


@compiled
def test_the_solver_is_compiled_once_for_all_sets_of_kinds():
    stack(ball(2, 0.1))
    before = len(solvers.accelerated.overloads)
    sim = stack(square(), ball(2, 0.1), ball(2, 0.1))
    assert len(active(sim)) > 1 and len(solvers.accelerated.overloads) == before


@compiled
def test_kinds_without_contacts_have_no_entries():
    scene = world(2)
    floor(scene)
    scene.add(square(), material="m", position=(0.0, 0.1))
    scene.add(ball(2, 0.1), material="m", position=(0.0, 5.0))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    assert len(active(sim)) == 1 < len(sim.contact_set.equations)
    assert sim.contact_set._solver._table.shape == (1, entries.WIDTH)


def test_a_table_is_kept_while_the_kinds_are_the_same():
    sim = stack(ball(2, 0.1), ball(2, 0.1))
    solver, kinds = sim.contact_set._solver, active(sim)
    table = solver._table
    solver._follow(kinds)
    assert solver._table is table is not None
    solver._follow(tuple(Kind(*kind) for kind in kinds))
    assert numba.config.DISABLE_JIT or solver._table is not table
    for twin in (copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):  # their arrays stand elsewhere
        assert twin._kinds == () and twin._table is None


@compiled
def test_rows_of_another_type_are_refused():
    (kind,) = active(stack(ball(2, 0.1)))
    wide = kind.contacts._replace(a=kind.contacts.a.astype(np.int64))
    with pytest.raises(numba.TypingError, match="the rows of bodies and the plan of a kind of contacts are"):
        entries.table((kind._replace(contacts=wide),))


@compiled
def test_what_an_entry_does_not_take_is_refused():
    (kind,) = active(stack(ball(2, 0.1)))
    table, rows = entries.table((kind,)), np.zeros((3, 8))

    @numba.njit
    def wrong(table, rows):
        solvers.sweep_groups(table, 0, (rows, rows))

    with pytest.raises(numba.TypingError, match="an entry takes"):
        wrong(table, rows)


def test_no_reference_to_an_array_is_counted():
    """Entries borrow the arrays of a kind: after a solution as many references are held as before."""
    sim = stack(ball(2, 0.1), ball(2, 0.1))
    kinds = active(sim)
    table, mobility = entries.table(kinds), sim.contact_set.mobility(sim.model)
    scratch, meeting = solvers.scratch_arrays(sim.rows, 1), Meeting(np.zeros(32, dtype=np.int64), 0, 1)

    def references():
        return [sys.getrefcount(array) for array in (*kinds[0].contacts, *kinds[0].plan)]

    before = references()
    for _ in range(3):
        solvers.choose_few(sim.rows, table, scratch, 1.0, 0, 0, 2.0, meeting)
        solvers.sweep_all(sim.rows, mobility, table, False, -1.0, scratch.changes[0], meeting)
    assert references() == before
    if not numba.config.DISABLE_JIT:  # what counts them is gone when the table is made: no address of it may be kept
        assert table.base[entries.WIDTH : entries.WIDTH + 2].tolist() == [0, 0]
