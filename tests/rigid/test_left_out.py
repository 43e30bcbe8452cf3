"""With anticipation, after the solution of a step: pairs that were left out of it, and lists that keep those within."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.rigid.search.contract import Outlook
from contactdynamics.rigid.threads import ALONE

H, R = 1e-3, 0.01


def cloud(count: int, seed: int) -> cd.Simulation:
    """Balls at random near to each other, in a corner of two planes, one of which moves; at random velocities."""
    rng = np.random.default_rng(seed)
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Plane((1, 0, 0)), material="m", motion=cd.Drive(velocity=(0.1, 0.0, 0.0)))
    place = np.argwhere(np.ones((4, 4, 4)))[:count] * 2.06 * R + 1.1 * R + rng.uniform(0, 0.05 * R, (count, 3))
    scene.add_many(R, material="m", position=place, velocity=rng.normal(0, 0.2, (count, 3)))
    return cd.Simulation(scene, time_step=H, penetration="anticipate", check=False)


@pytest.mark.parametrize("seed", range(4))
def test_who_may_close_is_who_would_be_found(seed):
    """The look against the whole search, with few pairs known, over velocities from slow to fast."""
    sim, rng, seen = cloud(60, seed), np.random.default_rng(seed), set()
    sim.step()
    met, search = sim.contact_set, sim.contact_set.searches[0]
    met.near.place(sim.model)
    for size in np.geomspace(1e-5, 0.3, 25):
        rows = sim.rows.copy()
        rows[2:, :3] = rng.normal(0, size, (60, 3))
        met.near.follow(rows, H, True)
        known, told = len(search.status), search.may_close(met.near, rows, H)
        found = search.find(sim.model, met.near, Outlook(rows, rows, H, 0.0, True, True), ALONE)
        assert told == (sum(found.values()) > known)
        seen.add(told)
    assert seen == {False, True}


def test_lists_keep_the_pairs_by_which_a_step_was_found():
    """Two balls that were fast enough to meet and are slow now, while many others have become fast."""
    sim = cloud(60, 1)
    met = sim.contact_set
    near, slow = met.near, sim.rows.copy()
    near.place(sim.model)
    slow[:, :3] = 0.0
    fast = slow.copy()
    places = near.places
    i, j = 0, 1
    way = places[j] - places[i]
    places[j] += 1.5 * R * way / np.linalg.norm(way)
    fast[2 + i, :3], fast[2 + j, :3] = 400.0 * way, -400.0 * way
    near.lists = None
    near.follow(fast, H, True)
    now = slow.copy()
    now[12:, 0] = 1.6  # beyond the margins of all but some

    def listed():
        return j in near.lists.other[near.lists.start[i] : near.lists.start[i] + near.lists.count[i]]

    assert listed()
    near.follow(now, H, True, fast)
    assert listed()
    near.lists = None
    near.follow(now, H, True)
    assert not listed()  # what happens without
