"""The two engines must agree: the same small problem as a `System` and as a `Scene` gives the same motion to rounding.

In the system a ball has the freedoms (x, angle) with the spin as velocity; a contact at the distance r from the centre
along the normal: U = v_b + w_b x (-r_b n) - v_a - w_a x (r_a n).
"""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.problem.frames import frame
from contactdynamics.systems.schemes import midpoint
from rigid_tools import DIMENSIONS, KAPPA, G, assert_closed, ball, ball_mass, floor, start, vector, wall, world


def spins(d):
    return 1 if d == 2 else 3


def lever(d, arm):
    """Matrix of spin -> velocity of the point at ``arm`` (d,)."""
    if d == 2:
        return np.array([[-arm[1]], [arm[0]]])
    return np.array([[0, arm[2], -arm[1]], [-arm[2], 0, arm[0]], [arm[1], -arm[0], 0]])


def wall_contact(d, body, normal, point, radius, law, bodies, velocity=None):
    """Constraint of ball number ``body`` against a wall through ``point``."""
    size = d + spins(d)
    normal = normal / np.linalg.norm(normal)
    place = slice(body * size, body * size + d)

    def gap(t, q):
        return float(normal @ (q[place] - point)) - radius

    def contact_map(t, q):
        out = np.zeros((d, size * bodies))
        axes = frame(normal)
        out[:, place] = axes
        out[:, body * size + d : (body + 1) * size] = axes @ lever(d, -radius * normal)
        return out

    def boundary(t, q):
        return np.zeros(d) if velocity is None else -frame(normal) @ velocity(t)

    if velocity is not None:
        moved = {"gap": lambda t, q: float(normal @ (q[place] - point - velocity.place(t))) - radius}
        return cd.Constraint(**moved, contact_map=contact_map, boundary=boundary, law=law)
    return cd.Constraint(gap, contact_map=contact_map, boundary=boundary, law=law)


def pair_contact(d, a, b, radii, law, bodies):
    """Constraint of two balls."""
    size = d + spins(d)
    one, two = slice(a * size, a * size + d), slice(b * size, b * size + d)

    def gap(t, q):
        return float(np.linalg.norm(q[two] - q[one])) - radii[a] - radii[b]

    def contact_map(t, q):
        n = q[two] - q[one]
        n = n / np.linalg.norm(n)
        axes, out = frame(n), np.zeros((d, size * bodies))
        out[:, one], out[:, two] = -axes, axes
        out[:, a * size + d : (a + 1) * size] = -axes @ lever(d, radii[a] * n)
        out[:, b * size + d : (b + 1) * size] = axes @ lever(d, -radii[b] * n)
        return out

    return cd.Constraint(gap, contact_map=contact_map, boundary=lambda t, q: np.zeros(d), law=law)


def compare(d, gravity, radii, place, speed, spin, walls, law, h, count, pairs=True, tolerance=1e-9):
    """Step both engines side by side and compare positions, velocities, spins, impulses and works."""
    options = {name: value for name, value in vars(law).items() if value not in (0.0, None)}
    scene = cd.Scene(gravity=gravity)
    scene.material("m", density=1.0)
    scene.contact("m", "m", **options)
    for normal, point in walls:
        scene.add(wall(d, normal), material="m", position=point, fixed=True)
    for r, x, v, w in zip(radii, place, speed, spin, strict=True):
        scene.add(ball(d, r), material="m", position=x, velocity=v, spin=w if d == 3 else float(w[0]))
    sim = start(scene, h, tolerance=1e-13, on_failure="ignore", solver="accelerated")

    n, size, masses = len(radii), d + spins(d), ball_mass(d, np.array(radii))
    inertia = np.concatenate([[m] * d + [m * r**2 / KAPPA[d]] * spins(d) for m, r in zip(masses, radii, strict=True)])
    load = np.concatenate([[*(m * np.array(gravity)), *[0.0] * spins(d)] for m in masses])
    constraints = [pair_contact(d, a, b, radii, law, n) for a in range(n) for b in range(a + 1, n) if pairs]
    for normal, point in walls:
        constraints += [wall_contact(d, k, normal, np.array(point), radii[k], law, n) for k in range(n)]
    system = cd.System(inertia=inertia, force=lambda t, q, u: load, constraints=constraints)
    q = np.concatenate([[*x, *[0.0] * spins(d)] for x in place])
    u = np.concatenate([[*v, *w] for v, w in zip(speed, spin, strict=True)])
    twin = system.start(q, u)
    touched = 0
    for _ in range(count):
        sim.step()
        if not sim.report.converged:  # a wedge with much friction may have no solution: nothing to compare from there
            break
        done = midpoint(system, twin, h, tolerance=1e-13)
        twin = done.state
        x, v = twin.q.reshape(n, size), twin.u.reshape(n, size)
        mine = sim.bodies.kind == 0
        scale = 1 + np.abs(v[:, :d]).max()
        assert np.abs(sim.positions[mine] - x[:, :d]).max() < tolerance * scale
        assert np.abs(sim.velocities[mine] - v[:, :d]).max() < tolerance * scale
        turning = sim.spins[mine] if d == 3 else sim.spins[mine][:, None]
        assert np.abs(turning - v[:, d:]).max() < tolerance * scale / min(radii)
        active = np.flatnonzero(done.gaps <= 0)
        assert len(active) == len(sim.contacts.gap)
        touched += len(active)
        work = sim.energy
    assert touched >= 4
    assert_closed(sim)
    return sim, work


LAWS = [
    cd.Law(friction=0.3, restitution=0.6),
    cd.Law(friction=5.0, restitution=0.4),
    cd.Law(restitution=0.8),
    cd.Law(friction=0.2, static_friction=0.5),
    cd.Law(friction=0.1),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.friction}-{law.static_friction}-{law.restitution}")
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_on_a_plane(d, law):
    # Bounces, slides, and ends rolling or at rest.
    spin = [[-8.0]] if d == 2 else [[3.0, -8.0, 5.0]]
    speed = [vector(d, 1.0)] if d == 2 else [np.array([1.0, 0.7, 0.0])]
    walls = [(vector(d, 0.2, 1.0), np.zeros(d))]
    compare(d, vector(d, 0, -G), [0.1], [vector(d, 0.0, 0.25)], speed, spin, walls, law, 2e-3, 500)


@pytest.mark.parametrize("law", LAWS[:3], ids=lambda law: f"{law.friction}-{law.restitution}")
@pytest.mark.parametrize("d", DIMENSIONS)
def test_two_balls_on_a_floor(d, law):
    spin = [[4.0], [-7.0]] if d == 2 else [[1.0, 4.0, 2.0], [-3.0, -7.0, 1.0]]
    place = [vector(d, 0.0, 0.1), vector(d, 0.35, 0.2)]
    speed = [vector(d, 1.0), vector(d, -0.5, 0.3)]
    walls = [(vector(d, 0, 1.0), np.zeros(d))]
    compare(d, vector(d, 0, -G), [0.1, 0.15], place, speed, spin, walls, law, 2e-3, 300)


@pytest.mark.parametrize("law", LAWS[:3], ids=lambda law: f"{law.friction}-{law.restitution}")
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_between_two_walls(d, law):
    # Falls into a groove of two walls and rattles there.
    spin = [[9.0]] if d == 2 else [[2.0, 9.0, -4.0]]
    walls = [(vector(d, 0.8, 1.0), np.zeros(d)), (vector(d, -0.5, 1.0), np.zeros(d))]
    compare(d, vector(d, 0, -G), [0.1], [vector(d, 0.05, 0.3)], [vector(d, 0.4)], spin, walls, law, 2e-3, 400)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_three_balls_without_gravity(d):
    place = [vector(d, 0.0), vector(d, 0.25), vector(d, 0.55, 0.05)]
    speed = [vector(d, 2.0), vector(d, 0.0), vector(d, -1.0)]
    spin = [[3.0], [0.0], [-2.0]] if d == 2 else [[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 5.0]]
    walls = [(vector(d, -1.0), vector(d, 0.7)), (vector(d, 1.0), vector(d, -0.3))]
    law = cd.Law(friction=0.3, restitution=0.7)
    compare(d, vector(d), [0.1, 0.12, 0.08], place, speed, spin, walls, law, 2e-3, 250, tolerance=1e-8)


class Shaking:
    """The motion of a table: velocity V cos(w t), displacement as the scene sums it."""

    def __init__(self, amplitude, rate, h):
        self.amplitude, self.rate, self.h = amplitude, rate, h

    def __call__(self, t):
        return self.amplitude * np.cos(self.rate * t)

    def place(self, t):
        # at the midpoint of step k: all former steps, and half of this one
        k = round(t / self.h - 0.5)
        total = sum(self((i + 0.5) * self.h) for i in range(k)) * self.h
        return total + 0.5 * self.h * self((k + 0.5) * self.h)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_on_a_shaken_table(d):
    h = 2e-3
    shaking = Shaking(vector(d, 0.3, 0.4), 20.0, h)
    law = cd.Law(friction=0.25, restitution=0.3)
    scene = world(d, friction=0.25, restitution=0.3)
    floor(scene, motion=lambda t: shaking(t))
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.12))
    sim = start(scene, h)
    m, load = ball_mass(d, 0.1), np.zeros(d + spins(d))
    load[d - 1] = -m * G
    inertia = [m] * d + [m * 0.01 / KAPPA[d]] * spins(d)
    contact = wall_contact(d, 0, vector(d, 0, 1.0), np.zeros(d), 0.1, law, 1, velocity=shaking)
    system = cd.System(inertia=inertia, force=lambda t, q, u: load, constraints=[contact])
    twin = system.start(np.concatenate([vector(d, 0, 0.12), np.zeros(spins(d))]), np.zeros(d + spins(d)))
    works = np.zeros(3)
    for _ in range(200):
        sim.step()
        done = midpoint(system, twin, h)
        twin = done.state
        works += [done.contact_work[0, 0], done.contact_work[0, 1], done.boundary_work[0]]
        assert np.abs(sim.positions[1] - twin.q[:d]).max() < 1e-10
        assert np.abs(sim.velocities[1] - twin.u[:d]).max() < 1e-9
    energy = sim.energy
    assert [energy.normal_work.sum(), energy.tangential_work.sum(), energy.drive_work] == pytest.approx(
        works, abs=1e-12
    )
    assert_closed(sim)
