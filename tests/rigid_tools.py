"""What the tests of the rigid-body engine share: scenes of either dimension, and the closed energy ledger.

Scenes stand upright: the last axis points up, the first one forward, in 2D as (x, y) and in 3D as (x, y, z).
"""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.problem.dense import measure
from contactdynamics.quaternions import matrix

G = 9.81
DIMENSIONS = (2, 3)
KAPPA = {2: 2.0, 3: 2.5}  # m r^2 / I of a disk and of a sphere
# Each dimension in one mode; the other two in the longer tier.
BY_TURNS = pytest.mark.parametrize(
    ("d", "penetration"),
    [
        (2, "moreau"),
        (3, "anticipate"),
        pytest.param(2, "anticipate", marks=pytest.mark.slow),
        pytest.param(3, "moreau", marks=pytest.mark.slow),
    ],
)


def vector(d, forward=0.0, up=0.0):
    """A vector of the scene from its forward and upward parts."""
    return np.array([forward, up]) if d == 2 else np.array([forward, 0.0, up])


def ball(d, radius):
    return cd.Disk(radius) if d == 2 else cd.Sphere(radius)


def wall(d, normal):
    return cd.HalfPlane(normal) if d == 2 else cd.Plane(normal)


def rolling(d, rate):
    """The spin of a ball that rolls forward at ``rate`` (rad/s)."""
    return -rate if d == 2 else np.array([0.0, rate, 0.0])


def rate(sim, body):
    """The rate at which a body rolls forward."""
    spin = sim.spins[body]
    return -spin if sim.model.dimension == 2 else spin[1]


def ball_mass(d, radius, density=1.0):
    return density * (np.pi * radius**2 if d == 2 else 4 / 3 * np.pi * radius**3)


def world(d, *, gravity=G, slope=0.0, density=1.0, **law):
    """A scene of one material, "m", with gravity tilted by ``slope`` (rad) so that bodies would move forward."""
    scene = cd.Scene(gravity=vector(d, gravity * np.sin(slope), -gravity * np.cos(slope)))
    scene.material("m", density=density)
    scene.contact("m", "m", **law)
    return scene


def floor(scene, **options):
    """Add a horizontal wall through the origin; fixed unless driven."""
    options = {"fixed": True, **options} if "motion" not in options else options
    return scene.add(wall(scene.dimension, vector(scene.dimension, 0, 1)), material="m", **options)


def sled(d, radius=0.1, half=0.3):
    """Balls in one plane: a body that cannot roll forward; its centre of mass is at the height ``radius``."""
    if d == 2:
        return cd.Cluster([radius] * 2, [(-half, 0), (half, 0)])
    return cd.Cluster([radius] * 3, [(-half, -half, 0), (-half, half, 0), (half, 0, 0)])


def start(scene, step, **options):
    """A simulation solved nearly as tightly as rounding allows; failures raise."""
    sim = cd.Simulation(
        scene, time_step=step, **{"tolerance": 1e-11, "max_iterations": 20_000, "on_failure": "raise", **options}
    )
    sim.first_kinetic = sim.energy.kinetic
    return sim


def run(scene, step, until, **options):
    """Start, run to the end, and see that the ledger is closed."""
    sim = start(scene, step, **options).run(until=until, progress=False)
    assert_closed(sim)
    return sim


def works(energy):
    """All entries that change the kinetic energy; J."""
    return np.array([
        energy.force_work, energy.drive_work, energy.normal_work.sum(), energy.tangential_work.sum(),
        energy.rolling_work.sum(), energy.inflow,
    ])  # fmt: skip


def assert_closed(sim, tolerance=1e-10):
    """Change of kinetic energy = sum of all works (2004, eqs. 48-50), to rounding; also step by step."""
    energy = sim.energy
    entries = works(energy)
    scale = max(energy.kinetic, sim.first_kinetic, np.abs(entries).max())
    change = energy.kinetic - sim.first_kinetic
    assert abs(change - entries.sum()) <= tolerance * scale
    assert energy.closure <= tolerance * scale


def overlaps(sim):
    """Largest overlap of all balls and walls over the smaller radius (negative: the nearest gap), by brute force."""
    bodies, balls, planes = sim.bodies, sim.model.balls, sim.model.planes
    turns = np.array([matrix(q) for q in bodies.orientation])
    places = bodies.position[balls.body] + np.einsum("kij,kj->ki", turns[balls.body], balls.centre)
    i, j = np.triu_indices(len(places), 1)
    i, j = (index[balls.body[i] != balls.body[j]] for index in (i, j))
    distance = np.sqrt(((places[i] - places[j]) ** 2).sum(axis=1))
    depths = [(balls.radius[i] + balls.radius[j] - distance) / np.minimum(balls.radius[i], balls.radius[j])]
    for body, normal in zip(planes.body, planes.normal, strict=True):
        heights = (places - bodies.position[body]) @ (turns[body] @ normal)
        depths.append((balls.radius - heights) / balls.radius)
    return np.concatenate(depths).max()


def assert_problem_is_of_next_step(sim, least, *, rel=1e-3, abs_=1e-12):
    """Asking for the contact problem changes nothing, and the impulses of the next step solve it as that says."""
    before = sim.positions, sim.velocities, sim.spins, sim.contacts.impulse, sim.energy.kinetic
    problem = sim.contact_problem()
    after = sim.positions, sim.velocities, sim.spins, sim.contacts.impulse, sim.energy.kinetic
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))
    sim.step()
    contacts = sim.contacts
    assert len(contacts.gap) >= least and np.array_equal(problem.gap, contacts.gap)
    residual = measure(problem.delassus, problem.velocity, problem.friction, np.ascontiguousarray(contacts.impulse))[0]
    assert residual == pytest.approx(sim.report.residual, rel=rel, abs=abs_)


def free_on_lattice(scene, n, speed, rng, shift=None):
    """Places of ``n``^d bodies on a lattice in the cell of a scene, and random velocities without a mean.

    ``shift`` (N, d): by how many vectors of the cell each is moved, with which it then flows.
    """
    d, cell = scene.dimension, scene.cell
    vectors = cell.vectors[:d, :d]
    place = (np.stack(np.meshgrid(*[np.arange(n)] * d, indexing="ij"), -1).reshape(-1, d) + 0.5) / n @ vectors
    velocity = speed * rng.normal(size=place.shape)
    velocity -= velocity.mean(axis=0)
    if shift is not None:
        place, velocity = place + shift @ vectors, velocity + shift @ vectors @ cell.rate_at(0.0)[:d, :d].T
    return place, velocity


def assert_cell_closed(sim):
    """The ledger of a run in a cell, to the rounding of its steps."""
    e = sim.energy
    size = e.kinetic + abs(e.force_work) + abs(e.drive_work) + np.abs(e.normal_work).sum() + abs(e.inflow)
    assert e.closure <= 1e-11 * size * sim.steps


def step_through(sim, count):
    """Make ``count`` steps, yielding the simulation after each."""
    for _ in range(count):
        sim.step()
        yield sim


def order(errors, ratio=2.0):
    """Orders of convergence between successive errors, steps divided by ``ratio``."""
    errors = np.asarray(errors)
    return np.log(errors[:-1] / errors[1:]) / np.log(ratio)
