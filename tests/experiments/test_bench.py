"""Benchmarks: what they compute besides times, with peers that are absent or made up."""

import csv
import json
import math
import sys
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import bench
from contactdynamics.bench import late, masonry, peers, ranks, speed, tolerance, versions
from contactdynamics.cli import main
from contactdynamics.state import FREE

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "peers"

# A peer in which everything falls freely: x = x0 + v t + g t^2 / 2, exactly.
FREE_FALL = """
import sys
sys.path.insert(0, {scripts!r})
import numpy as np
from peer import serve

class Fall:
    def __init__(self, scene, state, options):
        self.x, self.v, self.h = state["positions"].copy(), state["velocities"].copy(), float(scene["h"])
        self.g = np.array([0, 0, -float(scene["gravity"])])
    def step(self):
        self.x, self.v = self.x + self.h * self.v + 0.5 * self.h**2 * self.g, self.v + self.h * self.g
    def report(self):
        return dict(iterations=1, contacts=0)
    def positions(self):
        return self.x
    def velocities(self):
        return self.v

serve(Fall, sys.argv[1], version="1")
"""


@pytest.fixture
def scene(tmp_path):
    """Three spheres of radius 0.2 above the floor of a box, the first one at a height of 1 diameter over it."""
    place = np.array([[0.5, 0.5, 0.6], [1.5, 0.5, 0.8], [1.0, 1.4, 1.0]])
    np.savez(
        tmp_path / "scene_3.npz", positions=place, radii=np.full(3, 0.2), box=np.array([[0.0, 0, 0], [2, 2, 3]]),
        mu=0.4, restitution=0.0, gravity=981.0, density=1.0, h=1e-3,
    )  # fmt: skip
    return tmp_path


def test_overlap_is_that_of_all_pairs_and_walls():
    rng = np.random.default_rng(3)
    box = np.array([[0.0, 0, 0], [2, 2, 9]])
    for n in (1, 2, 40):
        x, r = rng.uniform(0.15, 1.85, (n, 3)), rng.uniform(0.05, 0.2, n)
        naive = 0.0
        for i in range(n):
            for k in range(3):
                naive = max(naive, (box[0, k] + r[i] - x[i, k]) / r[i])
                if k < 2:  # no lid
                    naive = max(naive, (x[i, k] + r[i] - box[1, k]) / r[i])
            for j in range(i):
                naive = max(naive, (r[i] + r[j] - np.linalg.norm(x[i] - x[j])) / min(r[i], r[j]))
        assert peers.overlap(x, r, box) == pytest.approx(naive, abs=1e-14)


def test_absent_peers_are_left_out_in_a_sentence(scene):
    said = []
    options = {"fall": 4, "rest": 2, "yade": "no-such-yade", "siconos": "no-such-python"}
    results = peers.peers(said.append, str(scene), **options)
    assert set(results["scene_3"]) == {"ours"}
    assert results["scene_3"]["ours"]["fall_steps"] == 4
    assert said[0].startswith("yade is left out: there is no program no-such-yade; benchmarks/peers")
    assert said[1].startswith("siconos is left out: there is no program no-such-python")
    said.clear()
    peers.peers(said.append, str(scene), **(options | {"siconos": sys.executable, "only": "siconos"}))
    assert said[0].startswith(f"siconos is left out: {sys.executable} does not have it")


def test_a_peer_is_asked_in_its_own_process_and_compared(scene, monkeypatch):
    script = scene / "fall.py"
    script.write_text(FREE_FALL.format(scripts=str(SCRIPTS)))
    monkeypatch.setattr(peers, "_yade", lambda program: [sys.executable, str(script)])
    said = []
    results = peers.peers(said.append, str(scene), only="yade", fall=40, rest=5)
    theirs, ours = results["scene_3"]["yade"], results["scene_3"]["ours"]
    assert theirs["version"] == "1" and (theirs["fall_steps"], theirs["rest_steps"]) == (39, 5) and not theirs["cut"]
    # After 40 steps the lowest sphere would have fallen by 981 * 0.04^2 / 2 = 0.785 cm, and had 0.4 to the floor.
    assert theirs["fall_overlap"] == pytest.approx((981 * 0.04**2 / 2 - 0.4) / 0.2, rel=1e-6)
    assert ours["fall_overlap"] < 0.01
    steps = [results[f"scene_3_{code}_fall_milliseconds"] for code in ("ours", "yade")]
    assert results["scene_3_yade_fall_ratio"] > 0 and min(steps) > 0
    assert "\nyade     rest" in said[-1] and "speed left" in said[-1]


def test_a_ratio_is_over_the_steps_that_both_did():
    ours, theirs = (peers.Track(np.ones(1), np.zeros((2, 3))) for _ in range(2))
    ours.cpu = {0: 100.0, 1: 1.0, 2: 1.0, 5: 4.0, 6: 50.0}  # the first step is cold
    theirs.cpu = {1: 2.0, 2: 4.0, 5: 2.0}
    assert peers._ratios(ours, theirs, fall=5) == {"fall_ratio": 3.0, "rest_ratio": 0.5}


def test_a_peer_that_fails_is_named(scene, monkeypatch):
    script = scene / "broken.py"
    script.write_text("raise RuntimeError('no licence')")
    monkeypatch.setattr(peers, "_yade", lambda program: [sys.executable, str(script)])
    said = []
    results = peers.peers(said.append, str(scene), only="yade", fall=4, rest=2)
    assert "yade" not in results["scene_3"]
    assert said[-1] == "yade failed and is left out: RuntimeError: no licence"


def test_wrong_options_are_told(scene):
    def run(argument=None, **settings):
        return bench.run("peers", argument, scene / "out", lambda text: None, settings)

    for settings, words in (
        ({"only": "chrono"}, "choose yade or siconos"),
        ({"fall": "0"}, "give at least 1"),
        ({"fall": "many"}, "not a whole number"),
        ({"falls": "3"}, "did you mean fall"),
        ({"grains": "7"}, "no scene_7.npz"),
    ):
        with pytest.raises(cd.InputError, match=words):
            run(str(scene), **settings)
    with pytest.raises(cd.InputError, match=r"cdyn bench peers FOLDER"):
        run(str(scene / "out"))
    with pytest.raises(cd.InputError, match="takes no argument"):
        bench.run("sweep", "x", scene, lambda text: None)


@pytest.mark.parametrize("name", [line.split()[0] for line in bench.listing()])
def test_every_option_has_a_meaning_and_its_function_an_argument(name, capsys):
    title, told = bench.options_of(name)
    taken = {k for k, p in signature(bench._known(name)).parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert title and taken - {"out"} == set(told) and all(option.meaning for option in told.told.values())
    with pytest.raises(SystemExit) as end:
        main(["bench", name, "--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0 and all(option.meaning in said for option in told.told.values())


def test_lines_of_a_table_may_have_different_columns(scene):
    absent = {"only": "yade", "yade": "no-such-yade", "fall": "3", "rest": "1"}
    out = scene / "out"
    bench._append_row(scene / "peers.csv", {"date": "1999-01-01", "old": 1.5})
    out.mkdir()
    (scene / "peers.csv").rename(out / "peers.csv")
    assert bench.run("peers", str(scene), out, lambda text: None, absent) == 0
    with (out / "peers.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["date"], first["old"], first["scene_3_ours_fall_milliseconds"]) == ("1999-01-01", "1.5", "")
    results = json.loads((out / "summary.json").read_text())["results"]
    assert float(second["scene_3_ours_fall_milliseconds"]) == results["scene_3"]["ours"]["fall_milliseconds"]
    assert second["old"] == ""


# ---- tolerance -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_piles_of_different_tolerances_are_poured_once_and_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(tolerance, "RELAXATION", 0.7)
    monkeypatch.setattr(tolerance, "WATCH", 0.3)
    settings = {"grains": "25", "tolerances": "1e-2,1e-3", "seeds": "2"}
    assert bench.run("tolerance", None, tmp_path, lambda text: None, settings) == 0
    results = json.loads((tmp_path / "summary.json").read_text())["results"]
    assert [(r["tolerance"], r["seed"]) for r in results["rows"]] == [(1e-2, 1), (1e-3, 1), (1e-3, 2)]
    assert results["usual"] == 1e-3
    one, several = results["means"]
    assert (one["seeds"], several["seeds"]) == (1, 2) and not one["deviation"]
    heights = [r["height_cm"] for r in results["rows"][1:]]
    assert several["height_cm"] == pytest.approx(np.mean(heights))
    assert several["deviation"]["height_cm"] == pytest.approx(abs(heights[0] - heights[1]) / math.sqrt(2))
    coarse, fine, other = results["rows"]
    for row in (coarse, fine, other):
        # 25 grains at 200 per second and 0.7 s of rest, in steps of 2e-4 s
        assert row["steps"] == round((25 / 200 + 0.7) / 2e-4)
        assert row["unsolved"] == 0
        assert row["median_drift"] < 1e-3  # a heap of 25 grains is at rest after 0.4 s, but for one that rolls away
        assert row["median_drift"] <= row["largest_drift"]
        assert 0 < row["mean_overlap"] < row["overlap_at_rest"] and 2 < row["coordination"] < 6
        assert 0 <= row["overlap_at_rest"] <= row["largest_overlap"] < 0.2
    assert coarse["sweeps"] < fine["sweeps"]
    assert (tmp_path / "tolerance.png").stat().st_size > 10_000

    def poured_again(*arguments, **options):
        raise AssertionError("poured again")

    monkeypatch.setattr(tolerance.pile, "build", poured_again)
    assert tolerance.tolerance(lambda text: None, out=tmp_path, grains=25, seeds=2, tolerances=(1e-2, 1e-3)) == results
    with pytest.raises(AssertionError, match="poured again"):
        tolerance.tolerance(lambda text: None, out=tmp_path, grains=25, tolerances=(5e-3,))


def test_drift_and_pressure_are_those_of_the_frames(tmp_path, monkeypatch):
    # The weight on the ground within half the radius, summed over contacts one by one.
    monkeypatch.setattr(tolerance, "RELAXATION", 0.5)
    monkeypatch.setattr(tolerance, "WATCH", 0.2)
    tolerance.tolerance(lambda text: None, out=tmp_path, grains=15, seeds=1, tolerances=(1e-3,))
    path = tmp_path / "tolerance" / "pile-15-0.001-seed1.h5"
    row = tolerance.measured(path)
    with cd.open(path) as recording:
        last, late = recording[-1], recording.at(recording.times[-1] - 0.2)
        drift = []
        for k in range(len(last.kinds)):
            if last.kinds[k] == FREE:
                radius = last.ball_radii[list(last.ball_bodies).index(k)]
                drift.append(np.linalg.norm(last.positions[k] - late.positions[k]) / radius / (last.time - late.time))
    assert len(drift) == 15
    assert row["median_drift"] == pytest.approx(np.median(drift), rel=1e-9, abs=1e-15)
    assert row["largest_drift"] == pytest.approx(max(drift), rel=1e-9, abs=1e-15)


def test_motion_between_frames_follows_identities():
    def frame(time, identities, radii, positions):
        rows = np.arange(len(identities))
        return SimpleNamespace(
            time=time, identities=np.array(identities), kinds=np.zeros(len(identities)), ball_bodies=rows,
            ball_radii=np.array(radii), positions=np.array(positions, dtype=float),
        )  # fmt: skip

    before = frame(1.0, [3, 5, 8], [1.0, 2.0, 4.0], [[0, 0, 0], [1, 0, 0], [9, 0, 0]])
    after = frame(3.0, [3, 8, 9], [1.0, 4.0, 1.0], [[0, 3, 4], [9, 0, 2], [0, 0, 0]])  # 5 has left, 9 has come
    # |(0, 3, 4)| / 1 / 2 s = 2.5; |(0, 0, 2)| / 4 / 2 s = 0.25
    assert tolerance._moved(before, after, [3, 8]) == pytest.approx([2.5, 0.25])


def test_wrong_tolerances_are_told(tmp_path):
    for settings, words in (({"tolerances": "2"}, "above 0 and below 1"), ({"grains": "0"}, "give at least 1"),
                            ({"tolerances": ""}, "got no tolerances"),
                            ({"tolerances": "fine"}, "a list like")):  # fmt: skip
        with pytest.raises(cd.InputError, match=words):
            bench.run("tolerance", None, tmp_path, lambda text: None, settings)


def test_growth_gives_every_size_the_same_work(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "SETTLING", 3)
    monkeypatch.setattr(speed, "ROUNDS", 1)
    steps = []
    step = speed.Simulation.step
    monkeypatch.setattr(speed.Simulation, "step", lambda self: steps.append((self, step(self))) or steps[-1][1])
    assert bench.run("growth", "3000", tmp_path, lambda text: None) == 0
    results = json.loads((tmp_path / "summary.json").read_text())["results"]
    assert [r["grains"] for r in results["table"]] == sorted(r["grains"] for r in results["table"])
    assert all(r["bytes_per_grain"] < 1000 and r["bytes_per_contact"] < 420 for r in results["table"])
    assert (tmp_path / "growth.png").stat().st_size > 5000
    for sim in {id(sim): sim for sim, _ in steps if len(sim.rows) > 500}.values():
        sweeps = [result.report.iterations for each, result in steps if each is sim]
        assert sim.steps == len(sweeps) == 3 + 4 + 4  # the same steps of each size
        assert sweeps[-4:] == [speed.EQUAL] * 4
    with pytest.raises(cd.InputError, match="3000 or more"):
        bench.run("growth", "1000", tmp_path, lambda text: None)


def test_masonry_beside_peers_that_are_absent_or_made_up(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(masonry, "SCENES", {"wall_105": lambda: masonry.polyhedra.wall(2, 2)})
    results = masonry.masonry(said.append, python="no-such-python", steps=4)
    assert [line.split(" is left out")[0] for line in said[:3]] == ["lmgc90", "mujoco", "pybullet"]
    assert set(results["wall_105"]) == {"ours"} and results["wall_105"]["ours"]["moved"] < 1e-8
    script = tmp_path / "peer.py"  # steps of one millimetre: 1 m/s
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(SCRIPTS)!r})\nfrom blocks import box, middle, serve\nimport numpy as np\n"
        "class Peer:\n"
        "    def __init__(self, job, blocks):\n"
        "        self.at = np.array([middle(b) for b in blocks])\n"
        "        assert np.allclose(self.at, [box(b['corners'])[0] for b in blocks])\n"
        "    def step(self):\n        self.at = self.at + (1e-3, 0, 0)\n"
        "    def positions(self):\n        return self.at\n"
        "serve(Peer, sys.argv[1], 'made up')\n"
    )
    monkeypatch.setattr(masonry, "_command", lambda *about: [sys.executable, str(script)])
    found = masonry.masonry(said.append, only="mujoco", steps=4)["wall_105"]["mujoco"]
    assert found["moved"] == pytest.approx(4e-3) and found["speed_over_gh"] == pytest.approx(1 / (9.81 * 1e-3))
    assert bench.joined("peers", "masonry") == ("peers-masonry", None) and bench.joined("peers", "x") == ("peers", "x")
    with pytest.raises(cd.InputError, match="choose lmgc90"):
        masonry.masonry(said.append, only="chrono")


def test_a_peer_gets_the_blocks_that_we_move():
    frame = masonry.polyhedra.arch(5).frame()
    blocks = masonry.blocks_of(frame)
    free = [b for b in blocks if not b["fixed"]]
    density = masonry.polyhedra.DENSITY
    masses = [density * cd.Polyhedron(b["corners"]).volume for b in free]
    assert masses == pytest.approx(frame.masses[frame.kinds == 0].tolist(), rel=1e-9)
    assert all(set(np.concatenate(b["faces"])) == set(range(len(b["corners"]))) for b in blocks)


# A version of the package whose steps take 1 ms, or 2 where it lies in a folder "other".
STEPS = """
import json, os, sys
slow = 2e-3 if "other" in os.environ["PYTHONPATH"] else 1e-3
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    stages = {"detection": 0.1, "frames": 0.2, "solve": 0.4, "integrate": 0.3 if slow > 1e-3 else 0.1}
    told = {"cpu": 1.0, "sweeps": 5e3} | stages
    print(json.dumps({key: value * slow * int(line) for key, value in told.items()}), flush=True)
"""


def test_versions_make_the_same_steps_in_turns(tmp_path, monkeypatch):
    program = tmp_path / "steps.py"
    program.write_text(STEPS)
    (tmp_path / "other" / "contactdynamics").mkdir(parents=True)
    monkeypatch.setattr(late, "late_steps", SimpleNamespace(__file__=str(program)))
    monkeypatch.setattr(versions, "stored_pile", lambda time: {"radii": np.ones(3)})
    told = []
    found = late.late(told.append, beside=str(tmp_path / "other"), steps=3 * late.TURN + 1)
    assert found["now"] == pytest.approx({"cpu_milliseconds": 1.0, "sweeps": 5.0, "detection_milliseconds": 0.1,
                                          "frames_milliseconds": 0.2, "solve_milliseconds": 0.4,
                                          "integrate_milliseconds": 0.1})  # fmt: skip
    assert found["ratio"] == pytest.approx(0.5) and found["motion_ratio"] == pytest.approx(0.3)
    assert "0.500 of the CPU of a step, 0.300 of frames and integrate" in told[-1]
    assert "ratio" not in late.late(told.append, beside="", steps=late.TURN)
    with pytest.raises(cd.InputError, match="There is no contactdynamics in"):
        late.late(told.append, beside=str(tmp_path), steps=late.TURN)
    program.write_text("raise SystemExit(1)")
    with pytest.raises(cd.InputError, match="could not be measured"):
        late.late(told.append, beside="", steps=late.TURN)


def test_of_each_step_of_processes_the_shortest_time_counts(monkeypatch):
    rest = {"sweeps": 3.0, "contacts": 7, "bodies": 4, "seconds": {"solve": 1.0}, "memory": 1.0, "arrays": 1.0,
            "contact_arrays": 1.0}  # fmt: skip
    walls = {None: [[9.0, 4.0, 8.0], [4.0, 9.0, 8.0]], 2: [[2.0, 2.0, 2.0], [9.0, 9.0, 1.0]]}  # by processes and round
    begun = {None: 0, 2: 0}

    def run(processes, threads, job, nice, state="same"):
        turn = begun[processes] if threads == 1 else 0
        begun[processes] += threads == 1
        one = rest | {"walls": walls[processes][turn], "cpu": 1.0 + turn, "state": "same"}
        if not processes:
            return [one]
        return [one, one | {"state": state, "messages": 1, "bytes": 1}]

    monkeypatch.setattr(ranks, "_run", run)
    options = {
        "grains": 1000,
        "layers": 0,
        "steps": 3,
        "ranks": [2],
        "tolerance": 1e-3,
        "rolling": 0.0,
        "blocks": False,
        "nice": 0,
    }
    found = ranks.ranks(lambda line: None, rounds=2, **options)
    assert found["speedup_1_process"] == 1.0 and found["speedup_2_processes"] == 4.0 / 2.0
    assert [each["cpu"] for each in found["cases"]["2 processes"]] == [1.0, 1.0]
    begun[None] = begun[2] = 0
    monkeypatch.setattr(ranks, "_run", lambda *asked: run(*asked, state="other"))
    with pytest.raises(cd.InputError, match="another state than one process"):
        ranks.ranks(lambda line: None, rounds=1, **options)
