"""Contact problems in files: every form, round trips to the bit, and files that are wrong."""

import os
import tracemalloc

import h5py
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import contactdynamics as cd
from contactdynamics.files import problems

# ---- problems and naive writers --------------------------------------------------------------------------------------


def random_problem(rng, m=4, d=3, *, bodies=True, dense=False, w=False, momentum=False, isotropic=True):
    """A problem with bodies of three freedoms each, in the form asked for."""
    n = 9
    root = rng.normal(size=(3, 3, 3))
    mass = np.zeros((n, n))
    for k in range(3):
        mass[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = root[k] @ root[k].T + np.eye(3)
    mass = (mass + mass.T) / 2
    jacobian = rng.normal(size=(m * d, n)) * (rng.random((m * d, n)) < 0.5)
    jacobian[::d, 0] = 1.0
    jacobian[0, 1] = -0.0 if dense else 0.5
    free = rng.normal(size=n) * 10.0 ** rng.integers(-5, 5, n)
    friction = rng.uniform(0, 1, (m, 2))
    if isotropic:
        friction[:, 1] = friction[:, 0]
    pack = (lambda x: x) if dense else csr_array
    form = cd.BodyForm(pack(mass), pack(jacobian), free, rng.normal(size=(m, d)), mass @ free if momentum else None)
    problem = cd.ContactProblem.of_bodies(form, friction, -rng.uniform(0, 1e-3, m))
    if bodies:
        return problem._replace(delassus=problem.delassus if w else None)
    return problem._replace(delassus=pack(problem.delassus), bodies=None)


def same(a, b):
    """Whether two values are the same to the bit, matrices also in kind."""
    if a is None or b is None:
        return a is b
    if hasattr(a, "_fields"):
        return type(a) is type(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "tocsr") or hasattr(b, "tocsr"):
        a, b = a.tocsr(), b.tocsr()
        return a.shape == b.shape and all(same(getattr(a, x), getattr(b, x)) for x in ("indptr", "indices", "data"))
    return a.shape == b.shape and (a.dtype.kind == "i" or a.dtype == b.dtype) and a.tolist() == b.tolist() and (
        a.dtype.kind != "f" or (np.signbit(a) == np.signbit(b)).all()
    )  # fmt: skip


def put_matrix(group, matrix, storage, spare=0):
    """A matrix in one of FCLIB's storages, naively; ``spare`` entries of room that are not used."""
    matrix = coo_array(matrix)
    rubbish = np.full(spare, 7)
    group["m"], group["n"] = np.array([matrix.shape[0]], dtype="i4"), np.array([matrix.shape[1]], dtype="i4")
    group["nzmax"] = np.array([matrix.nnz + spare], dtype="i4")
    if storage == "triplets":
        group["nz"] = np.array([matrix.nnz], dtype="i4")
        parts = {"i": matrix.row, "p": matrix.col, "x": matrix.data}
    else:
        packed = csr_array(matrix) if storage == "rows" else csc_array(matrix)
        group["nz"] = np.array([-2 if storage == "rows" else -1], dtype="i4")
        group["p"] = packed.indptr.astype("i4")
        parts = {"i": packed.indices, "x": packed.data}
    for name, part in parts.items():
        group[name] = np.concatenate([part, rubbish]).astype("f8" if name == "x" else "i4")


def put_fclib(path, problem, storage="rows", spare=0, extra=None):
    """A file as another program would write it."""
    with h5py.File(path, "w") as file:
        bodies = problem.bodies
        group = file.create_group("fclib_local" if bodies is None else "fclib_global")
        group["spacedim"] = np.array([problem.components], dtype="i4")
        if bodies is None:
            put_matrix(group.create_group("W"), problem.delassus, storage, spare)
            group["vectors/q"] = problem.velocity.ravel()
        else:
            put_matrix(group.create_group("M"), bodies.mass, storage, spare)
            put_matrix(group.create_group("H"), bodies.jacobian.T, storage, spare)
            group["vectors/f"], group["vectors/w"] = bodies.mass @ bodies.free, bodies.drift.ravel()
        group["vectors/mu"] = problem.friction[:, 0]
        for name, value in (extra or {}).items():
            if np.ndim(value) == 2:
                put_matrix(group.create_group(name), value, storage)
            else:
                group[name] = value


def printed(matrix, triplets):
    """A matrix as CSparse prints it."""
    matrix = coo_array(matrix)
    head = "CSparse Version 3.1.9, May 4, 2016.  Copyright (c) Timothy A. Davis, 2006-2016\n"
    sizes = f"{matrix.shape[0]}-by-{matrix.shape[1]}, nzmax: {matrix.nnz} nnz: {matrix.nnz}"
    if triplets:
        lines = [f"    {i} {j} : {x!r}" for i, j, x in zip(matrix.row, matrix.col, matrix.data.tolist(), strict=True)]
        return f"1\n{head}triplet: {sizes}\n" + "\n".join(lines)
    packed, lines = csc_array(matrix), []
    for j in range(matrix.shape[1]):
        first, last = packed.indptr[j], packed.indptr[j + 1]
        lines.append(f"    col {j} : locations {first} to {last - 1}")
        lines += [f"      {packed.indices[k]} : {float(packed.data[k])!r}" for k in range(first, last)]
    return f"2\n{head}{sizes}, 1-norm: 7.1\n" + "\n".join(lines)


def text_matrix(matrix, storage, d=3):
    """A matrix as Siconos writes it, naively; blocks of unlike sizes: one of d, the rest as one."""
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    rows, columns = dense.shape
    if storage == "dense":
        return f"0\n{rows}\n{columns}\n{rows}\t{columns}\n" + "\n".join(repr(float(x)) for x in dense.T.ravel())
    if storage in ("columns", "triplets"):
        return f"2\n{rows}\n{columns}\n" + printed(dense, storage == "triplets")
    ends = [[d, size] if size > d else [size] for size in (rows, columns)]
    blocks = []
    for i, bottom in enumerate(ends[0]):
        for j, right in enumerate(ends[1]):
            top, left = ([0, *e][k] for e, k in zip(ends, (i, j), strict=True))
            blocks.append((i, j, dense[top:bottom, left:right]))
    start = [0] + [sum(b[0] <= i for b in blocks) for i in range(len(ends[0]))]
    words = [1, rows, columns, len(blocks), len(ends[0]), len(ends[1]), *ends[0], *ends[1], len(start), len(blocks),
             *start, *(b[1] for b in blocks)]  # fmt: skip
    body = "\n".join(f"{k}\n" + "\n".join(repr(float(x)) for x in b[2].T.ravel()) for k, b in enumerate(blocks))
    return "\n".join(map(str, words)) + "\n" + body


def put_text(path, problem, storage, flag=""):
    """A file as Siconos would write it."""
    m, d = problem.velocity.shape
    bodies = problem.bodies

    def row(values):
        return "  ".join(f"{x!r}" for x in np.ravel(values).tolist())

    if bodies is None:
        parts = [text_matrix(problem.delassus, storage, d), row(problem.velocity)]
    else:
        parts = [text_matrix(bodies.mass, storage, d), text_matrix(bodies.jacobian.T, storage, d),
                 row(bodies.mass @ bodies.free), row(bodies.drift)]  # fmt: skip
    path.write_text("\n".join([f"{d}\n{m}", *parts, row(problem.friction[:, 0]), flag]))


def full(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


# ---- round trips -----------------------------------------------------------------------------------------------------

FORMS = {
    "dense": {"bodies": False, "dense": True},
    "sparse": {"bodies": False},
    "bodies": {"bodies": True},
    "stated momentum": {"bodies": True, "momentum": True},
    "dense bodies": {"bodies": True, "dense": True},
    "both": {"bodies": True, "w": True},
}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("isotropic", [True, False])
def test_round_trip_to_the_bit(rng, tmp_path, d, form, isotropic):
    problem = problems.check(random_problem(rng, d=d, isotropic=isotropic, **FORMS[form]))
    cd.write_problem(problem, tmp_path / "problem.hdf5")
    back = cd.read_problem(tmp_path / "problem.hdf5")
    assert same(back, problem)
    cd.write_problem(back, tmp_path / "again.hdf5")
    assert same(cd.read_problem(tmp_path / "again.hdf5"), problem)
    with h5py.File(tmp_path / "problem.hdf5") as file:
        group = file["fclib_local" if problem.bodies is None else "fclib_global"]
        assert ("mu" in group["vectors"]) == isotropic  # two coefficients are no mu for others to read


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("form", [f for f in FORMS if f not in ("both", "bodies", "dense bodies")])
def test_round_trip_through_text(rng, tmp_path, d, form):
    # The text says f, not the free velocity, and no gaps; all it says comes back.
    problem = problems.check(random_problem(rng, d=d, **FORMS[form]))
    cd.write_problem(problem, tmp_path / "problem.dat")
    back = cd.read_problem(tmp_path / "problem.dat")
    assert same(
        full(back[0]) if problem.bodies is None else back[0], full(problem[0]) if problem[0] is not None else None
    )
    assert same(back.friction, problem.friction) and not back.gap.any()
    if problem.bodies is None:
        assert same(back.velocity, problem.velocity) and same(full(back.delassus), full(problem.delassus))
    else:
        for name in ("mass", "jacobian", "drift", "momentum"):
            assert same(full(getattr(back.bodies, name)), full(getattr(problem.bodies, name)))
    cd.write_problem(back, tmp_path / "again.dat")
    assert (tmp_path / "again.dat").read_bytes() == (tmp_path / "problem.dat").read_bytes()


@pytest.mark.parametrize("d, kind", [(2, "disks"), (3, "spheres"), (2, "blocks")])
def test_problems_of_scenes(tmp_path, d, kind):
    scene = cd.Scene(gravity=(0, -9.81) if d == 2 else (0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    if kind == "blocks":
        cd.packings.wall(scene, material="m", length=2.0, courses=3, block=(0.5, 0.2))
        scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    else:
        cd.packings.box(scene, material="m", low=(0,) * d, high=(0.5,) * d)
        cd.packings.lattice(scene, material="m", sizes=0.05, counts=(3,) * d, origin=(0.06,) * d, seed=1)
    sim = cd.Simulation(scene, time_step=1e-3).run(until=0.02)
    problem = sim.contact_problem()
    assert problem.contacts > 5
    impulses, report = cd.solve(problem, tolerance=1e-6, max_iterations=100_000)
    cd.write_problem(problem, tmp_path / "own.hdf5", solution=impulses, guesses=[0 * impulses, impulses / 2])
    back = cd.read_problem(tmp_path / "own.hdf5")
    assert same(back, problems.check(problem))
    solution, guesses = cd.read_solution(tmp_path / "own.hdf5")
    assert same(solution.impulses, impulses) and solution.velocities.shape == impulses.shape
    assert len(solution.body_velocities) == len(problem.bodies.free)
    assert [same(g.impulses, p) for g, p in zip(guesses, (0 * impulses, impulses / 2), strict=True)] == [True, True]
    _, again = cd.solve(back, solution.impulses, tolerance=1e-6, max_iterations=1)
    assert report.converged and again.converged


# ---- files of others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bodies", [False, True])
@pytest.mark.parametrize("storage", ["triplets", "columns", "rows"])
def test_every_storage_of_fclib(rng, tmp_path, storage, bodies):
    problem = random_problem(rng, bodies=bodies)
    for spare in (0, 5):
        put_fclib(tmp_path / "file.hdf5", problem, storage, spare)
        back = cd.read_problem(tmp_path / "file.hdf5")
        if bodies:
            assert (full(back.bodies.mass) == full(problem.bodies.mass)).all()
            assert (full(back.bodies.jacobian) == full(problem.bodies.jacobian)).all()
            assert np.allclose(back.bodies.free, problem.bodies.free, rtol=1e-9, atol=1e-9)
            assert (back.bodies.momentum == problem.bodies.mass @ problem.bodies.free).all()
            assert np.allclose(back.velocity, problem.velocity, rtol=0, atol=1e-9 * np.abs(problem.bodies.free).max())
        else:
            assert (full(back.delassus) == full(problem.delassus)).all() and (back.velocity == problem.velocity).all()
        assert (back.friction == problem.friction).all() and back.gap.tolist() == [0.0] * 4
        solution, guesses = cd.read_solution(tmp_path / "file.hdf5")
        assert solution is None and guesses == []


def test_equations_of_a_local_file_are_eliminated(rng, tmp_path):
    # u = W r + V l + q, 0 = V^T r + R l + s: by dense algebra u must be the same for any r.
    problem = random_problem(rng, bodies=False, dense=True)
    v, root, s = 0.3 * rng.normal(size=(12, 2)), rng.normal(size=(2, 2)), rng.normal(size=2)
    r_matrix = root @ root.T + np.eye(2)
    put_fclib(tmp_path / "file.hdf5", problem, extra={"V": v, "R": r_matrix, "vectors/s": s})
    back, r = cd.read_problem(tmp_path / "file.hdf5"), rng.normal(size=12)
    held = np.linalg.solve(r_matrix, -v.T @ r - s)
    expected = problem.delassus @ r + v @ held + problem.velocity.ravel()
    assert np.allclose(back.velocities(r).ravel(), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_equations_of_a_global_file_are_eliminated(rng, tmp_path):
    # M v = H r + G l + f, 0 = G^T v + b, u = H^T v + w.
    problem = random_problem(rng)
    g, b, f = rng.normal(size=(9, 2)), rng.normal(size=2), problem.bodies.mass @ problem.bodies.free
    put_fclib(tmp_path / "file.hdf5", problem, "triplets", extra={"G": g, "vectors/b": b})
    back, r = cd.read_problem(tmp_path / "file.hdf5"), rng.normal(size=12)
    j, mass = full(problem.bodies.jacobian), full(problem.bodies.mass)
    system = np.block([[mass, -g], [g.T, np.zeros((2, 2))]])
    v = np.linalg.solve(system, np.concatenate([j.T @ r + f, -b]))[:9]
    expected = j @ v + problem.bodies.drift.ravel()
    assert np.allclose(back.velocities(r).ravel(), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("bodies", [False, True])
@pytest.mark.parametrize("storage", ["dense", "blocks", "columns", "triplets"])
@pytest.mark.parametrize("flag", ["", "1"])
def test_every_form_of_text(rng, tmp_path, storage, bodies, flag):
    for d in (2, 3):
        problem = random_problem(rng, d=d, bodies=bodies, dense=True)
        put_text(tmp_path / "file.dat", problem, storage, flag)
        back = cd.read_problem(tmp_path / "file.dat")
        if bodies:
            assert (full(back.bodies.mass) == problem.bodies.mass).all()
            assert (full(back.bodies.jacobian) == problem.bodies.jacobian).all()
            assert (back.bodies.drift == problem.bodies.drift).all()
            assert np.allclose(back.velocity, problem.velocity, rtol=0, atol=1e-9 * np.abs(problem.bodies.free).max())
        else:
            assert (full(back.delassus) == problem.delassus).all() and (back.velocity == problem.velocity).all()
        assert (back.friction == problem.friction).all()


def test_text_with_as_many_freedoms_as_rows_of_contacts(rng, tmp_path):
    # n = m d: only what follows the first matrix tells the two forms apart.
    problem = random_problem(rng, m=3, d=3, dense=True)
    put_text(tmp_path / "file.dat", problem, "dense")
    assert cd.read_problem(tmp_path / "file.dat").bodies is not None
    put_text(tmp_path / "file.dat", random_problem(rng, m=3, d=3, bodies=False), "dense")
    assert cd.read_problem(tmp_path / "file.dat").bodies is None


def test_blocks_are_read_column_by_column(tmp_path):
    # W slightly asymmetric, as a scheme may make it: the entry (row 0, column 1) is 0.1, and is kept.
    w = np.array([[2.0, 0.1], [0.2, 2.0]])
    problem = cd.ContactProblem(w, np.array([[-1.0, 0.1]]), np.full((1, 2), 0.3), np.zeros(1))
    for storage in ("dense", "blocks", "columns"):
        put_text(tmp_path / "file.dat", problem, storage)
        back = cd.read_problem(tmp_path / "file.dat")
        assert (full(back.delassus) == w).all()
    impulses, report = cd.solve(back, tolerance=1e-13)
    u = w @ impulses[0] + problem.velocity[0]  # sticking
    assert report.converged and np.abs(u).max() < 1e-12 and abs(impulses[0, 1]) < 0.3 * impulses[0, 0]


PUBLIC = os.environ.get("FCLIB_PROBLEMS", "")  # a folder of files of others


@pytest.mark.skipif(not os.path.isdir(PUBLIC), reason="FCLIB_PROBLEMS names no folder of problems")
def test_the_public_problems_are_read(tmp_path):
    for name in sorted(os.listdir(PUBLIC)):
        if name.endswith((".hdf5", ".dat")):
            problem = cd.read_problem(os.path.join(PUBLIC, name))
            cd.write_problem(problem, tmp_path / "copy.hdf5")
            assert problem.contacts > 0 and same(cd.read_problem(tmp_path / "copy.hdf5"), problem)


# ---- files that are wrong --------------------------------------------------------------------------------------------


def told(path):
    """The sentence with which a file is refused; None where it is read, as a problem that can be solved."""
    try:
        problem = cd.read_problem(path)
    except cd.InputError as error:
        message = str(error)
        assert "\n" not in message and message.endswith(".") and str(path) in message
        return message
    assert np.isfinite(problem.velocity).all() and (problem.friction >= 0).all()
    problem.velocities(np.ones(problem.velocity.shape))
    return None


WRONG_HDF5 = {
    "no group": (lambda f: f.move("fclib_local", "other"), "neither fclib_local nor fclib_global"),
    "missing W": (lambda f: f.pop("fclib_local/W"), "fclib_local/W/m is missing"),
    "missing q": (lambda f: f.pop("fclib_local/vectors/q"), "vectors/q is missing"),
    "missing mu": (lambda f: f.pop("fclib_local/vectors/mu"), "vectors/mu is missing"),
    "missing x": (lambda f: f.pop("fclib_local/W/x"), "W/x is missing"),
    "a group for an array": (lambda f: (f.pop("fclib_local/vectors/q"), f.create_group("fclib_local/vectors/q")),
                             "q is no array"),
    "spacedim": (lambda f: put(f, "spacedim", [4], "i4"), "spacedim is 4"),
    "two spacedims": (lambda f: put(f, "spacedim", [3, 3], "i4"), "spacedim has 2 numbers"),
    "short q": (lambda f: put(f, "vectors/q", [1.0]), "q has 1 numbers, a multiple of 3"),
    "sizes disagree": (lambda f: put(f, "vectors/q", np.ones(9)), "mu has 4 numbers, 3 expected"),
    "not square": (lambda f: put(f, "W/n", [11], "i4"), "W is 12 x 11, 12 x 12 expected"),
    "huge": (lambda f: put(f, "W/m", [2**31 - 1], "i4"), "2147483647 x 12"),
    "negative size": (lambda f: put(f, "W/m", [-12], "i4"), "W is -12 x 12"),
    "unknown storage": (lambda f: put(f, "W/nz", [-3], "i4"), "nz is -3"),
    "many triplets": (lambda f: put(f, "W/nz", [2**31 - 1], "i4"), "states 2147483647 triplets"),
    "starts": (lambda f: put(f, "W/p", np.zeros(3), "i4"), "p is no list of 12 starts"),
    "falling starts": (lambda f: put(f, "W/p", np.arange(12, -1, -1), "i4"), "p is no list of 12 starts"),
    "starts beyond": (lambda f: put(f, "W/p", np.arange(13) * 10**6, "i4"), "states 12000000 entries"),
    "column beyond": (lambda f: f["fclib_local/W/i"].__setitem__(0, 99), "points outside the matrix"),
    "negative column": (lambda f: f["fclib_local/W/i"].__setitem__(0, -1), "points outside the matrix"),
    "nan in q": (lambda f: f["fclib_local/vectors/q"].__setitem__(3, np.nan), "q contains nan"),
    "infinity in W": (lambda f: f["fclib_local/W/x"].__setitem__(3, np.inf), "x contains nan or infinity"),
    "nan in mu": (lambda f: f["fclib_local/vectors/mu"].__setitem__(1, np.nan), "mu contains nan"),
    "negative friction": (lambda f: f["fclib_local/vectors/mu"].__setitem__(1, -0.5), "mu has -0.5"),
    "text for numbers": (lambda f: put(f, "vectors/q", [b"ab"] * 12, "S2"), "q holds"),
    "no diagonal": (lambda f: f["fclib_local/W/x"].__setitem__(slice(None), 0.0), "W_nn = 0"),
    "asymmetric": (lambda f: f["fclib_local/W/x"].__setitem__(1, 1e6), "not symmetric"),
}  # fmt: skip


def put(file, name, value, kind="f8"):
    file.pop(f"fclib_local/{name}")
    file[f"fclib_local/{name}"] = np.array(value).astype(kind)


@pytest.mark.parametrize("case", WRONG_HDF5)
def test_wrong_fclib_files(rng, tmp_path, case):
    change, words = WRONG_HDF5[case]
    path = tmp_path / "file.hdf5"
    put_fclib(path, random_problem(rng, bodies=False))
    with h5py.File(path, "r+") as file:
        change(file)
    assert words in told(path)


def test_wrong_bodies_in_a_file(rng, tmp_path):
    path, problem = tmp_path / "file.hdf5", random_problem(rng)
    for change, words in (
        (lambda f: f["fclib_global/M/x"].__setitem__(slice(None), 0.0), "not positive definite"),
        (lambda f: f["fclib_global/M/x"].__setitem__(1, 1e6), "mass is not"),
        (lambda f: f["fclib_global/H/m"].__setitem__(0, 8), "H is 8 x 12, 9 x 12 expected"),
        (lambda f: f.pop("fclib_global/vectors/f"), "vectors/f is missing"),
        (lambda f: f["fclib_global/vectors/w"].__setitem__(0, np.nan), "w contains nan"),
    ):
        put_fclib(path, problem, "triplets")
        with h5py.File(path, "r+") as file:
            change(file)
        assert words in told(path)


WRONG_TEXT = {
    "empty": (lambda w: [], "ends before the number of components"),
    "words": (lambda w: ["hello", *w], "components is 'hello'"),
    "components": (lambda w: ["7", *w[1:]], "7 components"),
    "huge contacts": (lambda w: [w[0], "999999999", *w[2:]], "states 999999999 contacts"),
    "negative contacts": (lambda w: [w[0], "-4", *w[2:]], "contacts is '-4'"),
    "storage": (lambda w: [*w[:2], "5", *w[3:]], "storage 5"),
    "huge matrix": (
        lambda w: [*w[:3], "99999999", "99999999", "99999999", "99999999", *w[7:]],
        "need 9999999800000001",
    ),
    "two sizes": (lambda w: [*w[:5], "11", *w[6:]], "two different sizes"),
    "not square": (lambda w: [*w[:3], "11", "12", "11", "12", *w[7:]], "11 x 12, a square one"),
    "cut": (lambda w: w[:-3], "numbers follow"),
    "cut in the matrix": (lambda w: w[:50], "numbers left where"),
    "too long": (lambda w: [*w, "1", "2", "3"], "numbers follow"),
    "nan": (lambda w: [*w[:9], "nan", *w[10:]], "contain nan"),
    "infinity": (lambda w: [*w[:-1], "1e999"], "contain nan or infinity"),
    "no number": (lambda w: [*w[:9], "x1", *w[10:]], "'x1' is no number"),
    "negative friction": (lambda w: [*w[:-1], "-0.1"], "mu has -0.1"),
}


@pytest.mark.parametrize("case", WRONG_TEXT)
def test_wrong_text_files(rng, tmp_path, case):
    change, words = WRONG_TEXT[case]
    path = tmp_path / "file.dat"
    put_text(path, random_problem(rng, bodies=False), "dense")
    path.write_text(" ".join(change(path.read_text().split())))
    assert words in told(path)


def test_wrong_blocks_and_prints(rng, tmp_path):
    path, problem = tmp_path / "file.dat", random_problem(rng, bodies=False)
    for storage, place, word, words in (
        ("blocks", 5, "999999999", "of the first matrix"), ("blocks", 9, "11", "do not add up"),
        ("blocks", 5, "5", "do not fit"), ("blocks", 12, "9", ""), ("blocks", 20, "3", ""),
        ("columns", 3, "13", "its sizes"), ("columns", 5, "x", ""), ("columns", 18, "13-by-12,", "its sizes"),
        ("columns", 22, "99999999", "more than the file can hold"), ("triplets", 20, "999999999999999", ""),
    ):  # fmt: skip
        put_text(path, problem, storage)
        found = path.read_text().split()
        found[place] = word
        path.write_text(" ".join(found))
        message = told(path)
        assert message is None or words in message


def test_hundreds_of_mutated_files(tmp_path):
    # Whatever is changed in a file, it is read or refused in a sentence; the arrays made on the way stay small.
    rng = np.random.default_rng(17)
    refused = 0
    for k in range(240):
        if k % 20 == 0:  # it makes all slower
            tracemalloc.start()
        problem = random_problem(rng, m=3, bodies=bool(k % 2))
        path = tmp_path / f"file{k}"
        if k % 3 == 0:
            put_fclib(path, problem, ("rows", "columns", "triplets")[k % 9 // 3])
            mutate_arrays(rng, path)
        elif k % 3 == 1:
            cd.write_problem(problem, path, solution=np.ones((3, 3)))
            data = bytearray(path.read_bytes())
            for _ in range(rng.integers(1, 5)):
                data[rng.integers(8, len(data))] = rng.integers(256)
            path.write_bytes(data[: rng.integers(8, len(data))] if rng.random() < 0.3 else data)
        else:
            put_text(path, problem, ("dense", "blocks", "columns", "triplets")[k % 4])
            mutate_words(rng, path)
        refused += told(path) is not None
        path.unlink()
        if tracemalloc.is_tracing():
            assert tracemalloc.get_traced_memory()[1] < 20e6
            tracemalloc.stop()
    assert 60 < refused < 240


def mutate_arrays(rng, path):
    """Change one number, one length or one name of an HDF5 file."""
    with h5py.File(path, "r+") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[rng.integers(len(names))]
        data = file[name][...]
        what = rng.integers(4)
        if what == 0:
            del file[name]
        elif what == 1:
            del file[name]
            file[name] = np.resize(data, rng.integers(0, 2 * len(data) + 2))
        elif what == 2:
            odd = (np.nan, np.inf, -1.0, 1e300, 0.0) if data.dtype.kind == "f" else (-1, 2**31 - 1, 0, -7, 5)
            file[name][rng.integers(len(data))] = odd[rng.integers(len(odd))]
        else:
            file.move(name, name + "_")


def mutate_words(rng, path):
    """Change, drop, double or cut words of a text."""
    found = path.read_text().split()
    for _ in range(rng.integers(1, 4)):
        place, what = rng.integers(len(found)), rng.integers(5)
        if what == 0:
            found = found[: place + 1]
        elif what == 1:
            found.pop(place)
        elif what == 2:
            found.insert(place, found[rng.integers(len(found))])
        else:
            odd = ("nan", "-1", "1e999", "99999999999", "0", "word", "", "-", "1e-400", "\x00")
            found[place] = odd[rng.integers(len(odd))]
        found = found or ["3"]
    path.write_text(" ".join(found))


def test_an_array_that_states_more_than_it_holds(tmp_path, rng):
    # A chunked dataset of terabytes without any of them, in a file of a few kilobytes.
    path = tmp_path / "file.hdf5"
    put_fclib(path, random_problem(rng, bodies=False))
    for name in ("vectors/q", "W/x", "W/i", "vectors/mu"):
        put_fclib(path, random_problem(rng, bodies=False))
        with h5py.File(path, "r+") as file:
            kind = file[f"fclib_local/{name}"].dtype
            del file[f"fclib_local/{name}"]
            file["fclib_local"].create_dataset(name, shape=(10**12,), dtype=kind, chunks=(1000,), compression="gzip")
        tracemalloc.start()
        assert "rows, but 0 bytes" in told(path)
        assert tracemalloc.get_traced_memory()[1] < 10e6
        tracemalloc.stop()


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(cd.InputError, match="There is no file"):
        cd.read_problem(tmp_path / "nowhere.hdf5")
    with pytest.raises(cd.InputError, match="is a folder"):
        cd.read_problem(tmp_path)
    for name, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "file.hdf5", "there is no")):
        with pytest.raises(cd.InputError, match=words):
            cd.write_problem(random_problem(np.random.default_rng(1)), name)


def test_text_refuses_what_it_cannot_hold(rng, tmp_path):
    with pytest.raises(cd.InputError, match="two coefficients"):
        cd.write_problem(random_problem(rng, isotropic=False), tmp_path / "file.dat")
    with pytest.raises(cd.InputError, match="cannot hold impulses"):
        cd.write_problem(random_problem(rng), tmp_path / "file.dat", solution=np.zeros((4, 3)))
    with pytest.raises(cd.InputError, match="guess has shape"):
        cd.write_problem(random_problem(rng), tmp_path / "file.hdf5", solution=np.zeros((4, 2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file.hdf5", "file.dat"])
def test_nothing_is_half_written(rng, tmp_path, monkeypatch, name):
    path, problem = tmp_path / name, random_problem(rng, bodies=False)
    cd.write_problem(problem, path)
    before = path.read_bytes()

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, full_disk)
            with pytest.raises(cd.InputError, match="No space left"):
                cd.write_problem(random_problem(rng, bodies=False), path)
        assert path.read_bytes() == before and os.listdir(tmp_path) == [name]
