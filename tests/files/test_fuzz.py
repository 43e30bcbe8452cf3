"""All readers but that of result files (test_damaged_files): any file is read, or refused in a sentence.

Sound files are damaged in their bytes, words and numbers. A reader may take what is still sound; it may not crash,
hang, take much memory, or hand on numbers that are not finite or do not fit each other. What once failed lies in
``corpus/``.
"""

import contextlib
import io
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.scenes import compas
from contactdynamics.scenes.shapes import meshes

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
MEMORY = 300e6  # bytes more than before that reading damaged files of some kB may take
SECONDS = 20.0  # for one file, on a busy machine
ODD = ("0", "-1", "nan", "inf", "-inf", "1e999", "1e-320", "999999999999", "1.5", "x", "", "[]", "{}", "null", "true",
       "-", ".", "1,2", "0x10", "\x00", "é", "1e", "9" * 400)  # fmt: skip


# ---- sound files and what is asked of what was read ----------------------------------------------------------------


def problem(d=2, m=3):
    rng = np.random.default_rng(5)
    w = rng.normal(size=(m * d, m * d))
    return cd.ContactProblem(w @ w.T + np.eye(m * d), rng.normal(size=(m, d)), np.full((m, 2), 0.5), np.zeros(m))


def see_problem(path):
    found = cd.read_problem(path)
    m, d = found.velocity.shape
    assert np.isfinite(found.velocity).all() and np.isfinite(found.friction).all() and (found.friction >= 0).all()
    assert found.friction.shape == (m, 2) and found.gap.shape == (m,) and np.isfinite(found.gap).all()
    if m <= 50:
        assert found.blocks.shape == (m * d, m * d) and np.isfinite(found.blocks.toarray()).all()


def see_solution(path):
    found, guesses = cd.read_solution(path)
    for stored in [found, *guesses]:
        assert stored is None or np.isfinite(stored.impulses).all()


def see_motion(path):
    times, values = cd.loads.read_table(path)
    assert np.isfinite(times).all() and np.isfinite(values).all() and (np.diff(times) > 0).all()
    profile = cd.loads.shaking(times, values)
    assert np.isfinite(profile(float(times[0]))).all()


def see_sieve(path):
    sieve = cd.packings.Sieve(*cd.loads.read_table(path), by="mass")
    sizes = sieve.draw(5, np.random.default_rng(1))
    assert np.isfinite(sizes).all() and (sizes > 0).all()


def see_mesh(path):
    for part in meshes.read(path):
        assert np.isfinite(part.corners).all() and part.triangles.max() < len(part.corners)
    cd.Polyhedron.read(path)


def see_blocks(path):
    for part in compas.read(path).surfaces:
        assert np.isfinite(part.corners).all()
    cd.Scene.from_compas(path, density=2000, friction=0.6)


CORNERS = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def write_obj(path):
    lines = [f"v {x:g} {y:g} {z:g}" for x, y, z in CORNERS]
    path.write_text("\n".join(["o block", *lines, *("f " + " ".join(str(k + 1) for k in f) for f in FACES)]) + "\n")


def write_off(path):
    lines = [f"{x:g} {y:g} {z:g}" for x, y, z in CORNERS] + [f"4 {a} {b} {c} {d}" for a, b, c, d in FACES]
    path.write_text("\n".join(["OFF", "8 6 12", *lines]) + "\n")


def write_stl(path):
    out = ["solid block"]
    for a, b, c, d in FACES:
        for triangle in ((a, b, c), (a, c, d)):
            corners = [f"vertex {x:g} {y:g} {z:g}" for x, y, z in CORNERS[list(triangle)]]
            out += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    path.write_text("\n".join([*out, "endsolid block"]) + "\n")


def write_ply(path):
    head = ["ply", "format ascii 1.0", "element vertex 8", "property float x", "property float y", "property float z",
            "element face 6", "property list uchar int vertex_indices", "end_header"]  # fmt: skip
    lines = [f"{x:g} {y:g} {z:g}" for x, y, z in CORNERS] + [f"4 {a} {b} {c} {d}" for a, b, c, d in FACES]
    path.write_text("\n".join([*head, *lines]) + "\n")


def write_compas(path):
    vertex = {str(k): {"x": x, "y": y, "z": z} for k, (x, y, z) in enumerate(CORNERS.tolist())}
    face = {str(k): list(f) for k, f in enumerate(FACES)}
    block = {"dtype": "compas_assembly.datastructures/Block", "data": {"vertex": vertex, "face": face}}
    node = {"0": {"block": block, "is_support": True}, "1": {"block": block}}
    graph = {"dtype": "compas.datastructures/Graph", "data": {"node": node, "edge": {}}}
    path.write_text(json.dumps({"dtype": "compas_assembly.datastructures/Assembly", "data": {"graph": graph}}))


def write_table(rows, comma=False):
    def write(path):
        path.write_text("# a table\n" + "\n".join(("," if comma else " ").join(f"{x:g}" for x in r) for r in rows))

    return write


TIMES = np.linspace(0, 1, 12)
READERS = {  # name of the file: (how a sound one is written, what reads it)
    "local.hdf5": (lambda path: cd.write_problem(problem(), path), see_problem),
    "solution.hdf5": (lambda path: cd.write_problem(problem(3), path, solution=np.ones((3, 3))), see_solution),
    "problem.dat": (lambda path: cd.write_problem(problem(3), path), see_problem),
    "motion.txt": (write_table(np.stack([TIMES, np.sin(9 * TIMES)], axis=1)), see_motion),
    "motion.csv": (write_table(np.stack([TIMES, np.sin(9 * TIMES)], axis=1), comma=True), see_motion),
    "sieve.txt": (write_table([(0.01, 0.0), (0.02, 0.3), (0.04, 1.0)]), see_sieve),
    "block.obj": (write_obj, see_mesh),
    "block.off": (write_off, see_mesh),
    "block.stl": (write_stl, see_mesh),
    "block.ply": (write_ply, see_mesh),
    "wall.json": (write_compas, see_blocks),
}


# ---- damage --------------------------------------------------------------------------------------------------------


def damaged(raw: bytes, rng) -> bytes:
    """A file with one to three things changed: bytes, lines, words, or a piece cut out or doubled."""
    for _ in range(int(rng.integers(1, 4))):
        kind, at = int(rng.integers(7)), int(rng.integers(max(1, len(raw))))
        if kind == 0:  # bytes overwritten
            size = int(2 ** rng.integers(6))
            raw = raw[:at] + rng.integers(256, size=size, dtype=np.uint8).tobytes() + raw[at + size :]
        elif kind == 1:  # a bit
            raw = raw[:at] + bytes([raw[at] ^ (1 << int(rng.integers(8)))]) + raw[at + 1 :] if raw else raw
        elif kind == 2:  # cut short
            raw = raw[:at]
        elif kind == 3:  # a piece cut out, or doubled
            end = at + int(rng.integers(64))
            raw = raw[:at] + raw[end:] if rng.random() < 0.5 else raw[:end] + raw[at:]
        else:
            raw = other_words(raw, rng, kind)
    return raw


def other_words(raw: bytes, rng, kind: int) -> bytes:
    """A word replaced by an odd one, or lines exchanged."""
    parts = raw.split(b"\n") if kind == 4 else raw.replace(b",", b" , ").split(b" ")
    k, other = (int(n) for n in rng.integers(len(parts), size=2))
    if kind == 6:
        parts[k], parts[other] = parts[other], parts[k]
    else:
        parts[k] = ODD[int(rng.integers(len(ODD)))].encode()
    return (b"\n" if kind == 4 else b" ").join(parts)


def read(name, path) -> str:
    """What a reader makes of a file: "read", or "refused" in one sentence."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            READERS[name][1](path)
            return "read"
        except cd.InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000, error
            return "refused"


def hunt(names, count, seed, folder, keep=None):
    """Give ``count`` damaged files to each reader; what fails is kept in the folder ``keep``, if there is one."""
    folder, found = Path(folder), {"read": 0, "refused": 0, "failed": []}
    for name in names:
        sound = folder / f"sound-{name}"
        READERS[name][0](sound)
        assert read(name, sound) == "read", name
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(count):
        for number, name in enumerate(names):
            rng = np.random.default_rng([seed, k, number])
            path, raw = folder / name, damaged((folder / f"sound-{name}").read_bytes(), rng)
            path.write_bytes(raw)
            begin = time.process_time()
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    found[read(name, path)] += 1
                assert time.process_time() - begin < SECONDS, "took too long"
            except Exception as error:
                found["failed"].append(f"{name}, {k} of seed {seed}: {type(error).__name__}: {error}"[:300])
                if keep is not None:
                    Path(keep, f"{seed}-{k}-{name}").write_bytes(raw)
    found["grown"] = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return found


def in_a_process(names, count, seed, folder):
    """Hunt in a process of its own: a crash is a failure, and not the end of all tests."""
    program = (f"import sys, json; sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]; import test_fuzz\n"
               f"print(json.dumps(test_fuzz.hunt({names!r}, {count}, {seed}, {str(folder)!r})))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failed"] == [] and found["grown"] < MEMORY, found
    assert found["refused"] > 0.3 * len(names) * count  # most damage is seen
    return found


def test_damaged_files_of_all_kinds(tmp_path):
    in_a_process(list(READERS), 30, 1, tmp_path)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*")), ids=lambda path: path.name)
def test_what_once_failed(path, tmp_path):
    name = path.name.split("-", 2)[-1]
    (tmp_path / name).write_bytes(path.read_bytes())
    assert read(name, tmp_path / name) in ("read", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_damaged_files(name, seed, tmp_path):
    in_a_process([name], 910, seed, tmp_path)  # 11 readers x 10 seeds x 910
