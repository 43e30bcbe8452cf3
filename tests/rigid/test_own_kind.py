"""The recipes of a search and of equations, followed as written in ARCHITECTURE.md: a smooth lid above all balls."""

import copy
from typing import NamedTuple

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics._jit import kernel
from contactdynamics.rigid import kinds
from contactdynamics.rigid.equations.contract import KERNELS, START, Explicit, Kernels, tallied
from contactdynamics.rigid.equations.held import Held
from contactdynamics.rigid.search.contract import Candidates, Overlap
from contactdynamics.state import FIXED, FREE, OPEN, SEPARATING, SLIDING

LID = 1.0  # height, m
SMOOTH = 1 + max(kind.number for kind in kinds.EQUATIONS)  # the next number of equations
pytestmark = pytest.mark.slow


class Below(NamedTuple):
    """Balls at the lid (K,), with their memory."""

    ball: np.ndarray
    a: np.ndarray  # the first fixed body: the lid is its
    b: np.ndarray
    gap: np.ndarray
    impulse: np.ndarray  # downwards, N s
    status: np.ndarray


def below(ball, a, b, gap, impulse, status) -> Below:
    return Below(ball, np.asarray(a, np.uint32), np.asarray(b, np.uint32), gap, impulse, np.asarray(status, np.int8))


class LidSearch:
    """Balls that touch the lid."""

    equations, needs_inertia, sortable, rests, first, size = (SMOOTH,), False, False, False, 1.0, "radius"

    def __init__(self):
        self.forget()

    def forget(self):
        self.found = below(*[np.zeros(0, dtype=int)] * 3, *[np.zeros(0)] * 2, np.zeros(0))

    @property
    def status(self):
        return self.found.status

    @property
    def lost(self):
        return np.zeros(len(self.found.status))

    def derive(self, model, near, first=0):
        fixed = np.flatnonzero(model.bodies.kind == FIXED)
        if len(fixed):
            self.owner = fixed[0]
        return len(fixed) > 0

    def find(self, model, near, outlook, team):
        old, balls = self.found, model.balls
        gap = LID - near.places[:, -1] - balls.radius - outlook.slack
        ball = np.flatnonzero((gap <= 0.0) & (model.bodies.kind[balls.body] == FREE))
        impulse, status = np.zeros(len(gap)), np.full(len(gap), OPEN)
        impulse[old.ball], status[old.ball] = old.impulse, old.status
        self.found = below(
            ball, np.full(len(ball), self.owner), balls.body[ball], gap[ball], impulse[ball], status[ball]
        )
        return {SMOOTH: len(ball)}

    def candidates(self):
        kind = np.full(len(self.found.ball), SMOOTH, dtype=np.int8)
        return Candidates(self.found.a, self.found.b, kind, float(self.found.gap.max(initial=0.0)))

    def sizes(self, model):
        return model.balls.radius

    def second_bodies(self, model):
        return model.balls.body[self.found.ball]

    def points(self, near, places):
        out = near.places[self.found.ball[places]].copy()
        out[:, 2] = LID
        return out

    def branches(self, model, near):
        raise NotImplementedError("lids are no part of a cell")

    def deepest(self, model):
        depth = -self.found.gap
        k = int(np.argmax(depth)) if len(depth) else -1
        if k < 0 or depth[k] <= 0.0:
            return Overlap(0.0, 0.0, -1, -1)
        share = depth[k] / model.balls.radius[self.found.ball[k]]
        return Overlap(float(depth[k]), float(share), int(self.found.a[k]), int(self.found.b[k]))

    def overlaps(self, model):
        return -self.found.gap / model.balls.radius[self.found.ball]

    def may_close(self, near, rows, h):
        return True

    def recover(self, model, rows, which, opening, above, keep, most):
        return 0.0

    def give_back(self, model, velocities, above, keep):
        return None

    def remove(self, ball, plane):
        keep, number = ball[self.found.ball], np.cumsum(ball) - 1
        self.found = Below(*(column[keep] for column in self.found))
        self.found = self.found._replace(ball=number[self.found.ball])

    def renumber(self, order):
        raise NotImplementedError

    def memory(self):
        return {"lid_ball": self.found.ball, "lid_impulse": self.found.impulse}

    def restore(self, checkpoint):
        self.forget()

    def trial(self):
        return copy.copy(self)


class SmoothContacts(NamedTuple):
    """Contacts without friction (m,)."""

    a: np.ndarray
    b: np.ndarray
    push: np.ndarray
    target: np.ndarray
    sink: np.ndarray
    status: np.ndarray


def smooth_contacts(room):
    rows = [np.empty(room, dtype=np.uint32) for _ in range(2)]
    return SmoothContacts(*rows, *(np.zeros(room) for _ in range(3)), np.zeros(room, dtype=np.int8))


@kernel
def sweep(rows, mobility, contacts, some, beta, last):
    change = 0.0
    for at in range(some.size):
        k = some[at]
        a, b, p = contacts.a[k], contacts.b[k], contacts.push[k]
        if beta >= 0.0:
            x = p
            p = x + beta * (x - last[k, 0]) if beta > 0.0 else x
            last[k, 0] = x
        w = rows[a, 6] + rows[b, 6]
        q = max(0.0, p - (rows[a, 2] - rows[b, 2] - contacts.target[k]) / w)
        rows[b, 2] -= rows[b, 6] * (q - p)
        rows[a, 2] += rows[a, 6] * (q - p)
        contacts.push[k] = q
        change += w * (q - p) ** 2
    return change


@kernel
def measure(rows, mobility, contacts, some, shares):
    sums = START
    for at in range(some.size):
        k = some[at]
        a, b, p = contacts.a[k], contacts.b[k], contacts.push[k]
        rho, u = 1.0 / (rows[a, 6] + rows[b, 6]), rows[a, 2] - rows[b, 2] - contacts.target[k]
        share, product, sinks = (p - max(0.0, p - rho * u)) ** 2, abs(p * u), u < -contacts.sink[k]
        shares[k, 0], shares[k, 1] = (np.inf, np.inf) if sinks else (product + share / rho, share)
        sums = tallied(sums, int(k), share, product, p * p, 1.0 / rho, sinks)
    return sums


@kernel
def store(contacts, found):
    size = 0.0
    for k in range(contacts.a.size):
        found.impulse[k], size = contacts.push[k], size + contacts.push[k] ** 2
        contacts.status[k] = found.status[k] = SLIDING if contacts.push[k] > 0.0 else SEPARATING
    return 0.0, size


@kernel
def separations(rows, contacts):
    out = np.empty(contacts.a.size)
    for k in range(out.size):
        out[k] = rows[contacts.a[k], 2] - rows[contacts.b[k], 2]
    return out


@kernel
def add_powers(free, rows, contacts, some, group, sums):
    for n in range(some.size):
        k = some[n]
        a, b, p = contacts.a[k], contacts.b[k], contacts.push[k]
        at = group[a] if rows[a, 6] > 0.0 else group[b]
        u, f = rows[a, 2] - rows[b, 2], free[a, 2] - free[b, 2]
        sums[at, 0] += p * (u - contacts.target[k])
        sums[at, 1] += p * (u - f)
        sums[at, 2] += abs(p * (u - contacts.target[k]))


class Smooth(Held):
    """The equations of the lid."""

    number, ahead, able = SMOOTH, True, True
    arrays, kernels = staticmethod(smooth_contacts), Kernels(sweep, measure, separations, add_powers)

    @property
    def places(self):
        return np.arange(self.count)

    def acting(self):
        return (self.active.push[:, None],)

    def fill(self, model, near, found, step, rows, mobility, team):
        c = self.active
        c.a[:], c.b[:], c.push[:], c.target[:], c.sink[:] = found.a, found.b, found.impulse, 0.0, np.inf
        w = rows[c.a, 6] + rows[c.b, 6]
        scale = float((((step.free[c.a, 2] - step.free[c.b, 2]) / w) ** 2).sum())
        np.subtract.at(rows[:, 2], c.b, rows[c.b, 6] * c.push)
        return scale

    def store(self, found, rows, mobility, tolerance, team):
        return store(self.active, found)

    def book(self, found, step, rows, bodies, works, team):
        c = self.active
        mean = 0.5 * (step.before[c.a, 2] - step.before[c.b, 2] + rows[c.a, 2] - rows[c.b, 2])
        works[0, 0] += (mean * c.push).sum()
        return 0.0

    @property
    def targets(self):
        return self.active.target.copy()

    def explicit(self, rows, dimension):
        c, m = self.active, self.count
        wide = np.zeros((m, 3))
        impulse = wide.copy()
        impulse[:, 0] = c.push
        frame = np.tile(np.array([[0.0, 0, -1], [1, 0, 0], [0, -1, 0]]), (m, 1, 1))
        a, b = c.a.astype(np.int64), c.b.astype(np.int64)
        arm_b = wide.copy()
        arm_b[:, 2] = rows[b, 7]
        return Explicit(np.arange(m), a, b, frame, wide, arm_b, wide, np.zeros((m, 2)), np.ones(m, dtype=bool), impulse,
                        wide, c.status)  # fmt: skip

    def accept(self, written, impulse):
        self.active.push[:] = impulse[:, 0]


@pytest.fixture
def lid(monkeypatch):
    monkeypatch.setitem(KERNELS, SmoothContacts, Smooth.kernels)
    monkeypatch.setattr(kinds, "SEARCHES", (*kinds.SEARCHES, LidSearch))
    monkeypatch.setattr(kinds, "EQUATIONS", (*kinds.EQUATIONS, Smooth))


@pytest.mark.parametrize("solver", ["auto", "accelerated", "nlgs"])
def test_a_search_and_equations_of_ones_own(lid, solver):
    """A column of three balls is pressed against the lid by gravity upwards: it carries them, and they slide along."""
    scene = cd.Scene(gravity=(0, 0, 9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    for k in range(3):
        scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.88 - 0.2 * k), velocity=(0.3, 0, 0))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9, solver=solver)
    first = sim.energy.kinetic
    sim.run(until=0.4, progress=False)
    weight = 9.81 * float(sim.bodies.mass[1:].sum())
    assert sim.failures == 0 and sim.contact_set.count == 3
    assert sim.contact_set.searches[-1].found.impulse == pytest.approx([weight * 1e-3], rel=1e-6)
    assert sim.velocities[1:] == pytest.approx(np.tile([0.3, 0, 0], (3, 1)), abs=1e-6)
    e = sim.energy
    assert e.kinetic - first == pytest.approx(e.force_work + e.normal_work.sum() + e.tangential_work.sum(), abs=1e-9)
