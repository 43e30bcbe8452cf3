"""A space of one's own: a ring, by the recipe in ARCHITECTURE.md; no kernel of the package changes."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import _jit
from contactdynamics._jit import kernel
from contactdynamics.rigid.contact_set import ContactSet
from contactdynamics.rigid.space import SPACES, Measures


class Ring(NamedTuple):
    """The x axis closed to a ring."""

    length: float


@kernel(inline=True)
def around(space, x, y, z):
    return x - space.length * np.rint(x / space.length), y, z


@kernel(inline=True)
def cell_on_ring(space, x, y, z, size):
    count = max(1, int(space.length / size))
    share = x / space.length
    return int((share - np.floor(share)) * count) % count, int(np.floor(y / size)), int(np.floor(z / size))


@kernel(inline=True)
def beside_on_ring(space, x, y, z, size):
    return x % max(1, int(space.length / size)), y, z


@pytest.fixture(autouse=True)
def ring():
    SPACES[Ring] = Measures(around, cell_on_ring, beside_on_ring)
    yield
    del SPACES[Ring]


def on_a_ring(places, speeds, length, restitution):
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.0, restitution=restitution)
    scene.add_many(0.1, material="m", position=[(x, 0) for x in places], velocity=[(v, 0) for v in speeds])
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-12, check=False)
    sim.contact_set = ContactSet(Ring(length))
    sim.derive()
    return sim


def test_balls_meet_across_the_border():
    # Equal balls that meet without loss exchange their velocities: one goes left over the border, one waits there.
    sim = on_a_ring([0.3, 9.8], [-1.0, 0.0], 10.0, 1.0)
    sim.run(until=0.2, progress=False)
    assert not len(sim.contacts.gap) and sim.velocities[:, 0] == pytest.approx([-1.0, 0.0])
    sim.run(until=0.5, progress=False)  # the gap of 0.3 is closed at t = 0.3
    assert sim.velocities[:, 0] == pytest.approx([0.0, -1.0], abs=1e-9)


def test_a_row_around_the_ring_never_comes_to_an_end():
    # Ten balls on a ring, one of them moving: it pushes the next one after a gap of 0.8, and so on; the last one finds
    # the first one 0.8 farther than it began. In open space the push would run away with the last ball.
    n, length = 10, 10.0
    sim = on_a_ring(np.arange(n) + 0.5, [1.0] + [0.0] * (n - 1), length, 1.0)
    gap = length / n - 0.2
    lap = (n - 1) * gap + 2 * gap  # of the push, at speed 1
    sim.run(until=round(lap + 0.1, 3), progress=False)
    moving = np.flatnonzero(np.abs(sim.velocities[:, 0]) > 0.5)
    assert len(moving) == 1 and sim.velocities[:, 0].sum() == pytest.approx(1.0, rel=1e-9)
    assert moving[0] == 0 and sim.failures == 0


def test_types_of_a_program_stay_out_of_the_cache():
    # Another program could not read the index of a kernel that names a type of this one.
    on_a_ring([0.3, 9.8], [-1.0, 0.0], 10.0, 1.0).step()
    assert not any(b"test_space" in index.read_bytes() for index in Path(_jit.CACHE).glob("rigid*/*.nbi"))
    assert any(b"contactdynamics" in index.read_bytes() for index in Path(_jit.CACHE).glob("rigid*/*.nbi"))
