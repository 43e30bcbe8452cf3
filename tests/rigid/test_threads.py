"""Several threads: the same bits in every stage of a step, as many as a scene is worth, and none left behind."""

import gc
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import ranks_program

import contactdynamics as cd
import naive_rigid as twin
from contactdynamics._jit import kernel
from contactdynamics.rigid import contact_set, neighbours, simulation, solvers
from contactdynamics.rigid.entries import table
from contactdynamics.rigid.ranks import PAYS
from contactdynamics.rigid.space import OPEN
from contactdynamics.rigid.threads import ALONE, Team, cores, meet


def poured(**options):
    """A long box of disks with one end driven inwards, to which disks come, and from which some go; all bits."""
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, max_iterations=8, on_failure="ignore", **options)
    sim.before_step = ranks_program.pouring
    counts = []
    for _ in range(60):
        counts.append(sim.step().contacts)
    b, pairs, energy = sim.bodies, sim.contact_set.searches[0].found, sim.energy
    arrays = (sim.rows, b.position, b.orientation, pairs.first, pairs.second, pairs.impulse, pairs.status, pairs.lost)
    works = (energy.kinetic, energy.force_work, energy.drive_work, energy.created, energy.recovery_work)
    works += (*energy.normal_work, *energy.tangential_work)
    return [a.tobytes() for a in arrays], [w.hex() for w in map(float, works)], sim.report, counts


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_search_filling_books_and_motion_have_the_same_bits(penetration, monkeypatch):
    """With bodies that come, go and are sorted; the works of the ledger too: sums are taken in blocks."""
    monkeypatch.setattr(contact_set, "SMALL", 0)
    monkeypatch.setattr(simulation, "SORT_FROM", 50)
    monkeypatch.setattr(simulation, "SORT_EVERY", 40)
    one, two, three = (poured(penetration=penetration, threads=k) for k in (1, 2, 3))
    assert one == two == three and max(one[3]) > 50


@pytest.mark.parametrize("spacing", [1.2, 0.3])
def test_neighbour_lists_are_built_by_all_threads(spacing):
    """The same lists, those of fast balls too; where they are long, there is too little room at first."""
    rng = np.random.default_rng(3)
    n, rows, scene = 150, rng.normal(size=(150, 8)), cd.Scene(gravity=(0, 0, -9.81))
    rows[::40, :3] *= 30.0
    scene.material("m", density=1.0, friction=0.5)
    places = spacing * n ** (1 / 3) * rng.random((n, 3))
    scene.add_many(rng.uniform(0.2, 0.5, n), material="m", position=places)
    sim = cd.Simulation(scene, time_step=0.01, check=False)
    near = sim.contact_set.near
    near.place(sim.model)
    made = [neighbours.build(OPEN, near.spheres, rows, 0.01, 5.0, 0.2, (0, n), Team(k)) for k in (1, 2, 3)]
    one = made[0]
    assert (len(one.other) > 8 * n) == (spacing < 1.0)
    for lists in made[1:]:
        assert lists.start.tolist() == one.start.tolist() and lists.count.tolist() == one.count.tolist()
        for begin, count in zip(one.start, one.count, strict=False):
            assert lists.other[begin : begin + count].tolist() == one.other[begin : begin + count].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_threads_choose_the_same_contacts(seed):
    """Also those that sink; the largest power of two below which losses add up to no more than allowed is the bound."""
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3)
    for _ in range(30):
        sim.step()
    rng, kinds = np.random.default_rng(seed), (sim.contact_set.equations[0].kind,)
    contacts, plan = kinds[0]
    scratch = solvers.scratch_arrays(sim.rows, 1)
    shares = plan.shares[:, seed % 2]
    shares[:] = np.exp(rng.normal(-20.0, 8.0, len(shares)))
    shares[rng.random(len(shares)) < 0.05] = (np.inf, 0.0, 5e-324)[seed]
    for allowed in (0.0, 1e-7, np.median(shares), 1e300, np.inf, np.nan):
        limit = math.inf  # none is small enough for another bound
        for exponent in range(-1022, 1024):
            if math.fsum(shares[shares < 2.0 ** min(exponent + 1, 1023)]) > allowed:
                limit = 2.0**exponent
                break
        hot = np.zeros(len(sim.rows), dtype=bool)
        hot[contacts.a[shares >= limit]] = hot[contacts.b[shares >= limit]] = True
        hot &= scratch.free
        some = hot[contacts.a] | hot[contacts.b]
        near = np.zeros_like(hot)
        near[contacts.a[some]] = near[contacts.b[some]] = True
        for threads in (1, 2, 3, 8):
            plan.few[:], scratch.losses[:] = 0, 99
            scratch.hot[scratch.movable] = scratch.near[:] = True
            arguments = sim.rows, table(kinds), scratch, allowed, seed % 2, 0, 2.0
            assert Team(threads).share(solvers.choose_few, *arguments) == (np.count_nonzero(some), len(some))
            for begin, end, after in zip(plan.cuts, plan.few_ends, plan.cuts[1:], strict=False):
                assert plan.few[begin:end].tolist() == twin.in_turns(plan.order[begin:after], set(np.flatnonzero(some)))
            begins = [len(scratch.movable) * k // threads for k in range(threads)]
            bodies = [scratch.bodies[b : b + n] for b, n in zip(begins, scratch.found[:, 2], strict=False)]
            assert np.concatenate(bodies).tolist() == np.flatnonzero(near & scratch.free).tolist()


def test_auto_takes_all_cores_for_what_is_large():
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads="auto")
    assert sim.threads == "auto" and sim._team.threads == min(8, len(cores()))
    assert sim._team.of(PAYS, contact_set.SMALL) is ALONE and sim._team.of(PAYS + 1, contact_set.SMALL) is sim._team
    sim.step()


def test_a_run_goes_on_with_auto(tmp_path):
    path = tmp_path / "run.h5"
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads="auto", recorders=cd.HDF5(path))
    sim.run(until=0.003, progress=False)
    assert cd.Simulation.from_file(path).threads == "auto"


@kernel
def _fails(rows, who, meeting):
    """One worker raises, the others wait for it."""
    if meeting.thread == who:
        raise ValueError("one of them")
    meet(meeting, rows)
    meet(meeting, rows)
    return meeting.thread


@kernel
def _meets(rows, meeting):
    meet(meeting, rows)
    return meeting.threads


@pytest.mark.parametrize("who", [0, 1, 2])
def test_an_error_of_one_thread_lets_the_others_go(who):
    team, rows = Team(3), np.zeros((1, 8))
    with pytest.raises(ValueError, match="one of them"):
        team.share(_fails, rows, who)
    assert team.share(_meets, rows) == 3  # and they work on


def test_no_thread_is_left_behind(monkeypatch):
    """Neither where a simulation is done, nor where a step raises."""
    monkeypatch.setattr(contact_set, "SMALL", 0)

    def breaks(sim):
        if sim.steps == 3:
            raise RuntimeError("in the middle")

    for function in ([], [breaks]):
        sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads=3)
        sim.before_step = function
        for _ in range(5):
            try:
                sim.step()
            except RuntimeError:
                break
        pool = sim._team._crew.threads
        assert pool and all(thread.is_alive() for thread in pool)
        del sim
        gc.collect()
        for thread in pool:
            thread.join(10)
        assert not any(thread.is_alive() for thread in pool)


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = sys.argv[1:]
import ranks_program
import contactdynamics as cd
from contactdynamics.rigid import contact_set
contact_set.SMALL = 0
sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads=2)
for _ in range(3):
    sim.step()
child = os.fork()
for _ in range(3):
    sim.step()
assert child == 0 or os.waitpid(child, 0)[1] == 0  # one prints after the other: an unbuffered line is written in parts
print(sim.rows.tobytes().hex()[:4000], flush=True)
if child == 0:
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own():
    """It would wait for those of its parent for ever."""
    folder = str(Path(ranks_program.__file__).parent)
    done = subprocess.run([sys.executable, "-c", FORK, folder], capture_output=True, text=True, timeout=300)
    lines = done.stdout.split()
    assert done.returncode == 0 and len(lines) == 2 and lines[0] == lines[1], done.stderr
