"""`cdyn bench solvers`: profiles, tables, other codes, and the collection of problems."""

import csv
import importlib.util
import json
import subprocess

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import bench
from contactdynamics.bench import solvers
from contactdynamics.bench.solvers import Run, profile
from contactdynamics.files.problems import description
from contactdynamics.problem.residual import judge


def row_of_balls(d, m=5):
    """Balls in a row that run into a wall, with friction across."""
    jacobian = np.zeros((m * d, m * d))
    for k in range(m):
        jacobian[k * d : k * d + d, k * d : k * d + d] = np.eye(d)
        if k:
            jacobian[k * d : k * d + d, (k - 1) * d : k * d] = -np.eye(d)
    free = np.tile([-1.0, 0.2, 0.1][:d], m)
    free[::d] *= np.arange(1, m + 1)
    return cd.ContactProblem.of_bodies(
        cd.BodyForm(np.eye(m * d), jacobian, free, np.zeros((m, d))), np.full((m, 2), 0.3)
    )


def shared():
    """The module of the scripts of other codes."""
    spec = importlib.util.spec_from_file_location("shared", solvers.SCRIPTS / "problems.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_profile_of_three_solvers():
    # a: 1 s and 4 s; b: 2 s and 2 s; c fails one and needs 8 s for the other; a third problem nobody solves.
    seconds = {"a": (1.0, 4.0), "b": (2.0, 2.0), "c": (8.0, None)}
    runs = [Run(f"p{k}", 3, name, 1e-4, t is not None, 0.0, t or 9.0, 1)
            for name, times in seconds.items() for k, t in enumerate(times)]  # fmt: skip
    runs += [Run("p2", 3, name, 1e-4, False, 1.0, 9.0, 1) for name in seconds]
    curves = profile(runs, 1e-4)
    third = 1 / 3
    assert curves["a"] == pytest.approx(np.array([(1.0, third), (2.0, 2 * third)]))
    assert curves["b"] == pytest.approx(np.array([(1.0, third), (2.0, 2 * third)]))
    assert curves["c"] == pytest.approx(np.array([(8.0, third)]))


def test_ours_on_a_folder(tmp_path):
    folder = tmp_path / "problems"
    folder.mkdir()
    cd.write_problem(row_of_balls(2), folder / "two.hdf5")
    cd.write_problem(row_of_balls(3), folder / "three.dat")
    lines = []
    code = bench.run("solvers", str(folder), tmp_path / "out", lines.append, {"peers": "false"})
    assert code == 0 and any("two: 5 contacts, 2D" in line for line in lines)
    results = json.loads((tmp_path / "out/summary.json").read_text())["results"]
    assert results["problems"] == 2 and results["auto 1e-08 solved"] == 2 and results["nlgs 1e-04 solved"] == 2
    with (tmp_path / "out/solvers_runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["problem"] for row in rows} == {"two", "three"} and {row["success"] for row in rows} == {"True"}
    assert all(float(row["residual"]) <= float(row["tolerance"]) for row in rows)
    with (tmp_path / "out/solvers_profile.csv").open() as file:
        steps = list(csv.DictReader(file))
    assert max(float(step["share"]) for step in steps) == 1.0 and min(float(step["tau"]) for step in steps) == 1.0
    assert (tmp_path / "out/solvers.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "settings, words",
    [({"tolerances": "small"}, "tolerances"), ({"tolerances": "1e-4,2"}, "out of range"),
     ({"seconds": "0"}, "above 0"), ({"only": "nothing-like-it"}, "There is no problem with 'nothing-like-it'")],
)  # fmt: skip
def test_wrong_settings(tmp_path, settings, words):
    with pytest.raises(cd.InputError, match=words):
        bench.run("solvers", None, tmp_path / "out", lambda line: None, settings | {"peers": "false"})


def test_a_code_that_is_not_there_is_told():
    lines = []
    assert solvers._present(lines.append, {"siconos": "nowhere", "pinocchio": "nowhere"}) == {}
    assert len(lines) == 2 and all("is left out" in line for line in lines)


@pytest.mark.parametrize("d", [2, 3])
def test_other_codes_are_judged_alike(tmp_path, rng, d):
    problem = row_of_balls(d)
    job = solvers._job(problem, "NSGS", [1e-4], tmp_path)
    other = shared().Problem(job["arrays"])
    for _ in range(10):
        p = rng.normal(size=(5, d))
        assert other.residual(p.ravel()) == pytest.approx(judge(problem, p, 1e-4).residual, rel=1e-10)


def test_a_third_component_that_nothing_moves(tmp_path):
    # The problem in 2D, told in 3D to codes that know no other, has the same solution.
    problem = row_of_balls(2)
    job = solvers._job(problem, "NSGS", [1e-4], tmp_path)
    flat, wide = cd.read_problem(job["plane"]), cd.read_problem(job["text"])
    assert (flat.components, wide.components) == (2, 3)
    one, two = cd.solve(flat, tolerance=1e-12)[0], cd.solve(wide, tolerance=1e-12)[0]
    assert np.allclose(two[:, :2], one, rtol=0, atol=1e-10) and not two[:, 2].any()


def has(python, module):
    try:
        return not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not has("/usr/bin/python3", "siconos.numerics"), reason="Siconos is not here")
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("solver", ["Siconos NSGS", "Siconos PROX", "Siconos ADMM"])
def test_siconos_reads_and_solves_our_problems(d, solver):
    command = ["/usr/bin/python3", str(solvers.SCRIPTS / "siconos_problems.py")]
    runs, version = solvers._theirs("row", row_of_balls(d), solver, command, [1e-4, 1e-8], 20.0)
    assert version and [run.success for run in runs] == [True, True]


def test_the_collection():
    files = sorted(solvers.COLLECTION.glob("*.hdf5"))
    kinds = ("arch", "bridge", "wall", "packing", "chain", "heap", "frame")
    assert {path.name.split("-")[0] for path in files} == set(kinds)
    for path in files:
        problem = cd.read_problem(path)
        assert problem.bodies is not None and problem.contacts >= 25 and path.stat().st_size < 100_000
        assert len(description(path)) > 40
        report = cd.solve(problem, tolerance=1e-8)[1]
        assert report.converged and not report.evidence, path.name
