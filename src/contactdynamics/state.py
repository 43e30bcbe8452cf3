"""The named tuples that travel: the dictionary of the package.

Notation (shapes use n degrees of freedom, m contacts, d components per contact in the order n, t1, t2):
q positions, u velocities, h time step, g gap (negative when bodies overlap), U relative velocity at a contact
(U_n > 0 separates), P impulse (N s, P_n >= 0 pushes), G contact map with U = G u + w, A inertia, W = G A^-1 G^T.
"""

import math
from typing import NamedTuple

import numpy as np

from .display import pictured, short
from .errors import InputError

# Status of a contact at the end of a step.
OPEN, SEPARATING, STICKING, SLIDING = 0, 1, 2, 3
STATUS_NAMES = ("open", "separating", "sticking", "sliding")


class SolveReport(NamedTuple):
    """How well a contact problem was solved. All errors are relative and free of units."""

    residual: float  # natural map of the Signorini-Coulomb problem, l2, relative to the impulses
    iterations: int  # sweeps over all contacts, steps of other methods: see ``stages``
    converged: bool
    contacts: int  # active contacts
    worst: int  # contact with the largest share of the residual, -1 without contacts
    penetration: float  # largest overlap, length units of the problem
    cone_error: float  # largest distance to the friction cone
    bipotential: float  # second residual: sum of |b(U, P)| over the contacts, relative to that of P . P / rho
    message: str  # one sentence: what happened and what to do
    relative_penetration: float = 0.0  # largest overlap over the smaller body's radius (rigid-body scenes)
    solver: str = ""  # name of the solver asked for
    tolerance: float = math.nan  # asked for
    stages: tuple = ()  # (name, iterations) of the methods that worked, one after another
    history: tuple = ()  # (iteration, residual) wherever the residual was looked at
    residual_free: float = math.nan  # the same natural map, relative to the impulses that stop the free motion, rho b
    residual_siconos: float = math.nan  # natural map with rho = 1, relative to max(|b|, |P|, |U|), as Siconos does
    worst_by: str = ""  # what the worst contact lacks most: one of `LACKS`
    worst_errors: tuple = ()  # (4,) of the worst contact in the order of `LACKS`, relative as the residual
    cpu_seconds: float = math.nan
    evidence: str = ""  # why no solution exists, where that was found
    left: float = 0.0  # what contacts lose by not being solved, over the kinetic size of what they do (scenes)

    __repr__ = short
    _repr_html_ = pictured

    def __str__(self):
        """The report a person can read: `print(report)`."""
        lines = [self.message]
        if self.contacts:
            lines += [f"  {name:<22}{value:<10}{words}".rstrip() for name, value, words in self._table()]
        return "\n".join(lines)

    def _table(self):
        """Name, value and explanation of each line."""
        ways = ", ".join(f"{count} of {name}" for name, count in self.stages)
        if self.solver:
            cpu = "" if math.isnan(self.cpu_seconds) else f"{self.cpu_seconds:.3g} s of CPU"
            yield (
                "solver",
                self.solver,
                "; ".join(part for part in (f"iterations: {ways}" if ways else "", cpu) if part),
            )
        yield "residual", f"{self.residual:.1e}", "natural map, relative to the impulses; the one that is asked for"
        if not math.isnan(self.residual_free):
            yield "relative to q", f"{self.residual_free:.1e}", "the same, relative to what stops the free motion"
            yield "as Siconos measures", f"{self.residual_siconos:.1e}", "rho = 1, relative to max(|q|, |r|, |u|)"
        if self.left:
            yield "left", f"{self.left:.1e}", "power lost by what is not solved, relative to what the contacts do"
        yield "bipotential", f"{self.bipotential:.1e}", "power that the law would not have, relative"
        yield "outside the cone", f"{self.cone_error:.1e}", "largest of all contacts"
        if self.worst_errors:
            parts = ", ".join(f"{name} {error:.1e}" for name, error in zip(LACKS, self.worst_errors, strict=True))
            yield "worst contact", str(self.worst), parts
        if len(self.history) > 1:
            yield "history", "", ", ".join(f"{k}: {r:.0e}" for k, r in _decades(self.history))

    def plot(self, ax=None):
        """Draw the residual over the iterations; returns the axes."""
        from .plotting import plot_convergence

        return plot_convergence(self, ax)

    @property
    def complementarity_error(self) -> float:
        """How far the contacts are from complementarity: the `bipotential`, which vanishes just there."""
        return self.bipotential


def _decades(history, most: int = 8):
    """Some entries of a history, evenly over its length, the first and the last among them."""
    step = max(1, -(-(len(history) - 1) // (most - 1)))
    return [*history[:-1:step], history[-1]]


# What a contact may lack: U_n < 0; U_n > 0 with P_n > 0; P outside its cone; P_t that does not oppose the sliding.
LACKS = ("penetration", "complementarity", "cone", "sliding direction")


class State(NamedTuple):
    """A finite-freedom system at one instant, with the memory that dry friction needs."""

    time: float  # s
    q: np.ndarray  # (n,) or longer, with kinematics of its own
    u: np.ndarray  # (n,)
    impulses: np.ndarray  # (m, d) contact impulses of the last step, N s
    status: np.ndarray  # (m,) OPEN, SEPARATING, STICKING or SLIDING

    __repr__ = short


class Step(NamedTuple):
    """One step of a finite-freedom system: the new state and what happened on the way to it."""

    state: State
    gaps: np.ndarray  # (m,) at the midpoint, m
    force_work: float  # h F . (u_i + u_f) / 2, J
    contact_work: np.ndarray  # (m, 2) normal and tangential part of (U_i + U_f) . P / 2, J
    boundary_work: np.ndarray  # (m,) -w . P, done by driven boundaries, J
    kinetic_before: float  # u_i . A_m u_i / 2, J
    kinetic_after: float  # u_f . A_m u_f / 2, J
    report: SolveReport
    kinetic_free: float = math.inf  # u_r . A_m u_r / 2 with the free velocity u_r, before the contacts act, J

    __repr__ = short


# Kinds of bodies.
FREE, FIXED, DRIVEN = 0, 1, 2


class Bodies(NamedTuple):
    """Rigid bodies as arrays, one row per body; three components also in 2D scenes (z = 0, spin about z)."""

    identity: np.ndarray  # (N,) number given by `Scene.add`, never used again
    position: np.ndarray  # (N, 3) centre of mass, m
    orientation: np.ndarray  # (N, 4) unit quaternion, principal axes -> space
    principal: np.ndarray  # (N, 4) unit quaternion, principal axes -> the axes in which the user stated the shape
    velocity: np.ndarray  # (N, 3) m/s
    spin: np.ndarray  # (N, 3) in space, rad/s
    mass: np.ndarray  # (N,) kg
    inertia: np.ndarray  # (N, 3) principal moments, kg m^2
    kind: np.ndarray  # (N,) FREE, FIXED or DRIVEN
    simple: np.ndarray  # (N,) a homogeneous sphere or disk by itself: the fast kernels apply
    size: np.ndarray  # (N,) radius of the smallest ball around the centre of mass; 0 for planes
    held: np.ndarray  # (N,) directions in which a free body is held or driven, as bits: see `motion`

    __repr__ = short


class Balls(NamedTuple):
    """Spheres and disks that bodies are made of, or that hold a convex part of a polygon; in the order of bodies."""

    radius: np.ndarray  # (S,) m
    centre: np.ndarray  # (S, 3) in the principal axes of the body, from its centre of mass, m
    body: np.ndarray  # (S,) row of the body
    material: np.ndarray  # (S,)

    __repr__ = short


class Corners(NamedTuple):
    """Corners of polygons (2D, counter-clockwise) and of polyhedra (3D), in the order of their bodies and parts.

    Part p of a body is convex and held by the body's ball number p (see `Balls`).
    """

    place: np.ndarray  # (C, 3) in the axes of the body, from its centre of mass, m
    body: np.ndarray  # (C,) row of the body
    part: np.ndarray  # (C,) number of the part in its body


NO_CORNERS = Corners(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Rims(NamedTuple):
    """The faces of polyhedra by their corners, counter-clockwise from outside, in the order of bodies, parts, faces."""

    corner: np.ndarray  # (R,) number in its part
    face: np.ndarray  # (R,) number in its part
    body: np.ndarray  # (R,) row of the body
    part: np.ndarray  # (R,) number of the part in its body


NO_RIMS = Rims(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


class Planes(NamedTuple):
    """Planes and half-planes, each through the position of its body."""

    normal: np.ndarray  # (K, 3) in the axes of the body
    body: np.ndarray  # (K,) row of the body
    material: np.ndarray  # (K,)


class Springs(NamedTuple):
    """Linear springs with dashpots between two bodies, or a body and the ground (row -1)."""

    first: np.ndarray  # (K,) row of the body, or -1
    second: np.ndarray  # (K,) row of the body, or -1
    anchor_first: np.ndarray  # (K, 3) in the axes of the body (space for the ground), m
    anchor_second: np.ndarray  # (K, 3)
    stiffness: np.ndarray  # (K,) N/m
    damping: np.ndarray  # (K,) N s/m
    length: np.ndarray  # (K,) at rest, m


NO_JOINTS = np.zeros((0, 3), dtype=np.int64)


class Model(NamedTuple):
    """A frozen scene: clean arrays, ready for the kernels."""

    dimension: int
    gravity: np.ndarray  # (3,) m/s^2
    bodies: Bodies
    balls: Balls
    planes: Planes
    springs: Springs
    laws: np.ndarray  # (L, COLUMNS) see `materials`
    law_index: np.ndarray  # (M, M) law of a pair of materials, -1 where they cannot meet
    law_axes: np.ndarray  # (L, 4) axis of anisotropic friction, and the material in whose body's axes it is stated
    drives: dict  # identity -> (velocity function, spin function)
    forces: dict  # identity -> (force function, torque function)
    corners: Corners = NO_CORNERS
    rims: Rims = NO_RIMS
    joints: np.ndarray = NO_JOINTS  # (J, 3) identities of two bodies, the smaller first, and the law between them

    __repr__ = short


class Contacts(NamedTuple):
    """The active contacts of a step; d components in the order n, t1, t2 (n, t in 2D)."""

    bodies: np.ndarray  # (C, 2) identities a, b; the normal points from a to b
    point: np.ndarray  # (C, d) m
    normal: np.ndarray  # (C, d)
    gap: np.ndarray  # (C,) at the midpoint of the step, m
    impulse: np.ndarray  # (C, d) on b, N s; the force is impulse / time_step
    frame: np.ndarray  # (C, d, d) rows n, t1, t2
    status: np.ndarray  # (C,) SEPARATING, STICKING or SLIDING
    moment: np.ndarray  # (C, d) impulse of the rolling and spinning resistance about n, t1, t2 (2D: (C, 1), about z)

    __repr__ = short


class Energy(NamedTuple):
    """The ledger of a scene from the start of the run; J. Sums over steps, but for kinetic and potential.

    kinetic - (kinetic at the start) = force_work + drive_work + normal_work + tangential_work + rolling_work + inflow;
    closure is the error of this identity (2004, eqs. 48-50), summed over the steps in absolute value. recovery_work
    changes the potential energy alone.
    """

    kinetic: float
    potential: float  # gravity and springs
    force_work: float  # all applied forces: gravity, springs, dashpots, given forces and torques, gyroscopic term
    drive_work: float  # by driven bodies through their contacts
    normal_work: np.ndarray  # (L,) per law
    tangential_work: np.ndarray  # (L,)
    rolling_work: np.ndarray  # (L,) of rolling and spinning resistance
    recovery_work: float  # against gravity, by the bounded recovery of overlaps
    inflow: float  # kinetic energy of bodies added, less that of bodies removed
    closure: float
    created: float = 0.0  # by the contact laws, in the steps in which they gave more than they took

    __repr__ = short


class Body:
    """One body, asked for by its number: in a frame, or as it is now in a simulation, whatever came or went meanwhile.

    What it gives are copies that cannot be written to. A body that was removed gives an error, never another body.
    """

    def __init__(self, number: int, read):
        self.number, self._read = number, read
        read(number, "mass")  # there is such a body

    def __repr__(self):
        return f"Body {self.number}"

    @property
    def position(self) -> np.ndarray:
        """(d,) centre of mass, m."""
        return self._read(self.number, "position")

    @property
    def velocity(self) -> np.ndarray:
        """(d,) m/s."""
        return self._read(self.number, "velocity")

    @property
    def rotation(self):
        """Angle in (-pi, pi] in 2D, unit quaternion (w, x, y, z) in 3D."""
        return self._read(self.number, "rotation")

    @property
    def spin(self):
        """A number in 2D, (3,) in space in 3D; rad/s."""
        return self._read(self.number, "spin")

    @property
    def mass(self) -> float:
        """kg."""
        return self._read(self.number, "mass")

    @property
    def kind(self) -> str:
        """ "free", "fixed" or "driven"."""
        return ("free", "fixed", "driven")[self._read(self.number, "kind")]


def read_only(value):
    """A number as such; an array that cannot be written to, so that nobody takes it for the state itself."""
    if np.ndim(value) == 0:
        return value.item()
    value = np.array(value)
    value.flags.writeable = False
    return value


class Frame(NamedTuple):
    """A scene at one instant, live or read from a file: what analysis and drawing work on.

    Row k of the arrays belongs to the body ``identities[k]``; `body` looks one up by its number.
    """

    time: float  # s
    step: int
    time_step: float  # s
    dimension: int
    gravity: np.ndarray  # (d,)
    identities: np.ndarray  # (N,)
    positions: np.ndarray  # (N, d)
    rotations: np.ndarray  # (N, 4) quaternions, (N,) angles in 2D
    velocities: np.ndarray  # (N, d)
    spins: np.ndarray  # (N, 3) in space, (N,) in 2D
    masses: np.ndarray  # (N,)
    kinds: np.ndarray  # (N,) FREE, FIXED or DRIVEN
    ball_radii: np.ndarray  # (S,)
    ball_centres: np.ndarray  # (S, d) in space
    ball_bodies: np.ndarray  # (S,) row of the body
    plane_normals: np.ndarray  # (K, d) in space
    plane_points: np.ndarray  # (K, d)
    contacts: Contacts
    polygon_corners: np.ndarray = NO_CORNERS.place[:, :2]  # (C, 2) in space, counter-clockwise, part after part
    polygon_starts: np.ndarray = np.zeros(1, dtype=np.int64)  # (Q+1,) part k has the corners starts[k] to starts[k+1]
    polygon_bodies: np.ndarray = NO_CORNERS.body  # (Q,) row of the body
    materials: np.ndarray = NO_CORNERS.body  # (N,) of the bodies; empty where the frame carries no laws
    laws: tuple = ()  # the `Law` of each pair of materials that can meet
    law_index: np.ndarray = np.zeros((0, 0), dtype=np.int64)  # (M, M) place in laws of a pair of materials, or -1
    solid_corners: np.ndarray = NO_CORNERS.place  # (V, 3) corners of polyhedra in space, part after part
    solid_starts: np.ndarray = np.zeros(1, dtype=np.int64)  # (Q+1,) part k has the corners starts[k] to starts[k+1]
    solid_bodies: np.ndarray = NO_CORNERS.body  # (Q,) row of the body
    face_corners: np.ndarray = NO_RIMS.corner  # (R,) places in solid_corners, face after face, seen from outside
    face_starts: np.ndarray = np.zeros(1, dtype=np.int64)  # (F+1,) face k has the corners starts[k] to starts[k+1]
    face_bodies: np.ndarray = NO_RIMS.body  # (F,) row of the body
    cell: np.ndarray | None = None  # (d, d) vectors of the periodic cell, one in each row; None in open space
    periodic: np.ndarray | None = None  # (d,) along which of them space is repeated
    rate: np.ndarray | None = None  # (d, d) velocity gradient of the cell, 1/s
    joints: np.ndarray = NO_JOINTS  # (J, 3) identities of two bodies with a law of their own, and its place in laws

    __repr__ = short

    def wrapped(self, places=None) -> np.ndarray:
        """(k, d) places inside the cell, those of the bodies where none are given; as they are in open space."""
        places = self.positions if places is None else np.asarray(places, dtype=float)
        if self.cell is None:
            return places.copy()
        shares = places @ np.linalg.inv(self.cell)
        return places - np.where(self.periodic, np.floor(shares), 0.0) @ self.cell

    def shortest(self, vectors) -> np.ndarray:
        """(k, d) differences of two places as the shortest ones to an image; as they are in open space."""
        if self.cell is None:
            return vectors
        shares = vectors @ np.linalg.inv(self.cell)
        return vectors - np.where(self.periodic, np.rint(shares), 0.0) @ self.cell

    def inside(self) -> "Frame":
        """The frame with each body as the image that lies in the cell, with the velocity of that image; itself in open
        space. A contact point lies beside the second body, beside the first where the second is a plane."""
        if self.cell is None:
            return self
        shift = self.wrapped() - self.positions
        first, second = np.searchsorted(self.identities, self.contacts.bodies).T
        solid = np.zeros(len(shift), dtype=bool)
        for owners in (self.ball_bodies, self.parts[2]):
            solid[owners] = True
        beside = np.where(solid[second], second, first)
        corners, starts, owners = self.parts
        name = "polygon_corners" if self.dimension == 2 else "solid_corners"
        return self._replace(
            positions=self.positions + shift,
            velocities=self.velocities + (0.0 if self.rate is None else shift @ self.rate.T),
            ball_centres=self.ball_centres + shift[self.ball_bodies],
            contacts=self.contacts._replace(point=self.contacts.point + shift[beside]),
            **{name: corners + shift[np.repeat(owners, np.diff(starts))]},
        )

    def edges_of_cell(self) -> np.ndarray:
        """(E, 2, d) the ends of the edges of the cell, 4 in 2D, 12 in 3D; none in open space."""
        d = self.dimension
        if self.cell is None:
            return np.zeros((0, 2, d))
        ends = []
        for k in range(d):
            for other in np.ndindex(*(2,) * (d - 1)):
                start = np.insert(np.array(other, dtype=float), k, 0.0) @ self.cell
                ends.append((start, start + self.cell[k]))
        return np.array(ends)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The convex parts of polygons (2D) or polyhedra (3D): corners (C, d), starts (Q+1,), rows of bodies (Q,)."""
        if self.dimension == 2:
            return self.polygon_corners, self.polygon_starts, self.polygon_bodies
        return self.solid_corners, self.solid_starts, self.solid_bodies

    @property
    def contact_laws(self) -> np.ndarray:
        """(C,) place in ``laws`` of the law of each contact, of its joint or its materials; -1 where unknown."""
        if not self.laws:
            return np.full(len(self.contacts.gap), -1)
        first, second = self.materials[np.searchsorted(self.identities, self.contacts.bodies)].T
        found = self.law_index[first, second]
        if len(self.joints):
            wide = 1 + int(max(self.joints[:, 1].max(), self.identities.max(initial=0)))
            stated, met = self.joints[:, 0] * wide + self.joints[:, 1], np.sort(self.contacts.bodies, axis=1)
            key = met[:, 0] * wide + met[:, 1]  # joints are in the order of these
            at = np.minimum(np.searchsorted(stated, key), len(stated) - 1)
            found = np.where(stated[at] == key, self.joints[at, 2], found)
        return found

    def body(self, number: int) -> Body:
        """The body with this number: ``frame.body(3).position``."""
        return Body(int(number), self._value)

    def _value(self, number: int, name: str):
        row = int(np.searchsorted(self.identities, number))
        if row == len(self.identities) or self.identities[row] != number:
            raise InputError(
                f"Body {number} is not in the frame at t = {self.time:.6g}: it was removed, had not come or never was; "
                f"frame.identities lists the {len(self.identities)} bodies present."
            )
        column = {"position": self.positions, "velocity": self.velocities, "rotation": self.rotations,
                  "spin": self.spins, "mass": self.masses, "kind": self.kinds}[name]  # fmt: skip
        return read_only(column[row])
