"""The contacts of a system at one instant: two-sided acceleration and right-acceleration (2004, section 5.3).

What `events` needs between and at its events; the derivation stands at the top of `events`.
"""

import numpy as np

from ..problem.dense import project
from ..problem.laws import solve_contact
from ..state import SLIDING, STICKING
from .system import derivative

# Relative sizes below which a gap, a speed, an acceleration and a reaction count as zero. Events are found where the
# watched quantity is below zero by this much: at exactly zero nothing could be decided.
GAP, SPEED, ACCELERATION, REACTION = 1e-14, 1e-9, 1e-11, 1e-9


class Undecided(Exception):
    """The motion cannot be continued; the message says why."""


class Instant:
    """Time, q and u of a system, its closed contacts and their modes.

    ``modes`` maps each closed contact to the sense of its sliding: +1 or -1, or 0 where it sticks; contacts without
    friction slide (+1, with a coefficient of zero). ``reference`` (m, d) holds the reactions of the last decision and
    ``halted`` the closed contacts that had no tangential velocity then.
    """

    def __init__(self, system, state):
        self.system, self.time, self.q, self.u = system, state.time, state.q, state.u
        self.n, self.m = len(state.u), len(system.constraints)
        self.modes, self.halted, self.reference = {}, [], np.zeros((self.m, system.components))
        self.evaluations, self.speed, self.cached = 0, 0.0, (None, None)  # speed: the largest so far

    @property
    def gap_zero(self):
        return GAP * max(1.0, float(np.abs(self.q).max()))

    @property
    def speed_zero(self):
        return SPEED * (self.speed or 1.0)

    def frictional(self, index):
        return self.system.components > 1 and not self.system.constraints[index].law.frictionless

    def maps(self, contacts, t, q):
        """G (k, d, n) and w (k, d) of the contacts."""
        found = [self.system.contact(index, t, q, self.n) for index in contacts]
        d = self.system.components
        return np.array([g for g, _ in found]).reshape(-1, d, self.n), np.array([w for _, w in found]).reshape(-1, d)

    def curvature(self, index, t, q, u):
        """a (d,): dU/dt at constant u, the part of it that curvature and moving boundaries make."""
        system, constraint = self.system, self.system.constraints[index]
        size = max(1.0, float(np.abs(q).max())) / max(1.0, float(np.abs(u).max()))

        known = {}

        def velocity(s):
            if s not in known:
                g, w = system.contact(index, t + s, system.advance(q, u, s), self.n)
                known[s] = g @ u + w
            return known[s]

        parts = np.zeros(system.components)
        if constraint.gradient is None and constraint.contact_map is None and not self.frictional(index):
            parts[0] = _second(lambda s: constraint.gap(t + s, system.advance(q, u, s)), size)
        elif any((velocity(s) != velocity(0.0)).any() for s in (-0.01 * size, 0.01 * size)):  # else flat and at rest
            for i in range(system.components if self.frictional(index) else 1):
                parts[i] = derivative(lambda s, i=i: float(velocity(s)[i]), size)
        return parts

    def ratio(self, index, sliding, sense):
        """R_t / R_n of a sliding contact, and the two coefficients of its cone."""
        if not self.frictional(index):
            return 0.0, (0.0, 0.0)
        c = self.system.constraints[index].law.coefficients(sliding, SLIDING if sense else STICKING)
        return (0.0, -c[1], c[0])[sense], c  # the last one for the sense -1

    def accelerate(self, t, q, u):
        """The two-sided motion of the closed contacts: u', R (m, d), and what the events watch."""
        key = (t, q.tobytes(), u.tobytes())
        if self.cached[0] == key:
            return self.cached[1]
        self.evaluations += 1
        system, d = self.system, self.system.components
        _, inverse = system.inertias(t, q)
        u_dot = inverse @ system.forces(t, q, u)
        reactions, watched = np.zeros((self.m, d)), []
        if self.modes:
            contacts = list(self.modes)
            g, w = self.maps(contacts, t, q)
            velocity = g @ u + w
            a = np.array([self.curvature(index, t, q, u) for index in contacts])
            kept, acting, curved, place = [], [], [], []  # constrained rows, directions of the reactions
            for k, (index, sense) in enumerate(self.modes.items()):
                along, _ = self.ratio(index, velocity[k, 1:], sense)
                kept.append(g[k, 0])
                acting.append(g[k, 0] + along * g[k, 1] if along else g[k, 0])
                curved.append(a[k, 0])
                place.append((index, 0, along))
                if sense == 0:
                    kept.append(g[k, 1])
                    acting.append(g[k, 1])
                    curved.append(a[k, 1])
                    place.append((index, 1, 0.0))
            kept, acting = np.array(kept), np.array(acting)
            first = np.array([self.reference[index, i] for index, i, _ in place])
            lacking = -(kept @ u_dot + np.array(curved))
            matrix = kept @ inverse @ acting.T
            # Redundant contacts: the reactions nearest to those of the last decision, the memory of the history.
            r = first + np.linalg.lstsq(matrix, lacking - matrix @ first, rcond=1e-11)[0]
            for value, (index, i, along) in zip(r, place, strict=True):
                reactions[index, i] = value
                if along:
                    reactions[index, 1] = along * value
            u_dot = u_dot + inverse @ (acting.T @ r)
            watched = list(zip(contacts, velocity, g @ inverse @ g.transpose(0, 2, 1), strict=True))
        self.cached = key, (u_dot, reactions, watched)
        return self.cached[1]

    def slack(self, t, q, u, k, index):
        """How far inside its cone the reaction of a sticking contact is."""
        _, reactions, watched = self.accelerate(t, q, u)
        c = self.ratio(index, watched[k][1][1:], 0)[1]
        r_n, r_t = reactions[index]
        return min(c[0] * r_n - r_t, r_t + c[1] * r_n)

    def posedness(self, t, q, u, k, index, sense):
        """(W_nn + W_nt R_t / R_n) / W_nn: where it vanishes the sliding contact jams (Painleve)."""
        _, velocity, own = self.accelerate(t, q, u)[2][k]
        return (own[0, 0] + own[0, 1] * self.ratio(index, velocity[1:], sense)[0]) / own[0, 0] - 1e-6

    def right_acceleration(self, resting, previous):
        """Gauss's principle (2004, section 5.3): sets ``modes`` and the ``reference`` reactions."""
        t, q, u, system = self.time, self.q, self.u, self.system
        inertia, inverse = system.inertias(t, q)
        g, w = self.maps(resting, t, q)
        a = np.array([self.curvature(index, t, q, u) for index in resting])
        free, velocity = inverse @ system.forces(t, q, u), g @ u + w
        senses = [self.sense(i, v, previous) for i, v in zip(resting, velocity, strict=True)]
        if any(self.frictional(i) for i in resting):
            reactions = self.gauss_seidel(resting, g, g @ free + a, velocity, senses, inverse)
        else:
            reactions = np.zeros_like(a)
            reactions[:, 0] = project(inertia, free, g[:, 0], a[:, 0])
        acceleration = g @ (free + inverse @ np.einsum("kdn,kd->n", g, reactions)) + a
        zero = ACCELERATION * (float(np.abs(g @ free + a).max()) + float(np.abs(acceleration).max()) + 1e-12)
        for k, index in enumerate(resting):
            if acceleration[k, 0] > zero:
                continue
            sense = senses[k]
            if sense == 0 and abs(acceleration[k, 1]) > zero:
                sense = int(np.sign(acceleration[k, 1]))
            self.modes[index], self.reference[index] = sense, reactions[k]
            if senses[k] == 0:
                self.halted.append(index)

    def sense(self, index, velocity, previous):
        """Sense of sliding before the decision: 0 where the contact has no tangential velocity."""
        if not self.frictional(index):
            return 1
        near = 3 * self.speed_zero if previous.get(index) else 2 * self.speed_zero
        return 0 if abs(velocity[1]) <= near else int(np.sign(velocity[1]))

    def gauss_seidel(self, contacts, g, b, velocity, senses, inverse):
        """Reactions (k, 2) from the free acceleration b: Coulomb's law for dU/dt where U = 0, else R_t given."""
        rows = g.reshape(-1, self.n)
        w = (rows @ inverse @ rows.T).reshape(len(contacts), 2, len(contacts), 2)
        own = [np.ascontiguousarray(regular(w[k, :, k, :])) for k in range(len(contacts))]
        given = [self.ratio(i, v[1:], s) for i, v, s in zip(contacts, velocity, senses, strict=True)]
        r = np.zeros((len(contacts), 2))
        for k, (along, _) in enumerate(given):
            if senses[k] and own[k][0, 0] + own[k][0, 1] * along <= 2e-6 * own[k][0, 0]:
                raise Undecided(
                    f"Contact {contacts[k]} slides at t = {self.time:.9g} where no right-acceleration is determined "
                    "(Painleve); use integrate(...), which goes through the tangential shock."
                )
        for _ in range(20_000):
            before = r.copy()
            for k, (along, cone) in enumerate(given):
                local = b[k] + np.einsum("ijk,jk->i", w[k], r) - w[k, :, k, :] @ r[k]
                if senses[k]:
                    r[k, 0] = max(0.0, -local[0] / (own[k][0, 0] + own[k][0, 1] * along))
                    r[k, 1] = along * r[k, 0]
                else:
                    solve_contact(own[k], local, np.array(cone), r[k])
            if np.abs(r - before).max() <= 1e-14 * np.abs(r).max():
                return r
        raise Undecided(
            f"The reactions at t = {self.time:.9g} were not found; with several contacts that slide there may be no "
            "right-acceleration: use integrate(...)."
        )

    def hold(self):
        """Remove what rounding and the thresholds left of U on the closed contacts."""
        contacts = list(self.modes)
        if not contacts:
            return
        _, inverse = self.system.inertias(self.time, self.q)
        g, w = self.maps(contacts, self.time, self.q)
        rows = [(g[k, i], w[k, i]) for k, j in enumerate(contacts) for i in range(2 if j in self.halted else 1)]
        rows, drift = np.array([r for r, _ in rows]), np.array([v for _, v in rows])
        lacking = -(rows @ self.u + drift)
        self.u = self.u + inverse @ (rows.T @ np.linalg.lstsq(rows @ inverse @ rows.T, lacking, rcond=1e-11)[0])


def _second(function, size):
    """f''(0) by sixth-order central differences; the spacing is shortened until fourth order agrees with it."""
    best, best_error, middle = 0.0, np.inf, function(0.0)
    h = float(np.finfo(float).eps) ** (1 / 8) * size
    for _ in range(8):
        sums = [function(k * h) + function(-k * h) for k in (1, 2, 3)]
        value = (2 * sums[2] - 27 * sums[1] + 270 * sums[0] - 490 * middle) / (180 * h * h)
        rounding = 4e-16 * max(map(abs, sums)) / h**2
        error = abs(value - (16 * sums[0] - sums[1] - 30 * middle) / (12 * h * h)) + rounding
        if error < best_error:
            best, best_error = value, error
        if error <= 1e-8 * abs(value) + 4 * rounding:
            break
        h /= 3
    return best


def regular(w):
    """W with a trace on the diagonal entries that vanish: rows of zeros of contacts without friction among others."""
    w = np.array(w)
    empty = np.diag(w) == 0
    w[empty, empty] = max(w.diagonal().max(), 1.0)
    return w
