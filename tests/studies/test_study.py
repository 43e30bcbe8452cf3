"""Studies: every combination once, in its folder and in the table, whatever is cut off, fails or dies."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import cli
from contactdynamics.studies import grid
from contactdynamics.studies.runs import Study

STONE = '''"""The fall of a stone.

For studies.
"""
import math, os, pathlib, signal, time
import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "none"
PARAMETERS = Options(
    height=Option(1.0, "height of the fall", "m", above=0, most=100),
    seed=Option(1, "number of the run", least=0),
    word=Option("stone", "what falls"),
    place=Option((0.0, 0.0), "where", "m"),
    wait=Option(0.0, "time to wait", "s", least=0),
)
QUICK = {"height": 0.5}


def build(p):
    with open(pathlib.Path(__file__).with_name("log"), "a") as log:
        log.write("run\\n")
    time.sleep(p["wait"])
    if p["seed"] == 13:
        raise cd.InputError("Number 13 brings bad luck; take another.")
    if p["seed"] == 14:
        os.kill(os.getpid(), signal.SIGKILL)
    if p["seed"] == 15:
        return 1 / 0
    return math.sqrt(2 * p["height"] / 9.81) + 0.01 * p["seed"]


def check(t, p):
    results = {"time": t, "list": [1, 2], "what": p["word"], "height": -1.0}
    return Verdict(results, [Row("time", t, t, p["seed"] != 3)])


def figure(t, p):
    from matplotlib.figure import Figure
    return Figure()
'''


@pytest.fixture
def stone(tmp_path, monkeypatch):
    """The path of an experiment that is computed at once; runs are counted in the file ``log`` beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stone.py").write_text(STONE)
    return tmp_path / "stone.py"


def runs(stone) -> int:
    log = stone.with_name("log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def here(stone, parameters, **options) -> Study:
    """A study in this process."""
    with ThreadPoolExecutor(1) as pool:
        return cd.study(str(stone), parameters, executor=pool, **options)


def test_every_combination_has_a_folder_and_a_row(stone):
    table = here(stone, {"height": "0.5:2:4", "seed": [1, 2, 3], "word": "pebble"}, out="all")
    assert len(table) == runs(stone) == 12 and table.varied == ["height", "seed"]
    with open("all/study.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    for row in rows:
        height, seed = float(row["height"]), int(row["seed"])
        assert float(row["time"]) == pytest.approx((2 * height / 9.81) ** 0.5 + 0.01 * seed)
        assert row["word"] == row["what"] == "pebble" and row["error"] == "" and row["place"] == "[0.0, 0.0]"
        assert row["passed"] == ("false" if seed == 3 else "true")
        summary = json.loads((Path("all") / row["folder"] / "summary.json").read_text())
        assert summary["parameters"]["height"] == height and summary["results"]["list"] == [1, 2]
    assert {(float(r["height"]), int(r["seed"])) for r in rows} == {(h, s) for h in (0.5, 1, 1.5, 2) for s in (1, 2, 3)}


def test_means_and_deviations(stone):
    table = here(stone, {"height": [1.0, 2.0], "seed": "1..4"})
    x, mean, deviation, count = table.means("time", "height")
    assert x.tolist() == [1.0, 2.0] and count.tolist() == [4, 4]
    assert mean == pytest.approx((2 * x / 9.81) ** 0.5 + 0.025)
    assert deviation == pytest.approx(0.01 * np.std([1, 2, 3, 4], ddof=1))
    ax = table.plot("time", "height")
    assert ax.get_xlabel() == "height" and ax.get_ylabel() == "time"
    with pytest.raises(cd.InputError, match="no column 'tme'; it has"):
        table.plot("tme", "height")
    with pytest.raises(cd.InputError, match="what is no number"):
        table.plot("what", "height")


def test_what_is_done_is_not_done_again(stone):
    here(stone, {"height": [1.0, 2.0], "seed": [1, 2]})
    assert runs(stone) == 4
    here(stone, {"height": [1, 2.0], "seed": [1, 2]})  # 1 is 1.0
    assert runs(stone) == 4
    table = here(stone, {"height": [1.0, 2.0, 3.0], "seed": [1, 2]})
    assert runs(stone) == 6 and len(table) == 6
    assert len(here(stone, {"height": 3.0, "seed": 2})) == 1 and runs(stone) == 6
    assert len(Path("results/study-stone/study.csv").read_text().splitlines()) == 7  # the file has all
    # a run that was cut off has no summary; one of other parameters is not taken for it
    folder = Path("results/study-stone/height=3.0,seed=2")
    (folder / "summary.json").unlink()
    changed = Path("results/study-stone/height=3.0,seed=1/summary.json")
    changed.write_text(changed.read_text().replace('"word": "stone"', '"word": "sand"'))
    here(stone, {"height": [1.0, 2.0, 3.0], "seed": [1, 2]})
    assert runs(stone) == 8


def test_a_run_that_fails_is_a_row_with_its_sentence(stone):
    table = here(stone, {"seed": [12, 13, 15]})
    errors = {row["seed"]: row["error"] for row in table.rows}
    assert errors[12] is None and errors[13] == "Number 13 brings bad luck; take another."
    assert errors[15] == "ZeroDivisionError: division by zero"
    assert np.isnan(table.column("time")).tolist() == [False, True, True]
    assert runs(stone) == 3
    here(stone, {"seed": [12, 13, 15]})
    assert runs(stone) == 3
    here(stone, {"seed": [12, 13, 15]}, again=True)
    assert runs(stone) == 5


def test_a_process_that_dies_takes_no_other_run_with_it(stone):
    table = cd.study(str(stone), {"seed": [1, 2, 14, 4]}, workers=2)
    errors = [row["error"] for row in table.rows]
    assert errors[2] is not None and "died" in errors[2] and [errors[k] for k in (0, 1, 3)] == [None] * 3


def test_the_command(stone, capsys):
    arguments = ["study", "stone.py", "--set", "height=1,2", "--set", "seed=13..14", "--plot", "time:height"]
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--quick", "--workers", "1", "--set", "seed=12..13"])
    said = capsys.readouterr()
    assert stop.value.code == 1 and "4 runs, 2 failed" in said.out
    assert "Number 13 brings bad luck" in said.err and "Traceback" not in said.err
    assert Path("results/study-stone/study.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--workers", "0"], "workers=0"),
        (["--set", "hight=1"], "did you mean height?"),
        (["--set", "height=x"], "not a number"),
        (["--set", "height=1:2:0"], "no spread"),
        (["--set", "height=1:nan:3"], "no spread"),
        (["--set", "seed=1:2:4"], "whole number"),
        (["--set", "seed=5..1"], "no numbers"),
        (["--set", "height="], "no value"),
        (["--set", "height=-1,2"], "out of range"),
        (["--set", "height=0:1:1000", "--set", "seed=1..1000"], "runs"),
        (["--plot", "time"], "RESULT:OPTION"),
        (["--plot", "time:hight"], "no option 'hight'"),
        (["--workers", "2", "--mpi"], "exclude"),
        (["--out", "stone.py"], "is a file"),
        (["--out", "."], "not empty"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(stone, capsys, arguments, sentence):
    before = sorted(stone.parent.rglob("*"))
    with pytest.raises(SystemExit) as stop:
        cli.main(["study", "stone.py", *arguments])
    said = capsys.readouterr()
    assert stop.value.code == 2 and sentence in said.err and said.err.startswith("cdyn: ")
    after = [path for path in sorted(stone.parent.rglob("*")) if "__pycache__" not in path.parts]
    assert runs(stone) == 0 and after == before


def test_a_folder_of_another_study_is_refused(stone):
    here(stone, {"seed": 1}, out="mine")
    with pytest.raises(cd.InputError, match="another study"):
        here(stone, {"seed": 1}, out="mine", quick=True)


def test_values():
    assert grid.values_of("x", "0.1:0.9:9", 1.0) == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]
    assert grid.values_of("x", "-1..2,7", 1) == ["-1", "0", "1", "2", "7"]
    assert grid.values_of("x", "1,2;3,4", (0.0, 0.0)) == ["1,2", "3,4"]
    assert grid.values_of("x", "a:b:c", "word") == ["a:b:c"]
    assert len({grid.folder_name({"x": text}) for text in ("a/b", "a_b", "a b", "c" * 200, "c" * 201)}) == 5
    assert len(grid.folder_name({"x": "é/" * 200}).encode()) < 255


def test_a_study_that_is_interrupted_goes_on(stone):
    command = [sys.executable, "-m", "contactdynamics", "study", "stone.py", "--set", "seed=1..6", "--set", "wait=0.5",
               "--workers", "1"]  # fmt: skip
    process = subprocess.Popen(  # a suite in the background ignores SIGINT, and its children with it
        command, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + 60
    while not list(Path("results/study-stone").glob("*/summary.json")) and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "the same command goes on" in said, said
    done = len(list(Path("results/study-stone").glob("*/summary.json")))
    assert 1 <= done < 6
    begun = runs(stone)
    table = here(stone, {"seed": "1..6", "wait": 0.5})
    assert len(table) == 6 and runs(stone) - begun == 6 - done


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask's distributed is not installed")
def test_a_cluster_of_dask(stone):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with pytest.raises(SystemExit) as stop:
            cli.main(["study", "stone.py", "--set", "seed=1..4", "--scheduler", cluster.scheduler_address])
    assert stop.value.code == 0 and runs(stone) == 4
    assert len(Path("results/study-stone/study.csv").read_text().splitlines()) == 5


KERNELS = """
import contactdynamics as cd
scene = cd.Scene(gravity=(0, -9.81))
scene.material("m", density=1000.0)
scene.contact("m", "m", friction=0.3)
scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
for k in range(5):
    scene.add(cd.Disk(0.05), material="m", position=(0, 0.05 + 0.1 * k))
sim = cd.Simulation(scene, time_step=1e-3).run(until=0.05)
print(sim.rows.tobytes().hex())
"""


@pytest.mark.slow
def test_eight_processes_fill_an_empty_cache_together(tmp_path):
    environment = {**os.environ, "CONTACTDYNAMICS_CACHE": str(tmp_path / "cache")}
    begun = [subprocess.Popen([sys.executable, "-c", KERNELS], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for _ in range(8)]  # fmt: skip
    ended = [(*process.communicate(), process.returncode) for process in begun]
    assert [code for *_, code in ended] == [0] * 8, ended
    assert len({out for out, *_ in ended}) == 1
