"""`Simulation(save_problems=...)`: the hardest steps of a run as files."""

import os

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.files.problems import description
from contactdynamics.rigid.hardest import MOST, NAME
from contactdynamics.state import FREE

pytestmark = pytest.mark.filterwarnings("ignore:.*were not solved to the tolerance")


def falling(d=2, kind="balls"):
    """Some bodies that fall into a box, one after another."""
    scene = cd.Scene(gravity=(0, -9.81) if d == 2 else (0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    cd.packings.box(scene, material="m", low=(0,) * d, high=(1.0,) * d)
    if kind == "blocks":
        for k in range(4):
            scene.add(cd.Rectangle(0.3, 0.1), material="m", position=(0.5 + 0.02 * k, 0.051 + 0.103 * k))
    else:
        cd.packings.lattice(scene, material="m", sizes=0.1, counts=(3,) * d, origin=(0.12,) * d, spacing=0.21, seed=1)
    return scene


def simulation(tmp_path, folder="hard", d=2, kind="balls", **options):
    options = {"time_step": 2e-3, "tolerance": 1e-7, "max_iterations": 60, "on_failure": "ignore"} | options
    return cd.Simulation(falling(d, kind), save_problems=tmp_path / folder, **options)


def files(folder):
    """Step, sweeps and residual as the names say, by step."""
    found = {}
    for name in os.listdir(folder):
        assert NAME.fullmatch(name), name
        found[int(NAME.fullmatch(name)[1])] = name
    return found


@pytest.mark.parametrize("d, kind, mode", [(2, "balls", "moreau"), (3, "balls", "anticipate"), (2, "blocks", "moreau")])
def test_the_hardest_steps_are_kept(tmp_path, d, kind, mode):
    sim = simulation(tmp_path, d=d, kind=kind, penetration=mode)
    reports, after = {}, {}
    for k in range(1, 81):
        sim.step()
        if sim.report.contacts:
            reports[k] = sim.report
            free = sim.bodies.kind == FREE
            after[k] = np.column_stack([sim.velocities[free], sim.spins[free].reshape(free.sum(), -1)]).ravel()
    by_work = sorted(reports, key=lambda k: (-reports[k].iterations, -reports[k].residual, k))[:MOST]
    by_residual = sorted(reports, key=lambda k: (-reports[k].residual, -reports[k].iterations, k))[:MOST]
    found = files(tmp_path / "hard")
    assert set(found) == set(by_work) | set(by_residual) and len(found) <= 2 * MOST
    for k, name in found.items():
        report, path = reports[k], tmp_path / "hard" / name
        assert int(NAME.fullmatch(name)[2]) == report.iterations
        assert f"step {k} from t = " in description(path) and repr(report.residual) in description(path)
        problem, (solution, _) = cd.read_problem(path), cd.read_solution(path)
        assert problem.contacts == report.contacts and problem.components == d
        # the velocities that the solution gives the bodies are those of the step
        v = problem.body_velocities(solution.impulses)
        assert np.abs(v - after[k]).max() < 1e-11 * np.abs(problem.bodies.free).max()


def test_a_file_is_the_problem_of_its_step(tmp_path):
    sim = simulation(tmp_path, kind="blocks")
    problems = {}
    for k in range(1, 31):
        problems[k] = sim.contact_problem()
        sim.step()
    for k, name in files(tmp_path / "hard").items():
        kept, asked = cd.read_problem(tmp_path / "hard" / name), problems[k]
        assert np.allclose(kept.velocity, asked.velocity, rtol=0, atol=1e-13)
        assert np.allclose(kept.delassus, asked.delassus, rtol=1e-13, atol=0)
        assert (kept.friction == asked.friction).all() and np.allclose(kept.gap, asked.gap, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["balls", "blocks"])
def test_a_resumed_run_keeps_the_same_files(tmp_path, kind):
    whole = simulation(tmp_path, "whole", kind=kind).run(until=0.2)
    # cut: the process dies some steps after the last frame, which it had kept
    every, last = (30, 71) if kind == "balls" else (10, 28)
    cut = simulation(tmp_path, "cut", kind=kind, recorders=cd.HDF5(tmp_path / "run.h5", every=every))
    for _ in range(last):
        cut.recorders[0]._next_write = 0.0  # at each frame
        cut.step()
    assert cd.open(tmp_path / "run.h5").frame_steps[-1] == 2 * every
    assert max(files(tmp_path / "cut")) > 2 * every
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    assert again.save_problems == str(tmp_path / "cut")
    again.run(until=0.2)
    assert files(tmp_path / "cut") == files(tmp_path / "whole") and again.steps == whole.steps
    for name in files(tmp_path / "cut").values():
        one, two = (cd.read_problem(tmp_path / folder / name) for folder in ("cut", "whole"))
        assert (one.velocity == two.velocity).all() and (one.bodies.free == two.bodies.free).all()


def test_a_step_made_again_otherwise_replaces_its_file(tmp_path):
    first = simulation(tmp_path, recorders=cd.HDF5(tmp_path / "run.h5", every=20)).run(until=0.08)
    del first
    before = files(tmp_path / "hard")
    again = cd.Simulation.from_file(tmp_path / "run.h5", max_iterations=7)
    again.run(until=0.16)
    for k, name in files(tmp_path / "hard").items():
        assert before.get(k) == name or int(NAME.fullmatch(name)[2]) <= 7


def test_wrong_folders_and_laws(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "no" / "deeper", 3):
        with pytest.raises(cd.InputError, match="save_problems"):
            cd.Simulation(falling(), time_step=1e-3, save_problems=folder)
    scene = falling()
    scene.contact("m", "m", friction=0.5, rolling=0.01)
    with pytest.raises(cd.InputError, match="laws have rolling"):
        cd.Simulation(scene, time_step=1e-3, save_problems=tmp_path / "hard")
    assert os.listdir(tmp_path) == ["file"]
    simulation(tmp_path, kind="blocks").run(until=0.1)
    with pytest.raises(cd.InputError, match="holds problems of an earlier run"):
        simulation(tmp_path, kind="blocks").run(until=0.1)
