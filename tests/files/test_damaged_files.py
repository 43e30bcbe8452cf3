"""Damaged result files: whatever is wrong in them is told in one sentence, without much memory, and nothing crashes."""

import contextlib
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import runner
from contactdynamics.files import hdf5 as storage

pytestmark = pytest.mark.filterwarnings("ignore:Bodies .* overlap")
HERE = [str(folder) for folder in list(Path(__file__).parents)[:2]]
MEMORY = 300e6  # bytes more than before that reading a damaged file of some 100 kB may take


def sound_file(path, kind="round"):
    """A small valid file: balls, a cluster and planes in 3D, or polygons, disks, a pour and an outlet in 2D."""
    if kind == "round":
        from test_storage import build

        return build(path, every=0.01).run(until=0.15, progress=False)
    from test_resume import Irregular, poured

    return poured(2, path, shape=Irregular()).run(until=0.15, progress=False)


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory):
    """One of each kind, not to be changed."""
    folder = tmp_path_factory.mktemp("sound")
    for kind in ("round", "angular"):
        (folder / kind).mkdir()
        sound_file(folder / kind / "run.h5", kind)
    return folder


@pytest.fixture(params=["round", "angular"])
def sound(request, sound_files):
    return sound_files / request.param / "run.h5"


@pytest.fixture
def path(sound_files, tmp_path):
    """A sound file of balls, to be damaged."""
    return shutil.copy(sound_files / "round" / "run.h5", tmp_path / "run.h5")


def use(path):
    """All that reads a result file; InputError is the only way in which it may fail, and it names the file."""
    until = None
    for what in (read_frames, describe, draw, take_over, go_on):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                until = what(path, until)
            except cd.InputError as error:
                assert "\n" not in str(error), error


def read_frames(path, _):
    with cd.open(path) as recording:
        for frame in recording:
            assert len(frame.positions) == len(frame.identities)
        assert len(recording.log["time"]) >= 0
        calm = max(np.abs(frame.positions).max(), np.abs(frame.velocities).max(), np.abs(frame.spins).max()) < 1e3
        return float(recording.times[-1]) if calm else None  # what flies away is not for a neighbour search


def describe(path, until):
    with cd.open(path) as recording:
        storage.describe(recording)
    return until


def draw(path, until):
    if DRAWN[0] % 20 == 0:  # a picture takes a third of a second
        with cd.open(path) as recording:
            from contactdynamics.plotting import plot_recording

            plot_recording(recording, recording[-1])
            import matplotlib.pyplot as plt

            plt.close("all")
    DRAWN[0] += 1
    return until


DRAWN = [0]
RESUMED = 1 if os.environ.get("HUNT") == "long" else 5  # the quick tier goes on from every fifth file


def take_over(path, until):
    cd.Simulation.from_file(path)
    return until


def go_on(path, until):
    if until is not None and until < 1.0 and DRAWN[0] % RESUMED == 0:
        runner.resume(path, until + 2e-3)


# ---- the sentences -------------------------------------------------------------------------------------------------


def change(path, name, make):
    """Replace a dataset by what ``make`` makes of its values; with checksums that fit."""
    with h5py.File(path, "a") as file:
        old = file[name][:]
        del file[name]
        new = make(old)
        if new is not None:
            file[name] = new


def refusal(path, *words):
    with pytest.raises(cd.InputError) as error, cd.open(path) as recording:
        for _ in recording:
            pass
        cd.Simulation.from_file(path)
    for word in ("run.h5 is damaged: ", *words):
        assert word in str(error.value), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, make, words",
    [
        ("frame_bodies/identity", lambda a: a[:0], "frame_bodies/position has"),
        ("frame_bodies/position", lambda a: a[:0], "frame_bodies/position has 0 rows"),
        ("frames/bodies", lambda a: a[:0], "frames/bodies has 0 rows"),
        ("frames/bodies", lambda a: a + 1, "frames/body_start is not where the frame before ends"),
        ("frames/body_start", lambda a: a[::-1].copy(), "frames/body_start is not where the frame before ends"),
        ("frames/time", lambda a: a * np.nan, "row 0 of frames/time is not finite"),
        ("frames/time", lambda a: a[::-1].copy(), "not later than the one before"),
        ("bodies/mass", lambda a: -a, "row 0 of bodies/mass is not positive"),
        ("bodies/mass", lambda a: a.astype(np.int64), "bodies/mass holds int64 instead of float64"),
        ("bodies/mass", lambda a: np.array([b"x"] * len(a)), "bodies/mass holds |S1"),
        ("bodies/inertia", lambda a: a[:, :2], "bodies/inertia has the shape"),
        ("bodies/identity", lambda a: None, "bodies/identity is not there"),
        ("balls/body", lambda a: a + 1000, "balls/body is not the number of a body"),
        ("balls/material", lambda a: a + 7, "balls/material is not one of the 1 materials"),
        ("frame_bodies/position", lambda a: a + np.inf, "frame_bodies/position of frame 0 is not finite"),
        ("frame_bodies/orientation", lambda a: 0 * a, "is not a unit quaternion"),
        ("log/residual", lambda a: a[:3], "log/residual has 3 rows, 150 expected"),
        ("checkpoint/second", lambda a: a + 10_000, "checkpoint/second is not in range"),
        ("checkpoint/row_order", lambda a: 0 * a, "checkpoint/row_order is no order"),
        ("checkpoint/works", lambda a: a[:0], "checkpoint/works has 0 rows, 1 expected"),
        ("checkpoint/numbers", lambda a: 0 * a, "checkpoint/numbers counts 0 bodies"),
        ("checkpoint/first", lambda a: None, "checkpoint/first is not there"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(path, name, make, words):
    change(path, name, make)
    refusal(path, words)


def test_a_size_that_no_memory_has_is_refused_before_it_is_taken(path):
    with h5py.File(path, "a") as file:
        file["frames/time"].resize(500_000_000_000, axis=0)  # 3.64 TiB
    refusal(path, "frames/time says that it has 500000000000 rows")


def test_a_flipped_bit_is_found(path):
    """The numbers have checksums: no bit of the positions changes without a word."""
    with h5py.File(path, "r") as file:
        chunk = file["frame_bodies/position"].id.get_chunk_info(0)
    raw = bytearray(path.read_bytes())
    for k in range(chunk.byte_offset, chunk.byte_offset + chunk.size, max(1, chunk.size // 40)):
        bad = bytearray(raw)
        bad[k] ^= 4
        path.write_bytes(bad)
        refusal(path, "frame_bodies/position")


@pytest.mark.parametrize(
    "old, new, words",
    [
        (r'"dimension": 3', '"dimension": 7', "its dimension is 7"),
        (r'"dimension": 3', '"dimension": "3"', "parameters/dimension is '3' instead of a whole number"),
        (r'"gravity": \[[^]]*\]', '"gravity": [0, null, 1]', "gravity is 'None' instead of a number"),
        (r'"solver": "auto"', '"solver": []', "options/solver is '[]' instead of a text"),
        (r'"time_step": 0.001', '"time_step": -1', "its time_step is -1"),
        (r'"time_step": 0.001', '"time_step": NaN', "time_step"),
        (r'"order": \[\[0, 0\]\]', '"order": [[0, 5]]', "a law is for the materials [0, 5], of 1"),
        (r'"threads": 1', '"thread": 1', "the option 'thread'"),
        (r'"kind": "sine"', '"kind": "sinus"', "the motion of body 0 is a sinus"),
        (r"^\{", "[", "its parameters are no JSON"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(path, old, new, words):
    with h5py.File(path, "a") as file:
        text = re.sub(old, new, bytes(file.attrs["parameters"]).decode(), count=1)
        file.attrs["parameters"] = np.bytes_(text)
    refusal(path, words)


def test_a_file_cut_short_and_overwritten_in_part(path, capsys):
    whole = path.read_bytes()
    for share in (0.0, 0.01, 0.3, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        for command in ("info", "plot", "resume"):
            with pytest.raises(SystemExit) as end:
                main([command, str(path)])
            error = capsys.readouterr().err
            assert end.value.code == 2 and error.count("\n") == 1 and "run.h5" in error


def test_a_sound_file_passes(sound, tmp_path):
    """What the checks refuse is not what runs write."""
    path = tmp_path / "run.h5"
    shutil.copy(sound, path)
    until = read_frames(path, None)
    describe(path, until)
    take_over(path, until)
    go_on(path, until)
    assert read_frames(path, None) == pytest.approx(until + 2e-3)


# ---- a thousand files that are wrong -------------------------------------------------------------------------------


def mutate(path, rng):
    """Change one thing in a file: a dataset, an attribute or a piece of its JSON, with checksums that fit."""
    with h5py.File(path, "a") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[rng.integers(len(names))]
        kind = rng.integers(10)
        if kind < 3:
            text = bytes(file.attrs["parameters"]).decode()
            file.attrs["parameters"] = np.bytes_(mutated_text(text, rng))
            return
        values = file[name][:]
        if kind == 3:
            del file[name]
            return
        if kind == 4:
            with contextlib.suppress(Exception):
                file[name].resize(int(rng.choice([0, 1, len(values) + 1, 10**6, 10**12])), axis=0)
            return
        del file[name]
        if kind == 5:
            file[name] = values[rng.permutation(len(values))]
        elif kind == 6:
            file[name] = values.astype(rng.choice(["f4", "i8", "i4", "u1", "S3", "c16"]))
        elif kind == 7:
            file[name] = values.reshape(-1) if values.ndim > 1 else values[:, None]
        elif values.size:
            at = tuple(rng.integers(s) for s in values.shape)
            odd = [0, -1, 1, 7, 2**31 - 1, np.nan, np.inf, -1e300, 1e-300, 3.5]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values[at] = np.array(odd[rng.integers(len(odd))]).astype(values.dtype)
            file[name] = values
        else:
            file.create_group(name)


def mutated_text(text, rng):
    """The parameters with a value, a key or a piece of their text replaced."""
    if rng.random() < 0.2:
        a, b = sorted(rng.integers(len(text), size=2))
        return text[:a] + text[b:]
    said = json.loads(text)
    odd = [None, [], {}, "x", -1, 0, 3, 2.5, True, [[]], [1], {"kind": "Pour"}, "../x.py"]
    node = said
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = keys[rng.integers(len(keys))]
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.7:
            node = node[key]
        elif rng.random() < 0.15:
            del node[key]
            break
        else:
            node[key] = odd[rng.integers(len(odd))]
            break
    return json.dumps(said)


def hunt(sound, folder, count, seed):
    """Use ``count`` damaged files; returns by how many bytes the process has grown."""
    path = Path(folder) / "run.h5"
    use_sound = Path(folder) / "sound.h5"
    shutil.copy(sound, use_sound)
    with contextlib.redirect_stderr(io.StringIO()):
        use(use_sound)  # what is loaded and compiled
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for k in range(count):
            shutil.copy(sound, path)
            mutate(path, np.random.default_rng([seed, k]))
            try:
                use(path)
            except BaseException as error:
                raise AssertionError(f"file {k} of seed {seed}: {type(error).__name__}: {error}") from error
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def hunt_bytes(sound, folder, count, seed):
    """The same with bytes of the file overwritten, in runs of up to 64."""
    path, raw = Path(folder) / "run.h5", Path(sound).read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(count):
        rng, bad = np.random.default_rng([seed, k, 1]), bytearray(raw)
        at, size = int(rng.integers(len(raw))), int(2 ** rng.integers(7))
        bad[at : at + size] = rng.integers(256, size=len(bad[at : at + size]), dtype=np.uint8).tobytes()
        path.write_bytes(bad)
        try:
            use(path)
        except BaseException as error:
            raise AssertionError(f"file {k} of seed {seed}: {type(error).__name__}: {error}") from error
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def in_a_process(function, *arguments, tier="short"):
    """Run a hunt in a process of its own: a crash is a failure, and not the end of all tests."""
    program = (f"import sys; sys.path[:0] = {HERE!r}; import matplotlib; matplotlib.use('Agg')\n"
               f"import test_damaged_files as t; print('grown', t.{function}(*{arguments!r}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=os.environ | {"HUNT": tier})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.split()[-1]) < MEMORY


def both(sound, folder, count, seed):
    """Both hunts."""
    return max(hunt(sound, folder, count, seed), hunt_bytes(sound, folder, count, seed))


def test_damaged_files_are_refused_in_a_sentence(sound, tmp_path):
    in_a_process("both", str(sound), str(tmp_path), 8, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("function, count", [("hunt", 1000), ("hunt_bytes", 1000)])
def test_many_damaged_files_are_refused_in_a_sentence(sound, tmp_path, function, count, seed):
    in_a_process(function, str(sound), str(tmp_path), count, seed, tier="long")
