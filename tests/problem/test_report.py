"""The report a person can read, and the command that prints it."""

import json
import math
import os

import matplotlib.pyplot as plt
import numpy as np
import pytest

import contactdynamics as cd
import naive
from contactdynamics.cli import main
from contactdynamics.problem.residual import NO_CONTACT, judge, pace, sentence
from contactdynamics.state import SolveReport


def row_of_blocks(count=6, friction=0.5):
    """Falling blocks between two walls that move along: sweeps run to and fro along the row."""
    n, m = 2 * count, count + 1
    jacobian = np.zeros((2 * m, n))
    for k in range(m):
        for body, sign in ((k - 1, -1.0), (k, 1.0)):
            if 0 <= body < count:
                jacobian[2 * k, 2 * body] = jacobian[2 * k + 1, 2 * body + 1] = sign
    drift = np.zeros((m, 2))
    drift[0, 0], drift[-1, 0] = -1.0, 1.0
    free = np.tile([0.0, -0.2], count)
    return cd.ContactProblem.of_bodies(cd.BodyForm(np.eye(n), jacobian, free, drift), np.full((m, 2), friction))


def told(history, **fields):
    """A report with this history of the residual."""
    iterations, residual = history[-1]
    report = SolveReport(residual, iterations, False, 5, 2, 0.0, 0.0, 0.0, "", tolerance=1e-8, solver="nlgs",
                         stages=(("nlgs", iterations),), history=tuple(history))  # fmt: skip
    return report._replace(**fields)


# ---- words -----------------------------------------------------------------------------------------------------------


def test_the_report_reads():
    _, report = cd.solve(row_of_blocks(), solver="nlgs")
    text = str(report)
    assert text.splitlines()[0] == report.message and report.message.startswith("Solved: residual")
    for words in ("natural map", "relative to q", "as Siconos measures", "worst contact", "history", "nlgs"):
        assert words in text
    assert f"{report.residual_siconos:.1e}" in text and f"{report.worst}" in text
    assert "\n" not in repr(report) and len(repr(report)) <= 160
    assert "No active contact." == str(NO_CONTACT)


def test_a_steady_pace_is_foretold():
    # Ten times smaller every 100 sweeps, now 1e-4: 400 more to 1e-8.
    report = told([(k, 10.0 ** (-k / 100)) for k in range(10, 401, 10)])
    assert pace(report.history) == pytest.approx(-0.01)
    said = sentence(report)
    assert "tenfold every 100 sweeps" in said and "raise max_iterations to 960" in said and 'solver="auto"' in said


def test_a_cycle_is_told():
    said = sentence(told([(k, 1e-3 * (1 + 0.1 * math.sin(k))) for k in range(1, 200)]))
    assert (
        "no longer falls (best 9.0e-04)" in said
        and "more sweeps will not help" in said
        and "max_iterations" not in said
    )


def test_other_cases_of_advice():
    assert "rounding leaves" in sentence(told([(k, 1e-14) for k in range(1, 50)], tolerance=1e-16))
    assert "no finite numbers" in sentence(told([(1, math.nan)]))
    assert sentence(told([(9, 1e-3)], evidence="two walls approach each other")) == (
        "No solution exists: two walls approach each other."
    )
    stuck = told([(k, 1e-3) for k in range(1, 50)], solver="auto", stages=(("interior", 49),))
    assert "iterations" in sentence(stuck) and "sweeps" not in sentence(stuck) and "shorten the step" in sentence(stuck)


@pytest.mark.parametrize("solver", ["nlgs", "accelerated"])
def test_sweeps_that_do_not_end_name_the_other_method(solver):
    # two contacts that nearly share their normal: sweeps gain a millionth each
    w = np.array([[1.0, -1 + 1e-6], [-1 + 1e-6, 1.0]])
    problem = cd.ContactProblem(w, np.array([[-1.0], [-2.0]]), np.zeros((2, 2)), np.zeros(2))
    report = cd.solve(problem, solver=solver, tolerance=1e-13, max_iterations=60)[1]
    assert not report.converged and report.solver == solver
    assert 'take solver="auto"' in report.message and report.message == sentence(report)


def test_a_tower_whose_impulses_hide_the_step():
    # Impulses a million times what stops the free motion: relative to them a residual of 1e-8 looks solved.
    w = np.array([[1.0, -1 + 1e-6], [-1 + 1e-6, 1.0]])
    problem = cd.ContactProblem(w, np.array([[-1.0], [-1.0]]), np.zeros((2, 2)), np.zeros(2))
    exact = np.linalg.solve(w, [1.0, 1.0])[:, None]
    report = judge(problem, exact * (1 + 1e-7), 1e-6)
    assert report.converged and report.residual_free > 1e-8
    report = judge(problem, exact + np.array([[0.02], [-0.02]]), 1e-6)
    assert report.converged and "take a smaller tolerance" in report.message
    assert "take a smaller tolerance" not in judge(problem, exact, 1e-6).message


# ---- rank ------------------------------------------------------------------------------------------------------------


def test_redundancy_of_a_table():
    # A rigid block on four corners in 3D: 12 components, 6 freedoms.
    corners = np.array([(x, y, -0.5) for x in (-1, 1) for y in (-1, 1)], dtype=float)
    axes = np.array([(0, 0, 1), (1, 0, 0), (0, 1, 0)], dtype=float)
    rows = [np.concatenate([e, np.cross(r, e)]) for r in corners for e in axes]
    bodies = cd.BodyForm(np.diag([2.0, 2, 2, 1, 1, 3]), np.array(rows), np.zeros(6), np.zeros((4, 3)))
    problem = cd.ContactProblem.of_bodies(bodies, np.full((4, 2), 0.5))
    found = problem.redundancy()
    assert (found.rows, found.rank, found.free) == (12, 6, 6)
    values = np.linalg.eigvalsh(problem.delassus)
    assert found.condition == pytest.approx(values[-1] / values[6], rel=1e-9)
    assert (naive.velocities(problem.delassus, problem.velocity, np.zeros((4, 3))) == 0).all()


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_convergence_is_drawn():
    _, report = cd.solve(row_of_blocks(), solver="nlgs")
    axes = report.plot()
    line = axes.get_lines()[0]
    assert axes.get_yscale() == "log" and line.get_xdata().tolist() == [k for k, _ in report.history]
    assert line.get_ydata().tolist() == [r for _, r in report.history]
    two = report._replace(stages=(("nlgs", 3), ("interior", report.iterations - 3)))
    labels = [text.get_text() for text in two.plot().get_legend().get_texts()]
    assert labels[0] == "nlgs, 3" and labels[1].startswith("interior") and labels[2].startswith("tolerance")
    plt.close("all")
    with pytest.raises(cd.InputError, match="no history"):
        NO_CONTACT.plot()
    assert "<img" in report._repr_html_() and "<img" not in NO_CONTACT._repr_html_()


# ---- cdyn solve ------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["solve", *map(str, arguments)])
        captured = capsys.readouterr()
        return end.value.code, captured.out, captured.err

    return run


def test_a_file_is_solved(command, tmp_path):
    problem = row_of_blocks()
    for name in ("row.hdf5", "row.dat"):
        cd.write_problem(problem, name)
        code, out, err = command(name, "--rank")
        assert (code, err) == (0, "") and out.startswith("Solved") and "rank" in out
        assert "written to results/row/" in out
        summary = json.loads((tmp_path / "results/row/summary.json").read_text())
        results = summary["results"]
        assert summary["passed"] and results["converged"] and results["contacts"] == 7
        assert results["residual"] <= 1e-8 and results["solver"] == "auto" and results["iterations"] > 0
        assert results["cpu_seconds"] >= 0 and results["redundancy"]["rows"] == 14
        assert sorted(os.listdir("results/row")) == ["convergence.png", "solution.hdf5", "summary.json"]
        solution, _ = cd.read_solution("results/row/solution.hdf5")
        back = cd.read_problem("results/row/solution.hdf5")
        expected = naive.residual(back.delassus, back.velocity, back.friction, solution.impulses)
        assert expected == pytest.approx(results["residual"], rel=1e-3, abs=1e-14)


def test_a_problem_that_is_not_solved(command, tmp_path):
    cd.write_problem(row_of_blocks(20), "row.hdf5")
    code, out, _ = command("row.hdf5", "--solver", "nlgs", "--max-iterations", 3, "--tolerance", 1e-12, "--out", "here")
    assert code == 1 and out.startswith("Not solved") and "raise max_iterations" in out
    results = json.loads((tmp_path / "here/summary.json").read_text())["results"]
    assert not results["converged"] and results["iterations"] == 3 and results["solver"] == "nlgs"
    assert (tmp_path / "here/solution.hdf5").exists()


def test_wrong_input_of_the_command(command, tmp_path):
    cd.write_problem(row_of_blocks(), "row.hdf5")
    (tmp_path / "cut.hdf5").write_bytes((tmp_path / "row.hdf5").read_bytes()[:900])
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/summary.json").write_text('{"experiment": "pile"}')
    for arguments, words in (
        (("nowhere.hdf5",), "There is no file nowhere.hdf5"),
        (("cut.hdf5",), "cut off or no HDF5"),
        (("row.hdf5", "--solver", "nwton"), "There is no solver 'nwton'; choose auto, interior, accelerated, nlgs"),
        (("row.hdf5", "--tolerance", "0"), "tolerance is 0.0"),
        (("row.hdf5", "--tolerance", "small"), "small"),
        (("row.hdf5", "--max-iterations", "0"), "max_iterations is 0"),
        (("row.hdf5", "--out", "taken"), "holds other results"),
        (("row.hdf5", "--out", "row.hdf5"), "is a file"),
        ((), "FILE"),
    ):
        code, out, err = command(*arguments)
        assert code == 2 and out == "" and words in err and err.count("\n") == 1 and "Traceback" not in err
    assert sorted(os.listdir(tmp_path)) == ["cut.hdf5", "row.hdf5", "taken"]  # nothing half-written
