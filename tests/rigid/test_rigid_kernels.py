"""Every kernel of the rigid-body engine against its naive twin, on random input.

The kernels of a step are shown a *moment*: a random crowd of bodies of all kinds, caught when the solver is called.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import root
from scipy.spatial.transform import Rotation

import contactdynamics as cd
import naive
import naive_rigid as twin
from contactdynamics import quaternions
from contactdynamics.rigid import motion, neighbours, simulation, solvers
from contactdynamics.rigid.entries import table
from contactdynamics.rigid.equations import (
    contract,
    diagonal,
    diagonal_books,
    diagonal_measure,
    diagonal_rows,
    diagonal_sweep,
    full,
    grouped,
    levers,
    local,
)
from contactdynamics.rigid.equations.contract import GROUPS, Kind, Mobility
from contactdynamics.rigid.search.ball_contacts import WARY
from contactdynamics.rigid.search.contract import DIAGONAL, FULL, NEAR
from contactdynamics.rigid.search.pairs import kept
from contactdynamics.rigid.space import OPEN
from contactdynamics.rigid.step import Goal, Step
from contactdynamics.rigid.threads import Meeting, Team
from contactdynamics.scenes.materials import (
    COHESION,
    FRICTION_1,
    FRICTION_2,
    RHO,
    ROLLING,
    SPINNING,
    STATIC,
    TAU,
    TENSION,
)
from contactdynamics.state import Springs
from rigid_tools import DIMENSIONS, ball, floor, vector, wall, world

# ---- quaternions -----------------------------------------------------------------------------------------------------


def unit(rng, *shape):
    q = rng.normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def as_rotation(q):
    return Rotation.from_quat(np.roll(q, -1, axis=-1))


def test_quaternion_kernels(rng):
    for _ in range(20):
        a, b, x = unit(rng), unit(rng), rng.normal(size=3)
        assert quaternions.multiply(*a, *b) == pytest.approx(twin.product(a, b))
        assert quaternions.rotate(a, *x) == pytest.approx(twin.rotate(a, x))
        assert quaternions.rotate(a, *x) == pytest.approx(as_rotation(a).apply(x))
        for size in (0.0, 1e-9, 1e-3, 1.9e-2, 2.1e-2, 1.0, 3.0, 40.0):
            assert quaternions.exponential(*(size * x)) == pytest.approx(twin.exponential(size * x), abs=1e-14)
        assert quaternions.matrix(a) == pytest.approx(as_rotation(a).as_matrix())
    many, other = unit(rng, 5), unit(rng, 5)
    assert quaternions.product(many, other) == pytest.approx(
        np.array([twin.product(p, q) for p, q in zip(many, other, strict=True)])
    )
    assert quaternions.product(many, quaternions.conjugate(many)) == pytest.approx(np.tile([1.0, 0, 0, 0], (5, 1)))


def test_vectors_are_turned_by_quaternions(rng):
    q, vectors = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
    q /= np.linalg.norm(q, axis=1)[:, None]
    turns = Rotation.from_quat(np.roll(q, -1, axis=1))  # SciPy has w last
    assert np.allclose(quaternions.turned(q, vectors), turns.apply(vectors), rtol=0, atol=1e-14)
    assert np.allclose(quaternions.turned(quaternions.conjugate(q), turns.apply(vectors)), vectors, rtol=0, atol=1e-14)


def test_quaternion_of_a_matrix(rng):
    # also where the trace is small: half turns about all axes, and near them
    rotations = [as_rotation(q).as_matrix() for q in unit(rng, 30)]
    rotations += [as_rotation(np.roll(np.eye(4)[0], k)).as_matrix() for k in range(4)]
    rotations += [Rotation.from_rotvec((np.pi - 1e-9) * a).as_matrix() for a in np.eye(3)]
    for r in rotations:
        assert twin.matrix(quaternions.from_matrix(r)) == pytest.approx(r, abs=1e-12)


# ---- rigid bodies ----------------------------------------------------------------------------------------------------


def crowd(rng, n=7, dimension=3):
    """Random bodies as arrays: some free, fixed, driven; some with three different moments."""
    kind = rng.integers(0, 3, n).astype(np.int8)
    kind[0] = 0
    simple = rng.random(n) < 0.5
    size = rng.uniform(0.1, 0.5, n)
    inertia = rng.uniform(0.5, 1.0, (n, 3))
    inertia[simple] = inertia[simple, :1]
    rows = np.empty((n, 8))
    mass = rng.uniform(1, 3, n)
    motion.pack(rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), mass, kind, simple, size, rows)
    orientation = unit(rng, n)
    if dimension == 2:
        rows[:, [2, 3, 4]] = 0
        inertia = np.repeat(inertia[:, :1], 3, axis=1)
        orientation[:, 1:3] = 0
        orientation /= np.linalg.norm(orientation, axis=1, keepdims=True)
    return SimpleNamespace(kind=kind, simple=simple, size=size, inertia=inertia, rows=rows, mass=mass,
                           position=rng.normal(size=(n, 3)), orientation=orientation)  # fmt: skip


def test_pack(rng):
    v, w, mass, size = (
        rng.normal(size=(3, 3)),
        rng.normal(size=(3, 3)),
        np.array([1.0, 2, 4]),
        np.array([0.1, 0.2, 0.3]),
    )
    rows = np.empty((3, 8))
    motion.pack(v, w, mass, np.array([0, 1, 2], dtype=np.int8), np.array([True, True, False]), size, rows)
    assert twin.velocities(rows) == pytest.approx(np.column_stack([v, w]))
    assert rows[:, 6].tolist() == [1.0, 0.0, 0.0]
    assert rows[:, 7].tolist() == [0.1, 0.2, 1.0]


def test_drift(rng):
    c = crowd(rng)
    position, orientation = c.position.copy(), c.orientation.copy()
    motion.drift(position, orientation, c.rows, 0.3)
    u = twin.velocities(c.rows)
    assert position == pytest.approx(c.position + 0.3 * u[:, :3])
    for q, old, w in zip(orientation, c.orientation, u[:, 3:], strict=True):
        assert q == pytest.approx(twin.turned(old, w, 0.3))
        turned = Rotation.from_rotvec(0.3 * w) * as_rotation(old)
        assert twin.matrix(q) == pytest.approx(turned.as_matrix())
    for _ in range(10_000):  # the length stays one
        motion.drift(position, orientation, c.rows, 0.01)
    assert np.linalg.norm(orientation, axis=1) == pytest.approx(np.ones(7), abs=1e-14)


def test_to_axes(rng):
    q, x = unit(rng), rng.normal(size=3)
    assert motion.to_axes(q, *x) == pytest.approx(twin.matrix(q).T @ x)


def test_free_spin_solves_the_implicit_midpoint_rule(rng):
    for _ in range(10):
        inertia, w, torque, h = rng.uniform(1, 2, 3), rng.normal(size=3), rng.normal(size=3), 0.05

        def rule(new, inertia=inertia, w=w, torque=torque, h=h):
            mean = 0.5 * (w + new)
            return inertia * (new - w) - h * (torque - np.cross(mean, inertia * mean))

        exact = root(rule, w, tol=1e-14).x
        assert motion.free_spin(*inertia, *w, *torque, h) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("loaded", [True, False])
def test_relax(rng, loaded):
    c = crowd(rng)
    force, torque, gravity, h = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=3), 0.02
    rows = c.rows.copy()
    motion.relax(
        rows, c.kind, c.mass, c.inertia, c.orientation, force, torque, gravity, h, loaded, np.zeros(7, dtype=np.int8)
    )
    before, after = twin.velocities(c.rows), twin.velocities(rows)
    for i in range(7):
        if c.kind[i] != twin.FREE:
            assert (rows[i] == c.rows[i]).all()
            continue
        push, turn = (force[i], torque[i]) if loaded else (np.zeros(3), np.zeros(3))
        assert after[i, :3] == pytest.approx(before[i, :3] + h * (gravity + push / c.mass[i]))
        r = twin.matrix(c.orientation[i])
        tensor = r @ np.diag(c.inertia[i]) @ r.T
        mean = 0.5 * (before[i, 3:] + after[i, 3:])  # Euler's equation in space, orientation held, by the midpoint rule
        assert tensor @ (after[i, 3:] - before[i, 3:]) == pytest.approx(h * (turn - np.cross(mean, tensor @ mean)))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_invert_inertia(rng, d):
    c = crowd(rng, dimension=d)
    out = np.empty((7, 3, 3))
    motion.invert_inertia(c.kind, c.inertia, c.orientation, d, out, np.zeros(7, dtype=np.int8))
    full = twin.inverse_inertia(c.kind, c.mass, c.inertia, c.orientation, d)
    for i in range(7):
        assert out[i] == pytest.approx(full[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6], abs=1e-14)


def test_energies(rng):
    a, b, c = crowd(rng), crowd(rng), crowd(rng)
    for other in (b, c):
        other.rows[:, 7] = a.rows[:, 7]
    held = np.zeros(7, dtype=np.int8)
    first, last, work = motion.energies(a.rows, b.rows, c.rows, a.kind, a.mass, a.inertia, a.orientation, held)
    assert first == pytest.approx(twin.kinetic(a.kind, a.mass, a.inertia, a.orientation, a.rows))
    assert last == pytest.approx(twin.kinetic(a.kind, a.mass, a.inertia, a.orientation, c.rows))
    expected = 0.0
    u, f, v = (twin.velocities(x.rows) for x in (a, b, c))
    for i in range(7):
        if a.kind[i] == twin.FREE:
            r = twin.matrix(a.orientation[i])
            inertia = np.zeros((6, 6))
            inertia[:3, :3], inertia[3:, 3:] = a.mass[i] * np.eye(3), r @ np.diag(a.inertia[i]) @ r.T
            expected += 0.5 * (f[i] - u[i]) @ inertia @ (u[i] + v[i])
    assert work == pytest.approx(expected)
    g = rng.normal(size=3)
    free = a.kind == twin.FREE
    assert motion.gravity_energy(a.position, a.mass, a.kind, g, held) == pytest.approx(
        -(a.mass[free, None] * a.position[free] * g).sum()
    )


def test_springs_pull_down_the_gradient_of_their_energy(rng):
    c = crowd(rng)
    k = 6
    springs = Springs(
        rng.integers(0, 7, k), rng.integers(-1, 7, k), rng.normal(size=(k, 3)), rng.normal(size=(k, 3)),
        rng.uniform(1, 2, k), np.zeros(k), rng.uniform(0, 1, k),
    )  # fmt: skip
    springs.first[0], springs.second[0] = 0, 1
    springs.first[springs.first == springs.second] = 6
    force, torque = np.zeros((7, 3)), np.zeros((7, 3))
    energy = motion.pull_springs(springs, c.position, c.orientation, c.rows, force, torque)
    assert energy == pytest.approx(twin.spring_energy(springs, c.position, c.orientation))
    for i in range(7):
        for axis in np.eye(3):

            def moved(s, i=i, axis=axis):
                position = c.position.copy()
                position[i] += s * axis
                return twin.spring_energy(springs, position, c.orientation)

            def turned(s, i=i, axis=axis):
                orientation = c.orientation.copy()
                orientation[i] = twin.turned(orientation[i], axis, s)
                return twin.spring_energy(springs, c.position, orientation)

            h = 1e-5
            assert force[i] @ axis == pytest.approx(-(moved(h) - moved(-h)) / (2 * h), abs=1e-7)
            assert torque[i] @ axis == pytest.approx(-(turned(h) - turned(-h)) / (2 * h), abs=1e-7)


def test_dashpots_take_the_power_of_their_rate(rng):
    # The power of the dashpots' forces is -c (dl/dt)^2.
    c = crowd(rng)
    springs = Springs(np.array([0, 2]), np.array([1, -1]), rng.normal(size=(2, 3)), rng.normal(size=(2, 3)),
                      np.zeros(2), np.array([0.7, 1.3]), np.zeros(2))  # fmt: skip
    force, torque = np.zeros((7, 3)), np.zeros((7, 3))
    motion.pull_springs(springs, c.position, c.orientation, c.rows, force, torque)
    u = twin.velocities(c.rows)
    point, velocity, arm = np.empty(3), np.empty(3), np.empty(3)
    power = 0.0
    for a, b, p, q, _, damping, _ in zip(*springs, strict=True):
        ends, speeds = [], []
        for body, anchor in ((a, p), (b, q)):
            motion.spring_end(body, anchor, c.position, c.orientation, c.rows, point, velocity, arm)
            assert point == pytest.approx(twin.end(body, anchor, c.position, c.orientation))
            if body >= 0:
                assert velocity == pytest.approx(u[body, :3] + np.cross(u[body, 3:], point - c.position[body]))
            ends.append(point.copy())
            speeds.append(velocity.copy())
        e = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        power -= damping * (e @ (speeds[1] - speeds[0])) ** 2
    assert (force * u[:, :3]).sum() + (torque * u[:, 3:]).sum() == pytest.approx(power)


# ---- a moment --------------------------------------------------------------------------------------------------------


def busy_scene(d, rng, general):
    """Balls on a slightly narrow grid, so that many touch, on a driven floor, with fixed and driven balls; and
    clusters, laws of all kinds and a floor that turns where ``general``."""
    scene = world(d, friction=0.3, static_friction=0.35, restitution=0.2)
    names = ["m"]
    if general:
        for name, law in (
            ("sticky", {"friction": 0.5, "cohesion": 0.3, "rolling": 0.01, "spinning": 0.02}),
            ("super", {"friction": 0.8, "restitution": 0.7, "tangential_restitution": 0.4}),
            ("taut", {"friction": 0.2, "tension": 0.2}),
        ):
            for other in names:
                scene.materials.names.count(name) or scene.material(name, density=1.5)
                scene.contact(name, other, **law)
            names.append(name)
            scene.contact(name, name, **law)
        if d == 3:
            scene.contact("super", "taut", anisotropic=(0.1, 0.5), axis=(0.3, 1.0, 0.2))
    spin = (0.3 if d == 2 else (0.1, 0.2, 0.3)) if general else 0.0
    floor(scene, motion=cd.Drive(velocity=rng.normal(size=d) * 0.1, spin=spin))
    scene.add(wall(d, vector(d, 1.0)), material="m", position=vector(d, -0.1 + 0.003), fixed=True)
    side, count = (5, 4) if d == 2 else (3, 3)
    grid = np.stack(np.meshgrid(*[np.arange(side)] * (d - 1), np.arange(count), indexing="ij")).reshape(d, -1).T
    place = 0.199 * grid + vector(d, 0.0, 0.099) + rng.uniform(-0.001, 0.001, grid.shape)
    if d == 3:
        place[:, 1] += 0.4
    for k, x in enumerate(place):
        shape = ball(d, 0.1 * rng.uniform(0.99, 1.01))
        if general and k % 6 == 5:
            shape = cd.Cluster([0.06, 0.05], 0.06 * np.eye(d)[[0, d - 1]])
        state = {"velocity": 0.5 * rng.normal(size=d), "spin": 3 * rng.normal(size=None if d == 2 else 3)}
        if k == 3:
            state = {"fixed": True}
        elif k == 7:
            state = {"motion": cd.Drive(velocity=0.2 * rng.normal(size=d), spin=2.0 if d == 2 else (1.0, 2.0, -1.0))}
        scene.add(shape, material=names[k % len(names)], position=x, **state)
    return scene


@pytest.fixture
def moment(request, monkeypatch):
    """The arguments of the solver in the third step of a busy scene, and the simulation at that moment."""
    d, general, penetration = request.param
    rng = np.random.default_rng([d, general, len(penetration)])
    sim = cd.Simulation(busy_scene(d, rng, general), time_step=2e-3, tolerance=1e-8, max_iterations=200,
                        penetration=penetration, on_failure="ignore", solver="nlgs", check=False)  # fmt: skip
    caught, near = [], sim.contact_set.near

    def copy(value):
        return type(value)(*(np.array(x) if isinstance(x, np.ndarray) else x for x in value))

    def spy(rows, mobility, kinds, goal, scratch, meeting):
        twins = tuple(Kind(*map(copy, equations.kind)) for equations in sim.contact_set.equations)
        first, second = twins[0].contacts, twins[1].contacts if len(twins) > 1 else full.full_contacts(0)
        caught.append(SimpleNamespace(
            rows=rows.copy(), mobility=copy(mobility), kinds=twins, simple=first, m=len(first.pair), general=second,
            g=len(second.pair), kappa=mobility.kappa, scale=goal.scale, pairs=copy(sim.contact_set.searches[0].found),
            before=sim._before.copy(), free=sim._free.copy(), sim=sim, position=sim.bodies.position.copy(),
            orientation=sim.bodies.orientation.copy(), places=near.places.copy(), normals=near.flats.normals.copy(),
            points=near.flats.points.copy(), d=d, n=len(rows), h=2e-3, step=sim.steps,
            anticipate=penetration == "anticipate",
        ))  # fmt: skip
        return solvers.nlgs(rows, mobility, kinds, goal, scratch, meeting)

    monkeypatch.setitem(simulation.SOLVERS, "nlgs", spy)
    for _ in range(3):
        sim.step()
    first = next(c for c in caught if c.step == 2)  # of the third step; anticipation may solve again
    assert (first.m + first.g) >= 15
    b = sim.bodies
    first.inverse_mass = twin.inverse_inertia(b.kind, b.mass, b.inertia, first.orientation, d)
    return first


MOMENTS = [(d, general, p) for d in DIMENSIONS for general in (False, True) for p in ("moreau", "anticipate")]
ALL = pytest.mark.parametrize("moment", MOMENTS, indirect=True, ids=str)
GENERAL = pytest.mark.parametrize("moment", [m for m in MOMENTS if m[1]], indirect=True, ids=str)
ALONE = Meeting(np.zeros(16, dtype=np.int64), 0, 1)


def simple_contact(c, k):
    """a, b, frame, arms of a simple contact: at the radius from each ball, where the planes are does not matter."""
    a, b, n = int(c.simple.a[k]), int(c.simple.b[k]), c.simple.row[k, :3]
    frame = np.empty((3, 3))
    contract.local_frame(n, np.zeros(3), c.d == 2, frame)
    arms = [
        sign * c.rows[body, 7] * n if c.sim.bodies.size[body] > 0 else np.zeros(3) for body, sign in ((a, 1), (b, -1))
    ]
    return a, b, frame, *arms


def general_contact(c, k):
    q = c.general
    return int(q.a[k]), int(q.b[k]), q.frame[k], q.arm_a[k], q.arm_b[k]


def maps(c):
    """G (6, 6 N) of all contacts, simple ones first."""
    out = [twin.contact_map(*simple_contact(c, k), c.n) for k in range(c.m)]
    return out + [twin.contact_map(*general_contact(c, k), c.n) for k in range(c.g)]


def flat(rows):
    return twin.velocities(rows).ravel()


# ---- which bodies touch ----------------------------------------------------------------------------------------------


@ALL
def test_active_pairs_are_those_found_by_brute_force(moment):
    # gap <= 0 (but for a rounding, or for `NEAR` where the pair pushed and does not bounce), or, anticipating, a gap
    # that closes within the step at the velocity before or the free one, or a pair that pushed; between balls that
    # neither bounce nor pull, also one that would at `WARY` times their relative speed more; glue holds those that
    # held. In order, with normals, gaps, laws and classes.
    c, sim = moment, moment.sim
    balls, planes, kind = sim.model.balls, sim.model.planes, sim.bodies.kind
    assert twin.places(c.position, c.orientation, balls.centre, balls.body) == pytest.approx(c.places, abs=1e-14)
    turned = np.array([twin.rotate(c.orientation[b], n) for b, n in zip(planes.body, planes.normal, strict=True)])
    assert turned == pytest.approx(c.normals) and c.position[planes.body] == pytest.approx(c.points)
    found = []
    both = (
        (False, twin.pairs_of_balls(balls.body, kind, balls.radius, c.places)),
        (True, twin.pairs_with_planes(balls.body, kind, balls.radius, c.places, c.normals, c.points)),
    )
    memory = {}
    for k in range(len(c.pairs.first)):
        memory[k >= c.pairs.balls, int(c.pairs.first[k]), int(c.pairs.second[k])] = int(c.pairs.status[k])
    for is_plane, candidates in both:
        for i, j, n, gap in candidates:
            a = (planes if is_plane else balls).body[i]
            b = balls.body[j]
            material = (planes if is_plane else balls).material[i]
            law = sim.model.law_index[material, balls.material[j]]
            status = memory.get((is_plane, i, j), twin.OPEN)
            glue = sim.model.laws[law, [COHESION, TENSION]].any()
            point = c.places[j] - balls.radius[j] * n
            both_rows = (c.before, c.free)
            speed = min(twin.normal_velocity(rows, a, b, n, point, c.position) for rows in both_rows)
            round_ = not (is_plane and c.before[a, 3:6].any()) and c.before[b, 7] != 1.0
            if round_ and (is_plane or c.before[a, 7] != 1.0) and not glue and sim.model.laws[law, RHO] == 0:
                speed = min(
                    twin.normal_velocity(rows, a, b, n, point, c.position)
                    - WARY * np.linalg.norm(rows[b, :3] - rows[a, :3])
                    for rows in both_rows
                )
            closes = gap + c.h * speed < -1e-9 * balls.radius[j]
            pushed = status > twin.SEPARATING
            if (
                gap <= 1e-10 * balls.radius[j]
                or (pushed and gap <= NEAR * balls.radius[j] and sim.model.laws[law, RHO] == 0)
                or (c.anticipate and (closes or pushed))
                or (glue and (pushed or gap <= 1e-9 * balls.radius[j]))
            ):
                found.append((is_plane, i, j, *n, gap, law))
    assert len(found) == len(c.pairs.first)
    for k, (is_plane, i, j, *n, gap, law) in enumerate(found):
        assert (k >= c.pairs.balls, c.pairs.first[k], c.pairs.second[k], c.pairs.law[k]) == (is_plane, i, j, law)
        assert c.pairs.normal[k] == pytest.approx(n, abs=1e-12) and c.pairs.gap[k] == pytest.approx(gap, abs=1e-13)
        bodies = (planes if is_plane else balls).body[i], balls.body[j]
        assert (c.pairs.a[k], c.pairs.b[k]) == bodies
        plain = all(sim.bodies.simple[b] or (b in planes.body and not sim.rows[b, 3:6].any()) for b in bodies)
        rule = sim.model.laws[law]
        isotropic = rule[FRICTION_1] == rule[FRICTION_2] and not rule[[TAU, ROLLING, SPINNING, COHESION, TENSION]].any()
        assert c.pairs.kind[k] == (DIAGONAL if plain and isotropic else FULL)
    assert set(memory) == {
        (k >= c.pairs.balls, *map(int, (c.pairs.first[k], c.pairs.second[k]))) for k in range(len(found))
    }


def detect(sim):
    """Find the active contacts at the present positions."""
    sim.contact_set.detect(sim.model, Step(0.0, sim.time_step, 0.0, False, False, sim.rows, sim.rows), sim.rows)


def test_memory_is_handed_over_by_pair(rng):
    # A merge of two sorted lists: pairs in both keep impulse, moment and status, new ones start with nothing.
    places = rng.uniform(0, 1.0, (40, 3))
    radius = rng.uniform(0.1, 0.2, 40)
    n = 40
    scene = world(3)
    for x, r in zip(places, radius, strict=True):
        scene.add(cd.Sphere(r), material="m", position=x)
    sim = cd.Simulation(scene, time_step=1e-3, check=False)
    search = sim.contact_set.searches[0]
    search.rules = search.rules._replace(moments=True)  # where all contacts are diagonal, nobody asks for them
    detect(sim)
    old = search.found
    assert len(old.first) > 50
    for name in ("impulse", "moment"):
        getattr(old, name)[:] = rng.normal(size=(len(old.first), 3))
    old.status[:] = rng.integers(0, 4, len(old.first))
    keep = {(int(i), int(j)): (p.copy(), m.copy(), int(s)) for i, j, p, m, s in
            zip(old.first, old.second, old.impulse, old.moment, old.status, strict=True)}  # fmt: skip
    sim.bodies.position[:] += rng.uniform(-0.05, 0.05, (n, 3))
    detect(sim)
    common = 0
    new = search.found
    for i, j, p, m, s in zip(new.first, new.second, new.impulse, new.moment, new.status, strict=True):
        was = keep.get((int(i), int(j)), (np.zeros(3), np.zeros(3), twin.OPEN))
        common += (int(i), int(j)) in keep
        assert (p == was[0]).all() and (m == was[1]).all() and s == was[2]
    assert 10 < common < len(new.first)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_neighbour_lists_hold_all_that_may_meet(d, rng):
    # Built anew, after look-ups of those that left their margin, and after balls joined: each list is sorted, and holds
    # every j > i that i may meet while both stay within their margins (j < i have i in theirs).
    scene = world(d, gravity=0.0)
    n = 60
    place = rng.uniform(0, 2.0 if d == 2 else 1.2, (n, d))
    speed = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 30.0], (n, 1), p=[0.6, 0.3, 0.1])
    for k in range(n):
        moves = {"fixed": True} if k % 9 == 0 else {"velocity": speed[k]}
        scene.add(ball(d, rng.uniform(0.03, 0.1)), material="m", position=place[k], **moves)
    scene.add(
        cd.Cluster([0.05, 0.05], 0.1 * np.eye(d)[:2]),
        material="m",
        position=[0.5] * d,
        spin=5.0 if d == 2 else (0, 0, 5.0),
    )
    sim = cd.Simulation(scene, time_step=1e-3, check=False)
    looked_up = rebuilt = 0
    for k in range(60):
        near = sim.contact_set.near
        known = None if near.lists is None else near.lists.reference.copy()
        detect(sim)
        lists, balls = near.lists, sim.model.balls
        if known is not None and len(known) == len(lists.reference):
            changed = (known != lists.reference).any(axis=1).sum()
            looked_up += 0 < changed < len(known) / 2
            rebuilt += changed > len(known) / 2
        assert (np.linalg.norm(near.places - lists.reference, axis=1) <= lists.margin * (1 + 1e-12)).all()
        for i in range(len(balls.radius)):
            mine = lists.other[lists.start[i] : lists.start[i] + lists.count[i]].tolist()
            assert mine == sorted(set(mine)) and lists.start[i] + lists.count[i] <= lists.start[i + 1]
            must = twin.neighbours(i, lists.reference, balls.radius, lists.margin, balls.body, sim.bodies.kind)
            assert {j for j in must if j > i} <= set(mine)
        check_cells(lists, lists.reference)
        motion.drift(sim.bodies.position, sim.bodies.orientation, sim.rows, 1e-3)
        if k == 30:
            sim.add(ball(d, 0.05), material="m", position=[0.3] * d)
    assert looked_up > 3


def check_cells(lists, places):
    """Every ball is in exactly one chain, that of the bucket of its cell, linked both ways."""
    seen = []
    for bucket, first in enumerate(lists.head):
        before, at = -1, first
        while at >= 0:
            cell = np.floor(places[at] / lists.cell).astype(np.int64)
            assert neighbours._bucket(*cell.tolist(), len(lists.head) - 1) == bucket == lists.bucket[at]
            assert lists.before[at] == before
            seen.append(int(at))
            before, at = at, lists.after[at]
    assert sorted(seen) == list(range(len(places)))


def test_wanderers(rng):
    c = crowd(rng)
    body = np.array([0, 0, 1, 2, 3, 4, 5, 6, 6])
    centre = rng.normal(size=(9, 3)) * 0.1 * (rng.random(9) < 0.5)[:, None]
    places, reference, margin = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.uniform(0.5, 3, 9)
    for ahead, team in ((0.0, Team(1)), (0.3, Team(2))):
        out, counts = np.empty(9, dtype=np.int32), np.zeros(team.threads, dtype=np.int64)
        columns = places, centre, body, c.rows, reference, margin, ahead, out, counts
        count = team.share(neighbours.wanderers, OPEN, *columns)
        u = twin.velocities(c.rows)[body]
        speed = np.linalg.norm(u[:, :3], axis=1) + np.linalg.norm(u[:, 3:], axis=1) * np.linalg.norm(centre, axis=1)
        gone = np.linalg.norm(places - reference, axis=1) + ahead * speed > margin
        assert out[:count].tolist() == np.flatnonzero(gone).tolist()


# ---- from pairs to contacts ------------------------------------------------------------------------------------------


def test_target_velocity():
    for gap in (-0.1, 0.0, 0.02):
        for before in (-3.0, 0.0, 2.0):
            for rho in (0.0, 0.4, 1.0):
                for anticipate in (False, True):
                    got = contract.target_velocity(gap, before, rho, 0.01, anticipate, False)
                    assert got == twin.target(gap, before, rho, 0.01, anticipate)
                assert contract.target_velocity(gap, before, rho, 0.01, True, True) == -gap / 0.01


def test_local_frame(rng):
    frame = np.empty((3, 3))
    directions = [*rng.normal(size=(20, 3)), *np.eye(3), *-np.eye(3), (1e-9, 0, -1)]
    for n in directions:
        n = np.asarray(n) / np.linalg.norm(n)
        for axis in (np.zeros(3), rng.normal(size=3), n):
            contract.local_frame(n, axis, False, frame)
            assert frame @ frame.T == pytest.approx(np.eye(3), abs=1e-12) and np.linalg.det(frame) == pytest.approx(1)
            assert (frame[0] == n).all()
            along = axis - (axis @ n) * n
            if np.linalg.norm(along) > 1e-6:
                assert frame[1] == pytest.approx(along / np.linalg.norm(along))
        flat_n = np.array([*n[:2], 0.0])
        if np.linalg.norm(flat_n) > 0.1:
            flat_n /= np.linalg.norm(flat_n)
            contract.local_frame(flat_n, np.zeros(3), True, frame)
            assert frame == pytest.approx(np.array([flat_n, [-flat_n[1], flat_n[0], 0], [0, 0, 1]]))


@ALL
def test_velocities_at_contacts(moment):
    # point_velocity, relative_velocity, relative_spin and slip, against G u.
    c, out = moment, np.empty(3)
    u = flat(c.rows)
    for k in range(c.m):
        a, b, frame, arm_a, arm_b = simple_contact(c, k)
        expected = twin.contact_map(a, b, frame, arm_a, arm_b, c.n) @ u
        assert frame @ diagonal_rows.slip(c.rows, a, b, *frame[0]) == pytest.approx(expected[:3], abs=1e-12)
    for k in range(c.g):
        a, b, frame, arm_a, arm_b = general_contact(c, k)
        expected = twin.contact_map(a, b, frame, arm_a, arm_b, c.n) @ u
        levers.relative_velocity(c.rows, a, b, frame, arm_a, arm_b, out)
        assert out == pytest.approx(expected[:3], abs=1e-12)
        levers.relative_spin(c.rows, a, b, frame, out)
        assert out == pytest.approx(expected[3:], abs=1e-12)
        levers.point_velocity(c.rows, b, arm_b, out)
        assert out == pytest.approx(u[6 * b : 6 * b + 3] + np.cross(u[6 * b + 3 : 6 * b + 6], arm_b), abs=1e-12)


@GENERAL
def test_contact_block(moment):
    c = moment
    for k in range(c.g):
        g = twin.contact_map(*general_contact(c, k), c.n)
        assert c.general.delassus[k] == pytest.approx(g @ c.inverse_mass @ g.T, rel=1e-12, abs=1e-9)


@ALL
def test_contacts_of_a_step(moment):
    # fill_contacts of both kinds and the first guess: bodies, frames, arms, targets, coefficients, memory.
    c, sim = moment, moment.sim
    laws, dense = sim.model.laws, maps(c)
    u_before, u_free = flat(c.before), flat(c.free)
    rows = np.array([*c.simple.pair[: c.m].astype(int), *c.general.pair[: c.g]])
    assert sorted(rows[: c.m].tolist()) == np.flatnonzero(c.pairs.kind == DIAGONAL).tolist()
    assert rows[c.m :].tolist() == np.flatnonzero(c.pairs.kind == FULL).tolist()
    scale, guess = 0.0, np.zeros(6 * c.n)
    for k, pair in enumerate(rows):
        law = laws[c.pairs.law[pair]]
        is_simple, q = k < c.m, k - c.m
        a, b, frame, arm_a, arm_b = simple_contact(c, k) if is_simple else general_contact(c, q)
        first, second = c.pairs.first[pair], c.pairs.second[pair]
        owner = sim.model.balls.body[first] if pair < c.pairs.balls else sim.model.planes.body[first]
        assert (a, b) == (owner, sim.model.balls.body[second])
        assert frame[0] == pytest.approx(c.pairs.normal[pair])
        before, free = dense[k] @ u_before, dense[k] @ u_free
        aim = np.array(
            [twin.target(c.pairs.gap[pair], before[0], law[RHO], c.h, c.anticipate), *(-law[TAU] * before[1:3])]
        )
        static = law[STATIC] > law[FRICTION_1] and (
            c.pairs.status[pair] == twin.STICKING
            or (c.pairs.status[pair] <= twin.SEPARATING and np.linalg.norm(before[1:3]) <= 1e-12 * abs(before[0]))
        )
        coefficients = [law[STATIC]] * 2 if static else [law[FRICTION_1], law[FRICTION_2]]
        impulse = frame @ c.pairs.impulse[pair]
        w = dense[k] @ c.inverse_mass @ dense[k].T
        d = c.d
        rho = d / np.trace(w[:d, :d])
        scale += np.sum((rho * (free[:3] - aim)) ** 2)
        if is_simple:
            impulse[0] = max(impulse[0], 0.0)
            row = c.simple.row[k]
            assert frame @ row[3:6] == pytest.approx(impulse, abs=1e-14)
            assert row[6] == pytest.approx(aim[0], abs=1e-12) and row[7] == coefficients[0]
            assert not aim[1:].any()
            guess += c.inverse_mass @ dense[k].T @ [*impulse, 0, 0, 0]
        else:
            point = c.places[second] - (sim.model.balls.radius[second] + 0.5 * c.pairs.gap[pair]) * frame[0]
            assert arm_a == pytest.approx(point - c.position[a]) and arm_b == pytest.approx(point - c.position[b])
            moment_guess = frame @ c.pairs.moment[pair]
            assert c.general.impulse[q] == pytest.approx(impulse, abs=1e-14)
            assert c.general.moment[q] == pytest.approx(moment_guess, abs=1e-14)
            assert c.general.target[q] == pytest.approx(aim, abs=1e-12)
            bound = [*coefficients, law[ROLLING], law[SPINNING], c.h * law[COHESION], c.h * law[TENSION]]
            assert c.general.bound[q] == pytest.approx(bound)
            guess += c.inverse_mass @ dense[k].T @ [*impulse, *moment_guess]
    assert c.scale == pytest.approx(scale, rel=1e-9)
    assert flat(c.rows) == pytest.approx(u_free + guess, abs=1e-11)


# ---- Gauss-Seidel ----------------------------------------------------------------------------------------------------


def sweep_simple(c, rows, order, beta, last):
    """One sweep of the simple contacts of a moment."""
    mobility = Mobility(np.zeros((0, 3, 3)), c.kappa, c.d)
    return diagonal_sweep.sweep_contacts(rows, mobility, c.simple, order, beta, last)


@ALL
def test_sweep_diagonal(moment):
    # Contact by contact: U from the dense matrices, the exact impulse of the laws' own twins.
    c, d = moment, moment.d
    if c.m == 0:
        pytest.skip("no simple contacts")
    dense, u = maps(c), flat(c.rows)
    expected, change = [], 0.0
    for k in range(c.m):
        g = dense[k][:d]
        w = g @ c.inverse_mass @ g.T
        frame = simple_contact(c, k)[2]
        old = (frame @ c.simple.row[k, 3:6])[:d]
        aim = np.array([c.simple.row[k, 6], *[0.0] * (d - 1)])
        new = twin.local_solution(w, g @ u - aim - w @ old, c.simple.row[k, 7])
        u = u + c.inverse_mass @ g.T @ (new - old)
        expected.append(frame[:d].T @ new)
        change += w[0, 0] * np.sum((new - old) ** 2)
    rows, simple = c.rows.copy(), c.simple
    order = np.arange(c.m, dtype=np.uint32)
    assert sweep_simple(c, rows, order, -1.0, np.empty((c.m, 4))) == pytest.approx(change, rel=1e-8)
    assert simple.row[: c.m, 3:6] == pytest.approx(np.array(expected), abs=1e-11)
    assert flat(rows) == pytest.approx(u, abs=1e-10)


@ALL
def test_a_sweep_ahead_is_a_sweep_from_extrapolated_impulses(moment):
    c = moment
    if c.m == 0:
        pytest.skip("no simple contacts")
    order, last = np.arange(c.m, dtype=np.uint32), np.random.default_rng(5).normal(size=(c.m, 4))
    before = c.simple.row[: c.m].copy()
    for beta in (0.0, 0.4):
        plain, ahead = c.rows.copy(), c.rows.copy()
        c.simple.row[: c.m] = before
        c.simple.row[: c.m, 3:6] += beta * (before[:, 3:6] - last[:, :3])
        change = sweep_simple(c, plain, order, -1.0, np.empty((c.m, 4)))
        wanted = c.simple.row[: c.m].copy()
        c.simple.row[: c.m] = before
        kept = last.copy() if beta else np.full((c.m, 4), np.nan)
        assert sweep_simple(c, ahead, order, beta, kept) == pytest.approx(change, rel=1e-10)
        np.testing.assert_allclose(c.simple.row[: c.m], wanted, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ahead, plain, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(kept[:, :3], before[:, 3:6])


def law_of_contact(c, q, dense, u):
    """Local block, velocities left of the target, and the present impulse and moment of general contact ``q``."""
    g = dense[c.m + q]
    w = g @ c.inverse_mass @ g.T
    velocity = g @ u
    velocity[:3] -= c.general.target[q]
    return g, w, velocity, c.general.impulse[q], c.general.moment[q], c.general.bound[q]


@GENERAL
def test_sweep_full(moment):
    c = moment
    dense, u, change = maps(c), flat(c.rows), 0.0
    impulses, moments = c.general.impulse.copy(), c.general.moment.copy()
    for q in range(c.g):
        g, w, velocity, p, m, bound = law_of_contact(c, q, dense, u)
        old = np.concatenate([p, m])
        p, m = p.copy(), m.copy()
        local.solve_contact(w, velocity - w @ old, bound, p, m)  # tested on its own below
        impulses[q], moments[q] = p, m
        moved = np.concatenate([p, m]) - old
        u = u + c.inverse_mass @ g.T @ moved
        change += np.diag(w) @ moved**2
    rows = c.rows.copy()
    order, last = np.arange(c.g, dtype=np.uint32), np.full((c.g, 6), np.nan)
    assert full.sweep_contacts(rows, c.mobility, c.general, order, -1.0, last) == pytest.approx(change, rel=1e-8)
    assert np.isnan(last).all()
    assert c.general.impulse[: c.g] == pytest.approx(impulses[: c.g], abs=1e-10)
    assert c.general.moment[: c.g] == pytest.approx(moments[: c.g], abs=1e-10)
    assert flat(rows) == pytest.approx(u, abs=1e-9)


@GENERAL
def test_a_sweep_ahead_of_full_contacts_is_one_from_extrapolated_impulses_and_moments(moment):
    c, q = moment, moment.general
    order, last = np.arange(c.g, dtype=np.uint32), 1e-3 * np.random.default_rng(5).normal(size=(c.g, 6))
    before = np.concatenate([q.impulse, q.moment], axis=1)
    for beta in (0.0, 0.4):
        plain, ahead = c.rows.copy(), c.rows.copy()
        q.impulse[:], q.moment[:] = np.hsplit(before + beta * (before - last), 2)
        change = full.sweep_contacts(plain, c.mobility, q, order, -1.0, last.copy())
        wanted = np.concatenate([q.impulse, q.moment], axis=1)
        q.impulse[:], q.moment[:] = np.hsplit(before, 2)
        kept = last.copy() if beta else np.full((c.g, 6), np.nan)
        assert full.sweep_contacts(ahead, c.mobility, q, order, beta, kept) == pytest.approx(change, rel=1e-10)
        np.testing.assert_allclose(np.concatenate([q.impulse, q.moment], axis=1), wanted, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ahead, plain, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(kept, before)


def check_law(w, b, bound, p, m, status, tolerance):
    """The law of a general contact in words."""
    velocity = b + w @ np.concatenate([p, m])
    u, spin = velocity[:3], velocity[3:]
    c, eta, sigma, glue, tension = bound[:2], bound[2], bound[3], bound[4], bound[5]
    if status == twin.SEPARATING:
        assert not p.any() and u[0] >= -tolerance  # prospective: no force where it opens
    elif tension > 0 and p[0] < 0:
        assert -tension * (1 + 1e-12) <= p[0] and abs(u[0]) < tolerance and not p[1:].any()
    else:
        shifted = p + glue * np.eye(3)[0]
        if min(c) > 0:
            assert max(naive.law_errors(shifted, u, c)) < tolerance * (1 + np.abs(shifted).max())
        else:
            assert abs(u[0]) < tolerance and not p[1:].any()
        assert p[0] >= -glue * (1 + 1e-12)
    push = max(p[0], 0.0)
    assert abs(m[0]) <= sigma * push * (1 + 1e-9) + 1e-15 and np.hypot(*m[1:]) <= eta * push * (1 + 1e-9) + 1e-15
    if sigma * push > 0 and w[3, 3] > 0 and abs(spin[0]) > tolerance:
        assert m[0] == pytest.approx(-sigma * push * np.sign(spin[0]), rel=1e-6)
    if eta * push > 0 and np.hypot(*spin[1:]) > tolerance:
        assert m[1:] == pytest.approx(-eta * push * spin[1:] / np.hypot(*spin[1:]), rel=1e-4, abs=1e-6 * eta * push)


@GENERAL
def test_local_laws(moment):
    # impulse_law, moment_law and solve_general on the blocks of real contacts, with random velocities and bounds.
    c = moment
    rng = np.random.default_rng(5)
    seen = set()
    for q in range(c.g):
        w = c.general.delassus[q]
        for _ in range(12):
            bound = np.where(rng.random(6) < 0.5, rng.uniform(0.1, 1.0, 6) * [1, 1, 0.1, 0.1, 0.3, 0.3], 0.0)
            bound[1] = bound[0] if c.d == 2 or rng.random() < 0.5 else bound[0] * rng.uniform(0.5, 2.0)
            bound[5] = 0.0 if bound[4] > 0 else bound[5]
            b = np.concatenate([rng.normal(size=3), 5 * rng.normal(size=3)]) * rng.choice([0.1, 1.0])
            if c.d == 2:
                b[2:5] = 0.0
            p, m = np.zeros(3), np.zeros(3)
            status = local.solve_contact(w, b, bound, p, m)
            check_law(w, b, bound, p, m, status, 1e-7)
            seen.add(int(status))
            alone = np.zeros(3)
            status = local.impulse_law(w[:3, :3], b[:3], bound, alone)
            check_law(w, b, bound * [1, 1, 0, 0, 1, 1], alone, np.zeros(3), status, 1e-9)
            turning = np.zeros(3)
            local.moment_law(w[3:, 3:], b[3:], bound, 0.7, turning)
            spin = b[3:] + w[3:, 3:] @ turning
            assert np.hypot(*turning[1:]) <= 0.7 * bound[2] * (1 + 1e-9)
            if bound[2] > 0 and np.hypot(*spin[1:]) > 1e-7:
                expected = -0.7 * bound[2] * spin[1:] / np.hypot(*spin[1:])
                assert turning[1:] == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert seen == {twin.SEPARATING, twin.STICKING, twin.SLIDING}


@GENERAL
def test_push_and_warm_start_of_full_contacts(moment):
    c = moment
    rng = np.random.default_rng(6)
    dense = maps(c)
    rows, u = c.rows.copy(), flat(c.rows)
    for q in range(c.g):
        p, m = rng.normal(size=3), rng.normal(size=3)
        if c.d == 2:
            p[2], m[:2] = 0.0, 0.0
        full.push(rows, c.mobility, *general_contact(c, q), np.zeros(3), p, m)
        u = u + c.inverse_mass @ dense[c.m + q].T @ [*p, *m]
        assert flat(rows) == pytest.approx(u, abs=1e-9)
    rows, u = c.rows.copy(), flat(c.rows)
    order, cuts = np.arange(c.g, dtype=np.uint32), np.append(0, np.full(contract.ALL, c.g))
    shares, scales = rng.uniform(size=(c.g, 2)), np.zeros(contract.ALL)
    scale = grouped.guess_groups(rows, c.mobility, c.general, order, cuts, shares, scales, ALONE)
    assert scale == pytest.approx(shares[:, 0].sum())
    for q in range(c.g):
        u = u + c.inverse_mass @ dense[c.m + q].T @ [*c.general.impulse[q], *c.general.moment[q]]
    assert flat(rows) == pytest.approx(u, abs=1e-10)


def natural_share(c, k, dense, u):
    """|P - proj(P - rho U^)|^2 of one contact by the twin of `naive`, its |P|^2, |bipotential|, |P|^2 / rho, and
    what it loses.
    """
    d = c.d
    g = dense[k]
    w = g @ c.inverse_mass @ g.T
    rho = d / np.trace(w[:d, :d])
    if k < c.m:
        frame = simple_contact(c, k)[2]
        p, m = frame @ c.simple.row[k, 3:6], np.zeros(3)
        aim, gamma, bound = np.array([c.simple.row[k, 6], 0, 0]), [c.simple.row[k, 7]] * 2, np.zeros(6)
    else:
        q = k - c.m
        p, m, aim, bound = c.general.impulse[q], c.general.moment[q], c.general.target[q], c.general.bound[q]
        gamma = bound[:2]
    velocity = g @ u
    v = velocity[:3] - aim
    square = p @ p
    if square == 0 and v[0] >= 0:
        share = product = 0.0
    elif bound[5] > 0 and p[0] < 0:
        share, product = (rho * v[0]) ** 2 + p[1] ** 2 + p[2] ** 2, 0.0
    else:
        shifted = p + bound[4] * np.eye(3)[0]
        share = np.sum(naive.natural_map(shifted, v, gamma, rho) ** 2)
        product = abs(shifted[0] * (abs(v[0]) + np.hypot(*(np.array(gamma) * v[1:]))) + shifted[1:] @ v[1:])
    share += moment_share(w, velocity[3:], bound, p[0], m) / rho
    return share, square, product, square / rho, product + share / rho


def moment_share(w, spin, bound, p_n, m):
    """The natural map of the moments, squared and in kinetic units (divided by the mean diagonal of W for impulses)."""
    total = 0.0
    push = max(p_n, 0.0)
    if not bound[2:4].any():
        return 0.0
    if w[3, 3] > 0:
        nearest = np.clip(m[0] - spin[0] / w[3, 3], -bound[3] * push, bound[3] * push)
        total += w[3, 3] * (m[0] - nearest) ** 2
    mean = 0.5 * (w[4, 4] + w[5, 5])
    if mean > 0:
        x = m[1:] - spin[1:] / mean
        if w[4, 4] == 0:
            x[0] = 0.0
        size = np.linalg.norm(x)
        nearest = x * min(1.0, bound[2] * push / size) if size > 0 else x
        total += mean * np.sum((m[1:] - nearest) ** 2)
    return total


def naive_residual(c, rows):
    """Residual, what each contact loses, bipotential, and what is lost over m |v - v_free|^2."""
    dense, u = maps(c), flat(rows)
    shares, squares, products, powers, lost = zip(
        *(natural_share(c, k, dense, u) for k in range(c.m + c.g)), strict=True
    )
    free = rows[:, 6] > 0
    push = (((rows - c.free)[free, :3] ** 2).sum(axis=1) / rows[free, 6]).sum()
    return (
        np.sqrt(sum(shares) / max(sum(squares), c.scale)),
        lost,
        sum(products) / sum(powers) if sum(powers) > 0 else 0.0,
        sum(lost) / push if push > 0 else (np.inf if sum(lost) > 0 else 0.0),
        push,
    )


@ALL
def test_the_residual(moment):
    # measure_all, measure_contacts of both kinds, moment_error: the natural map of all contacts, relative to the
    # impulses or to rho times the free velocities.
    c = moment
    goal, scratch = Goal(c.scale, c.free, 1e-4, 1, True, False), solvers.scratch_arrays(c.rows, len(c.kinds))
    found, push, scale, sinking = solvers.measure_all(c.rows, c.mobility, table(c.kinds), goal, scratch, ALONE)
    expected, shares, products, left, size = naive_residual(c, c.rows)
    assert found.residual == pytest.approx(expected, rel=1e-6)
    assert found.left == pytest.approx(left, rel=1e-6) and push == pytest.approx(size, rel=1e-9)
    assert shares[found.kind * c.m + found.worst] == pytest.approx(max(shares), rel=1e-6)
    assert found.bipotential == pytest.approx(products, rel=1e-6)
    # contacts that would sink too far in this step are marked, whatever their share
    aim, allowed = [*c.simple.row[:, 6], *c.general.target[:, 0]], [*c.simple.sink, *c.general.sink]
    dense, u = maps(c), flat(c.rows)
    sinks = np.array([(dense[k] @ u)[0] - aim[k] < -allowed[k] for k in range(c.m + c.g)], dtype=bool)
    assert sinking == sinks.sum()
    noted, natural = np.concatenate([kind.plan.shares for kind in c.kinds]).T
    assert np.isinf(noted).tolist() == sinks.tolist()
    quiet = np.flatnonzero(~sinks)
    assert noted[quiet] == pytest.approx([shares[k] for k in quiet], rel=1e-5, abs=1e-20)
    assert np.isinf(natural).tolist() == sinks.tolist()
    if not sinks.any():
        assert natural.sum() == pytest.approx(found.residual**2 * scale, rel=1e-9)


@pytest.mark.parametrize("solver", ["nlgs", "accelerated"])
@ALL
def test_solvers_end_on_the_law(moment, solver):
    # The residual they return is that of the state they leave; impulses are in their cones; velocities are those of
    # the impulses, u = u_free + A^-1 sum G^T (P, M).
    c = moment
    rows, simple, general = c.rows.copy(), c.simple, c.general
    goal, scratch = Goal(c.scale, c.free, 1e-4, 10_000, True, False), solvers.scratch_arrays(rows, len(c.kinds))
    done, residual, left, *_ = getattr(solvers, solver)(rows, c.mobility, table(c.kinds), goal, scratch, ALONE)
    assert 0 < residual <= 1e-4 and 1 < done
    # Balls between driven and fixed ones that close have no velocity at all: impulses grow without end, the residual
    # relative to them falls, and what is lost says that this is no solution.
    assert (done < 10_000) == (left <= solvers.LEFT * 1e-4)
    assert residual == pytest.approx(naive_residual(c, rows)[0], rel=1e-6)
    dense, total, largest = maps(c), flat(c.free), 0.0
    for k in range(c.m + c.g):
        if k < c.m:
            p, m, bound = simple_contact(c, k)[2] @ simple.row[k, 3:6], np.zeros(3), [simple.row[k, 7]] * 2
            glue = 0.0
        else:
            p, m, bound = general.impulse[k - c.m], general.moment[k - c.m], general.bound[k - c.m]
            glue = bound[4] if p.any() else 0.0
            assert np.hypot(*m[1:]) <= bound[2] * max(p[0], 0) * (1 + 1e-9)
            assert abs(m[0]) <= bound[3] * max(p[0], 0) * (1 + 1e-9)
        if k < c.m or not (bound[5] > 0 and p[0] < 0):
            assert p[0] + glue >= -1e-15
            assert naive.cone_excess(p + glue * np.eye(3)[0], bound[:2]) < 1e-12
        kick = c.inverse_mass @ dense[k].T @ [*p, *m]
        total, largest = total + kick, max(largest, np.abs(kick).max())
    assert flat(rows) == pytest.approx(total, abs=1e-9 * max(1.0, 0.01 * largest))


@ALL
def test_helpers_of_the_accelerated_solver(moment):
    c = moment
    rng = np.random.default_rng(7)
    scratch = solvers.scratch_arrays(c.rows, len(c.kinds))
    assert scratch.movable.tolist() == np.flatnonzero(c.sim.bodies.kind == twin.FREE).tolist()
    bodies = np.sort(rng.permutation(c.n)[: c.n // 2]).astype(np.uint32)
    for beta in (0.0, 0.3):  # at the start there is no last iterate yet, whatever stands in its place
        scratch.rows[:] = np.nan if beta == 0.0 else rng.normal(size=(c.n, 6))
        rows, old = c.rows.copy(), scratch.rows.copy()
        solvers.extrapolate(c.rows, bodies, scratch.rows, beta)
        for k in range(c.n):
            there = k in bodies
            wanted = rows[k, :6] + beta * (rows[k, :6] - old[k]) if there and beta > 0 else rows[k, :6]
            assert c.rows[k, :6] == pytest.approx(wanted)
            assert np.array_equal(scratch.rows[k], rows[k, :6] if there else old[k], equal_nan=True)
    # The few: all contacts, of all kinds, of free bodies that a contact with a large share acts on, and their bodies.
    # The shares that may stay as they are are those whose power of two, and all below it, add up to less than allowed.
    hot, small, free = set(), 0.0, set(scratch.movable.tolist())
    for contacts, plan in c.kinds:
        mine = np.where(rng.random(len(plan.shares)) < 0.1, 0.5, 1e-3) * rng.uniform(1.0, 1.9, len(plan.shares))
        plan.shares[:, 1], plan.shares[:, 0] = mine, np.inf
        for k, share in enumerate(mine):
            hot |= {int(contacts.a[k]), int(contacts.b[k])} & free if share >= 0.5 else set()
            small += share if share < 0.5 else 0.0
    assert solvers.choose_few(c.rows, table(c.kinds), scratch, 0.0, 1, 0, 0.25, ALONE) == (1, 1)  # too many
    counts = solvers.choose_few(c.rows, table(c.kinds), scratch, small + 0.4, 1, 0, 2.0, ALONE)
    moving, total = set(hot), 0
    for contacts, plan in c.kinds:
        chosen = [k for k in range(len(contacts.a)) if {int(contacts.a[k]), int(contacts.b[k])} & hot]
        moving |= {int(b) for k in chosen for b in (contacts.a[k], contacts.b[k])} & free
        total += len(chosen)
        for group in range(2 * GROUPS + 1):
            begin, end = plan.cuts[group : group + 2]
            assert plan.few[begin : plan.few_ends[group]].tolist() == twin.in_turns(plan.order[begin:end], set(chosen))
    assert counts == (total, c.m + c.g) and scratch.found[0].tolist() == [*counts, len(moving)]
    assert scratch.bodies[: len(moving)].tolist() == sorted(moving)


@ALL
def test_status_and_memory_are_stored_by_pair(moment):
    c = moment
    rng = np.random.default_rng(8)
    for k in range(c.m):  # all cases: open, inside the cone, on it
        frame, gamma = simple_contact(c, k)[2], c.simple.row[k, 7]
        p_n = rng.choice([0.0, 1.0])
        p = np.array([p_n, gamma * p_n * rng.choice([0.3, 1.0]), 0.0])
        c.simple.row[k, 3:6] = frame.T @ p
        expected = twin.SEPARATING if p_n == 0 else twin.STICKING if p[1] < 0.9 * gamma * p_n else twin.SLIDING
        c.general.status[: c.g] = rng.integers(1, 4, c.g)
        c.simple.status[k] = expected
    wanted = c.simple.status[: c.m].copy()
    slipping = c.rows + np.where(
        np.arange(8) < 6, rng.normal(size=c.rows.shape), 0.0
    )  # else the cone alone says little
    cone, size = diagonal_books.store_contacts(slipping, c.simple, c.kappa, 1e-12, c.pairs)
    assert cone < 1e-12 and size == pytest.approx(np.sum(c.simple.row[: c.m, 3:6] ** 2))
    assert (c.pairs.status[c.simple.pair[: c.m]] == wanted).all() and (c.simple.status[: c.m] == wanted).all()
    assert (c.pairs.impulse[c.simple.pair[: c.m]] == c.simple.row[: c.m, 3:6]).all()
    _, size = full.store_some(slipping, c.general, np.arange(c.g, dtype=np.uint32), 1e-12, kept(c.pairs))
    assert size == pytest.approx(np.sum(c.general.impulse**2))
    for q in range(c.g):
        pair, frame = c.general.pair[q], c.general.frame[q]
        assert c.pairs.impulse[pair] == pytest.approx(frame.T @ c.general.impulse[q])
        assert c.pairs.moment[pair] == pytest.approx(frame.T @ c.general.moment[q])
        assert c.pairs.status[pair] == c.general.status[q]


@ALL
def test_works(moment):
    # Normal, tangential and rolling part of (U^- + U^+) . P / 2 by law; by driven bodies, their own velocity times the
    # impulse they give.
    c, sim = moment, moment.sim
    dense, before, after = maps(c), flat(c.before), flat(c.rows)
    driven = np.zeros(6 * c.n)
    for i in np.flatnonzero(sim.bodies.kind == twin.DRIVEN):
        driven[6 * i : 6 * i + 6] = after[6 * i : 6 * i + 6]
    expected = np.zeros((len(sim.model.laws), 4))
    for k in range(c.m + c.g):
        if k < c.m:
            both, pair = np.array([*(simple_contact(c, k)[2] @ c.simple.row[k, 3:6]), 0, 0, 0]), c.simple.pair[k]
        else:
            both, pair = np.array([*c.general.impulse[k - c.m], *c.general.moment[k - c.m]]), c.general.pair[k - c.m]
        power = 0.5 * (dense[k] @ (before + after)) * both
        expected[c.pairs.law[pair]] += [power[0], power[1:3].sum(), power[3:].sum(), -(dense[k] @ driven) @ both]
    got = np.zeros_like(expected)
    none, pairs = np.zeros((3, 3), dtype=bool), c.pairs._replace(memory=c.pairs.memory.copy())
    cuts, parts = np.arange(contract.ALL + 1) * c.m // contract.ALL, np.zeros((contract.ALL, len(got) + 1, 4))
    every = np.arange(c.m, dtype=np.uint32)
    diagonal_measure.measure_contacts(
        c.rows, c.mobility, c.simple, every, np.empty((c.m, 2))
    )  # velocities after the step
    step = Step(0.0, c.h, 0.0, False, False, c.before, c.before)
    cones = np.zeros((contract.ALL, 2))
    columns = step, c.rows, sim.bodies.kind, pairs, c.simple, c.mobility.kappa
    diagonal_books.keep_contacts(*columns, -1.0, got, cuts, parts, cones, ALONE)
    order, cuts = np.arange(c.g, dtype=np.uint32)[::-1].copy(), np.arange(contract.ALL + 1) * c.g // contract.ALL
    parts = np.zeros((contract.ALL, len(got) + 1, 4))
    sorts = sim.bodies.kind, sim.bodies.held
    grouped.book_groups(c.before, c.rows, sorts, none, c.h, pairs, c.general, got, order, cuts, parts, ALONE)
    assert got == pytest.approx(expected, abs=1e-12)


@ALL
def test_overlaps_and_their_recovery(moment):
    c, sim = moment, moment.sim
    balls, planes, dense, u = sim.model.balls, sim.model.planes, maps(c), flat(c.rows)
    expected, listed = [], []
    rows = np.array([*c.simple.pair[: c.m].astype(int), *c.general.pair[: c.g]])
    for k, pair in enumerate(rows):
        size = balls.radius[c.pairs.second[pair]]
        if pair < c.pairs.balls:
            size = min(size, balls.radius[c.pairs.first[pair]])
        expected.append(-(c.pairs.gap[pair] + 0.5 * c.h * (dense[k] @ u)[0]) / size)
        owner = balls.body if pair < c.pairs.balls else planes.body
        listed.append(
            (owner[c.pairs.first[pair]], balls.body[c.pairs.second[pair]], c.pairs.normal[pair], size, expected[-1])
        )
    opened = np.concatenate([diagonal.separations(c.rows, c.simple), full.separations(c.rows, c.general)])
    assert opened == pytest.approx([(g @ u)[0] for g in dense], abs=1e-12)
    search = sim.contact_set.searches[0]
    search.found, worst = c.pairs, max(0.0, *expected)
    for above, most in ((0.999 * worst, 1.0), (0.999 * worst, 2e-4), (1.001 * worst, 1.0)):
        position = c.position.copy()
        model = sim.model._replace(bodies=sim.bodies._replace(position=position))
        work = search.recover(model, c.rows, rows, 0.5 * c.h * opened, above, 5e-4, most)
        if above > worst:  # nothing is deep enough to begin
            assert work == 0 and (position == c.position).all()
            continue
        moved, booked = twin.recover(c.position, c.rows[:, 6], listed, 5e-4, most, sim.model.gravity, sim.bodies.mass)
        assert position == pytest.approx(moved, abs=1e-12) and work == pytest.approx(booked, abs=1e-12)
        assert np.abs(moved - c.position).max() > 1e-5
