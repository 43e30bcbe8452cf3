"""Blocks sorted in space: contacts are turned round where two bodies change places, and the motion stays."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_kinds import bed

import contactdynamics as cd
from contactdynamics.rigid import simulation
from contactdynamics.rigid.search.contract import Outlook
from contactdynamics.rigid.threads import ALONE

SCENES = ["polygons", "disks beside polygons", "polyhedra", "spheres beside polyhedra"]


def angular(sim):
    return sim.contact_set.searches[-1]


def table(sim):
    """The touches by the numbers of their bodies and the place, the lower number first: with the sign of that."""
    t, d, identity, rows = angular(sim).found, sim.model.dimension, sim.model.bodies.identity, {}
    for k in range(len(t.status)):
        i, j = int(identity[t.a[k]]), int(identity[t.b[k]])
        sign = -1.0 if k < t.planes and i > j else 1.0
        names = sorted(t.index[k, 2:4].tolist()) if d == 3 else []
        key = (min(i, j), max(i, j), *np.round(t.place[k, 1 + d :], 9).tolist())
        rows[key] = [t.status[k], t.lost[k], *names, *(sign * t.place[k, 1 : 1 + d]), *(sign * t.memory[k])]
    return rows


def find_again(sim):
    """Search at the present places, as a step does."""
    met, rows = sim.contact_set, sim.rows
    met.near.look(sim.model, rows, sim.time_step, False, ALONE)
    angular(sim).find(sim.model, met.near, Outlook(rows, rows, sim.time_step, 0.0, False, True), ALONE)


@pytest.mark.parametrize("name", SCENES)
def test_turned_touches_are_those_that_the_search_finds(name):
    """Bodies in another order: the search knows all its contacts by their new names, with their memory."""
    sim = bed(name, solver="nlgs", max_iterations=30)
    for _ in range(3):
        sim.step()
    find_again(sim)
    before = table(sim)
    order = np.random.default_rng(0).permutation(len(sim.rows))
    sim.contact_set.renumber(sim.roster.sort(order))
    sim.derive()
    turned = angular(sim).found
    assert len(turned.status) > 40 and np.count_nonzero(turned.status) > 30
    find_again(sim)
    found = angular(sim).found

    def named(t):
        return [tuple(row) for row in t.index.tolist()]

    assert sorted(named(turned)) == sorted(named(found))
    after = table(sim)
    assert before.keys() == after.keys()
    for key, row in before.items():
        np.testing.assert_allclose(after[key], row, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["disks beside polygons", "polyhedra"])
def test_only_the_order_in_memory_changes(monkeypatch, name):
    """The same motion with and without sorting, body by body, to the tolerance; the ledger stays closed."""
    plain, ordered = (bed(name, tolerance=1e-12, max_iterations=50_000) for _ in range(2))
    monkeypatch.setattr(simulation, "SORT_EVERY", 3)
    for limit, sim in ((10**9, plain), (2, ordered)):
        monkeypatch.setattr(simulation, "SORT_FROM", limit)
        for _ in range(8):
            sim.step()
    assert (np.diff(plain.bodies.identity) > 0).all() and (np.diff(ordered.bodies.identity) < 0).any()
    np.testing.assert_array_equal(ordered.identities, plain.identities)
    for one in ("positions", "velocities", "spins", "rotations"):
        np.testing.assert_allclose(getattr(ordered, one), getattr(plain, one), atol=2e-6, err_msg=one)
    assert ordered.energy.closure < 1e-10


def row_of(shape, **options):
    """Bodies of one material with grain, turned, beside each other in any order."""
    scene = cd.Scene(gravity=(0.0, 0.0, -9.81))
    scene.material("wood", density=700.0)
    scene.material("iron", density=700.0)
    scene.contact("wood", "wood", anisotropic=(0.1, 0.6), axis=(0, 1, 0))
    scene.contact("wood", "iron", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="iron", motion=cd.Drive(velocity=(0.3, 0.2, 0.0)))
    rng, quarter = np.random.default_rng(3), np.sqrt(0.5)
    for x in rng.permutation(12):
        turned = (quarter, quarter, 0, 0) if x % 3 else (1, 0, 0, 0)
        body = cd.Sphere(0.05) if shape is cd.Sphere else cd.Box(0.1)
        velocity = (0.5 - 0.08 * x, 0.3 * (-1) ** x, 0.0)
        scene.add(body, material="wood", position=(0.0999 * x, 0.0, 0.05), rotation=turned, velocity=velocity)
    return cd.Simulation(scene, time_step=1e-3, check=False, **options)


@pytest.mark.parametrize("shape", [cd.Sphere, cd.Box])
def test_the_axis_of_friction_stays_with_its_body(monkeypatch, shape):
    """Two bodies of one material: the axis is that of the one with the lower number, in whatever row it is."""
    monkeypatch.setattr(simulation, "SORT_EVERY", 2)
    for limit in (10**9, 2):
        monkeypatch.setattr(simulation, "SORT_FROM", limit)
        sim, seen = row_of(shape), []
        for _ in range(3):
            sim.step()
            rows = dict(zip(sim.identities.tolist(), range(len(sim.identities)), strict=True))
            contacts, turns = sim.contacts, Rotation.from_quat(sim.rotations, scalar_first=True)
            for pair, frame in zip(contacts.bodies.tolist(), contacts.frame, strict=True):
                if min(pair) == 0:
                    continue
                axes = [turns[rows[body]].apply((0, 1, 0)) for body in sorted(pair)]
                flat = [axis - (axis @ frame[0]) * frame[0] for axis in axes]
                np.testing.assert_allclose(frame[1], flat[0] / np.linalg.norm(flat[0]), atol=1e-2)
                seen.append(abs(flat[0] @ flat[1]))
        assert len(seen) > 20 and min(seen) < 0.1  # axes of two bodies differ, indeed
        assert limit > 2 or (np.diff(sim.bodies.identity) < 0).any()
