"""What the collision experiment computes with balls: pairs, superballs, rows; and the formulas beside it.

Two free balls have W diagonal, W_t = (1 + k) W_n, k = m r^2 / I (5/2 for spheres, 2 for disks), whatever their masses
and radii. The three-parameter law (2004, section 7.5) then splits: P_n = (1 + rho) |U_n^-| / W_n, and either the mean
tangential velocity (44) vanishes, U_t^+ = -tau U_t^-, or P_t = -gamma P_n sign(U_t^-).
"""

import math

import numpy as np
from scipy.integrate import solve_ivp

import contactdynamics as cd

KAPPA = 2.5  # m r^2 / I of a sphere


def formula(incoming, restitution, tangential_restitution, friction, kappa=KAPPA):
    """Outgoing (tangential, normal) velocity and whether the impact sticks, from (tangential, normal < 0)."""
    tangential, normal = incoming
    push = (1 + restitution) * -normal  # W_n P_n
    stop = (1 + tangential_restitution) * abs(tangential) / (1 + kappa)  # W_n |P_t| that makes the mean vanish
    if stop <= friction * push:
        return np.array([-tangential_restitution * tangential, -restitution * normal]), True
    slid = abs(tangential) - (1 + kappa) * friction * push  # negative where tau > 0 lets friction reverse the slip
    return np.array([math.copysign(1.0, tangential) * slid, -restitution * normal]), False


def collide(incoming, *, mass_ratio=1.0, **law):
    """Collide pairs of spheres, all in one scene and one step: outgoing (k, 2), sticking (k,), energy after / before.

    ``incoming`` (k, 2) velocity of the second sphere with respect to the first. The pairs lie far apart; each starts
    half a step of travel away from touching, so that the midpoint of the step is the moment of impact.
    """
    incoming = np.asarray(incoming, dtype=float)
    k = len(incoming)
    radii = np.array([1.0, mass_ratio ** (1 / 3)])
    reach = radii.sum() * (1 - 1e-13)
    step = 1e-3 / max(1.0, np.abs(incoming).max())
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("bead", density=1.0)
    scene.contact("bead", "bead", **law)
    for row, (tangential, normal) in enumerate(incoming):
        foot, velocity = np.array([0.0, 0.0, 4 * radii.sum() * row]), np.array([normal, tangential, 0.0])
        scene.add(cd.Sphere(radii[0]), material="bead", position=foot)
        scene.add(cd.Sphere(radii[1]), material="bead", position=foot + np.array([reach, 0, 0]) - step / 2 * velocity,
                  velocity=velocity)  # fmt: skip
    sim = cd.Simulation(scene, time_step=step, tolerance=1e-12)
    before = sim.energy.kinetic
    sim.step()
    velocity = sim.velocities[1::2] - sim.velocities[::2]
    rim = sim.spins[::2] * radii[0] + sim.spins[1::2] * radii[1]  # the contact point lies at r_1 n and at -r_2 n
    outgoing = np.stack([velocity[:, 1] - rim[:, 2], velocity[:, 0]], axis=1)
    hit = {int(pair[0]) // 2: status for pair, status in zip(sim.contacts.bodies, sim.contacts.status, strict=True)}
    return outgoing, np.array([hit.get(row, 0) for row in range(k)]), sim.energy.kinetic / before if before else 1.0


# ---- superball -------------------------------------------------------------------------------------------------------


def superball(speed, table, duration, step=2e-4):
    """A superball (rho = tau = 1, much friction) thrown forward on a floor, with or without a table above it.

    Returns times, places (k, 2) and the forward speed after each bounce, over the first one. The lever arm ends halfway
    in the overlap, so the speeds are exact to about step * 4 m/s / radius.
    """
    radius, height = 0.03, 0.5
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("rubber", density=1100)
    scene.contact("rubber", "rubber", friction=20.0, restitution=1.0, tangential_restitution=1.0)
    scene.add(cd.Plane((0, 0, 1)), material="rubber", fixed=True)
    if table:
        scene.add(cd.Plane((0, 0, -1)), material="rubber", position=(0, 0, height), fixed=True)
    scene.add(cd.Sphere(radius), material="rubber", position=(0, 0, 0.4), velocity=(speed, 0, -4.0 if table else 0.0))
    sim = cd.Simulation(scene, time_step=step, tolerance=1e-12)
    times, places, speeds = [0.0], [sim.positions[-1][[0, 2]]], []
    for _ in range(round(duration / step)):
        before = sim.velocities[-1]
        sim.step()
        times.append(sim.time)
        places.append(sim.positions[-1][[0, 2]])
        if before[2] * sim.velocities[-1][2] < 0 and len(sim.contacts.gap):
            speeds.append(float(sim.velocities[-1][0]) / speed)
    return np.array(times), np.array(places), speeds


def superball_formula(sides, kappa=KAPPA):
    """Forward speeds after elastic bounces of a ball thrown at speed 1 without spin; ``sides`` +1 floor, -1 ceiling.

    The rim velocity c adds to v at the floor and is taken from it at the ceiling. U = v + side c changes sign, and
    P = -2 U m / (1 + k) changes v by P / m and c by side k P / m (Garwin 1969).
    """
    v, c, speeds = 1.0, 0.0, []
    for side in sides:
        push = -2 * (v + side * c) / (1 + kappa)
        v, c = v + push, c + side * kappa * push
        speeds.append(v)
    return speeds


# ---- rows of balls ---------------------------------------------------------------------------------------------------


def row(count, restitution, gap=0.0, step=1e-3, duration=None):
    """Velocities (count,) after the first ball of a row, at speed 1, has hit the others, which rest ``gap`` apart."""
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("steel", density=1.0)
    scene.contact("steel", "steel", friction=0.0, restitution=restitution)
    mass = {"mass": 1.0, "inertia": (0.4, 0.4, 0.4)}
    reach = 2.0 * (1 - 1e-13) if gap == 0 else 2.0 + gap
    for k in range(count):
        start = -step / 2 if k == 0 else 0.0  # the impact falls on a midpoint
        scene.add(cd.Sphere(1.0), material="steel", position=(reach * k + start, 0, 0), velocity=(k == 0, 0, 0), **mass)
    sim = cd.Simulation(scene, time_step=step, tolerance=1e-13, max_iterations=100_000)
    sim.run(until=step if duration is None else duration, progress=False)
    return sim.velocities[:, 0]


def row_formula(count, restitution):
    """Moreau's law with all contacts together: the others leave as one body.

    Only the first contact closes (U^- = -1); the law asks U^+ = rho there and U^+ = 0 at the others, which all carry
    impulses. With momentum, w + (N - 1) v = 1 and v - w = rho.
    """
    together = (1 + restitution) / count
    return np.array([together - restitution] + [together] * (count - 1))


def one_after_another(count, restitution, gap=1e-2):
    """Velocities when a row with gaps collides pair by pair: events of equal balls on a line, until none closes."""
    place, v = gap * np.arange(count), np.zeros(count)  # radii taken off
    place[0], v[0] = 0.0, 1.0
    for _ in range(100_000):
        closing, distance = v[:-1] - v[1:], np.diff(place)
        if not (closing > 1e-12).any():
            break
        times = np.where(closing > 1e-12, distance / np.where(closing > 1e-12, closing, 1.0), np.inf)
        k = int(np.argmin(times))
        place = place + times[k] * v
        exchange = (1 + restitution) / 2 * (v[k] - v[k + 1])
        v[k], v[k + 1] = v[k] - exchange, v[k + 1] + exchange
    return v


def hertz_row(count):
    """Velocities when the balls are elastic: a touching row with Hertz's force k d^(3/2), the real Newton's cradle."""

    def rate(t, state):
        place, v = state[:count], state[count:]
        force = np.maximum(0.0, place[:-1] - place[1:]) ** 1.5
        return np.concatenate([v, np.append(0.0, force) - np.append(force, 0.0)])

    start = np.concatenate([np.zeros(count), [1.0], np.zeros(count - 1)])
    return solve_ivp(rate, (0, 12.0 * count), start, rtol=1e-9, atol=1e-11).y[count:, -1]
