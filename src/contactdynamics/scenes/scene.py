"""A scene: bodies, materials, loads. It collects and checks; `freeze` makes the `Model` that kernels read.

A simulation takes a copy and closes the scene: what is stated later goes through the simulation's doors of the same
names, and what does not act is an error. A closed scene may be given to further simulations.
"""

import contextlib
from typing import Unpack

import numpy as np

from ..display import picture
from ..errors import InputError, as_numbers, check_flags, check_function, explained, is_number, is_whole
from ..problem.laws import Law
from ..signatures import LawOptions, MaterialOptions
from ..state import (
    DRIVEN,
    FIXED,
    FREE,
    Model,
    Planes,
    Springs,
    read_only,
)
from . import inputs, making
from .cell import Cell
from .loads import Profile, as_function, constant
from .materials import Materials
from .shapes.balls import HalfPlane, Plane
from .shapes.polygons import Polygon
from .shapes.polyhedra import Polyhedron
from .tables import NO_BALLS, Tables, join, join_all


def _own_lists(thing):
    """A copy of an object that has lists and dicts of its own."""
    twin = object.__new__(type(thing))
    vars(twin).update(
        (name, value.copy() if type(value) in (list, dict) else value) for name, value in vars(thing).items()
    )
    return twin


@explained
class Scene:
    """Bodies and how they touch; ``gravity`` of length 2 or 3 decides the dimension.

    ``gravity`` is a vector, or a profile or function of time (see `loads`, and `loads.tilting`). ``cell`` makes space
    periodic: see `Cell`.

    >>> import contactdynamics as cd
    >>> scene = cd.Scene(gravity=(0, -9.81))
    >>> scene.material("steel", density=7800)
    >>> scene.contact("steel", "steel", friction=0.3)
    >>> floor = scene.add(cd.HalfPlane(normal=(0, 1)), material="steel", fixed=True)
    >>> ball = scene.add(cd.Disk(radius=0.1), material="steel", position=(0, 0.5))
    """

    def __init__(self, gravity, *, cell: Cell | None = None):
        self._closed = False
        self.gravity = gravity
        if not (cell is None or isinstance(cell, Cell)):
            raise InputError(f"Scene got cell={cell!r}; give a Cell, such as Cell((1.0, 2.0)).")
        if cell is not None and cell.dimension != self.dimension:
            raise InputError(
                f"Scene got a cell of {cell.dimension} dimensions and gravity of {self.dimension}; give the same."
            )
        self.cell = cell
        self.materials = Materials()
        self.count = 0
        self.blocks: list[Tables] = []
        self.drives, self.forces = {}, {}
        self.changed_materials = False
        self._springs = []
        self._bodies_of: dict[int, tuple[int, bool]] = {}

    def __repr__(self):
        kinds = np.concatenate([block.bodies.kind for block in self.blocks] or [np.zeros(0)])
        names = ", ".join(self.materials.names[:4]) + (", …" if len(self.materials.names) > 4 else "")
        return (
            f"Scene in {self.dimension}D: {len(kinds)} bodies, {int((kinds == FREE).sum())} of them free; "
            f"{f'materials {names}' if names else 'no materials'}"
        )

    def _repr_html_(self):
        from ..plotting import plot_state_of

        return picture(repr(self), lambda: plot_state_of(self).figure)

    @classmethod
    def from_compas(
        cls, source, *, friction: float = 0.84, density=None, fixed=None, scale: float = 1.0,
        gravity=(0.0, 0.0, -9.81), nonconvex: str = "split", repair: bool = False,
    ) -> "Scene":  # fmt: skip
        """A scene of the blocks of COMPAS: an assembly (compas_assembly) or a model (compas_model, compas_dem).

        ``source`` is a JSON file, read without COMPAS, or the assembly or model itself. Body k is the block with the
        k-th key. Supports of the file do not move, or those that ``fixed`` says: places, or a function of a block's
        corners. ``density`` (kg/m^3) is that of the file's materials (2400 where there are none), a number, or a dict
        of numbers by place with a "default". ``nonconvex`` and ``repair`` as in `packings.blocks`.
        """
        from .compas import fill

        scene = cls(gravity=gravity)
        fill(scene, source, friction=friction, density=density, fixed=fixed, scale=scale, nonconvex=nonconvex,
             repair=repair)  # fmt: skip
        return scene

    def to_compas(self, path, *, kind: str = "assembly") -> None:
        """Write the polyhedra as JSON of COMPAS, one block for each convex part, where they are.

        ``kind`` is "assembly" (compas_assembly) or "model" (compas_dem, with the densities).
        """
        from .compas import write

        write(self, path, kind)

    # ---- gravity, and who may change the scene ---------------------------------------------------------------------

    @property
    def gravity(self):
        """(d,) m/s^2; a profile or function of time where it is one."""
        return self._gravity.numbers[0] if self.steady else self._gravity

    @gravity.setter
    def gravity(self, value):
        self._check_open("gravity", "sim.gravity = ...")
        if callable(value):
            check_function("Scene got gravity", value, "t")
        sample = np.atleast_1d(as_numbers("gravity", value(0.0) if callable(value) else value))
        lengths = getattr(self, "dimension", None)  # none yet: both are possible
        if sample.shape not in ([(2,), (3,)] if lengths is None else [(lengths,)]) or not np.isfinite(sample).all():
            raise InputError(
                f"Scene got gravity={value!r}; give 2 or 3 finite numbers, they decide the dimension."
                if lengths is None
                else f"gravity is {value!r}; give {lengths} finite numbers, or a profile or function of time for them."
            )
        steady = value if callable(value) else constant(read_only(sample))
        self._gravity, self.dimension = steady, len(sample)

    @property
    def steady(self) -> bool:
        """Whether gravity is the same at all times."""
        return isinstance(self._gravity, Profile) and self._gravity.kind == "constant"

    def gravity_at(self, t: float) -> np.ndarray:
        """(3,) gravity at the time ``t``; z = 0 in two dimensions."""
        out = np.zeros(3)
        value = np.atleast_1d(as_numbers("gravity", self._gravity(t)))
        if value.shape != (self.dimension,) or not np.isfinite(value).all():
            raise InputError(
                f"gravity gives {value.tolist()} at t = {t:.6g}; make it return {self.dimension} finite numbers."
            )
        out[: self.dimension] = value
        return out

    def copy(self) -> "Scene":
        """The same scene again, open or closed as it is; functions of time are shared."""
        twin = _own_lists(self)
        twin.materials = _own_lists(self.materials)
        twin.forces = {body: list(pairs) for body, pairs in self.forces.items()}
        return twin

    def close(self) -> None:
        """From now on nothing can be added or changed: a simulation has taken the scene."""
        self._closed = True

    @contextlib.contextmanager
    def opened(self):
        """Open inside, for the doors of the simulation that holds the scene; after an error it is as it was.

        Inside, `blocks` has what comes alone: the others may be thousands.
        """
        known, self.blocks = self.blocks, []
        kept = vars(self.copy())
        self._closed = False
        try:
            yield self
        except BaseException:
            vars(self).update(kept)
            raise
        finally:
            known += self.blocks
            self.blocks, self._closed = known, True

    def _check_open(self, what: str, door: str) -> None:
        if self._closed:
            raise InputError(f"scene.{what} came after Simulation(scene), which has closed the scene; use {door}.")

    # ---- materials -------------------------------------------------------------------------------------------------

    def material(self, name: str, *, density: float, **own: Unpack[MaterialOptions]) -> None:
        """State a material; its own coefficients (friction=..., restitution=...) serve pairs that are not stated."""
        self._check_open("material", "sim.material(...)")
        self.materials.add(name, density, own)

    def contact(self, a: str, b: str, *, axis=None, **options: Unpack[LawOptions]) -> None:
        """State the law between materials ``a`` and ``b``; the options are those of `Law`.

        ``axis`` is the direction of the first coefficient of ``anisotropic=(c1, c2)``, in the axes of ``a``'s body; of
        two bodies of ``a``, of the one that was added first, and of a plane rather than of what touches it.
        """
        self._check_open("contact", "sim.contact(...)")
        law = self._law("contact", options)
        if law.anisotropic is not None and self.dimension == 2:
            raise InputError("anisotropic friction has two directions and needs a scene in 3D; give friction=...")
        self.materials.set_pair(a, b, law, axis)

    @staticmethod
    def _law(name: str, options: dict) -> Law:
        try:
            return Law(**options)
        except TypeError:
            known = ", ".join(Law.__dataclass_fields__)
            unknown = ", ".join(sorted(set(options) - set(Law.__dataclass_fields__)))
            raise InputError(f"{name} got the unknown option {unknown}; it takes {known}.") from None

    def joint(self, first: int, second: int, **options: Unpack[LawOptions]) -> None:
        """State the law between two bodies, by their numbers; it goes before that of their materials.

        The options are those of `contact`: ``scene.joint(3, 4, friction=0.4, cohesion=200.0)``.
        """
        self._check_open("joint", "sim.joint(...)")
        for body in (first, second):
            self._known(body)
        if first == second:
            raise InputError(f"A joint got the body {first!r} twice; give two bodies.")
        self.materials.set_joint(int(first), int(second), self._law("joint", options))

    # ---- bodies ----------------------------------------------------------------------------------------------------

    @explained
    def add(
        self,
        shape,
        *,
        material: str,
        position=None,
        velocity=None,
        spin=None,
        rotation=None,
        fixed: bool = False,
        motion=None,
        free: str | None = None,
        mass: float | None = None,
        inertia=None,
    ) -> int:
        """Add one body and return its number.

        ``position`` (d,) of the centre of mass, ``velocity`` (d,), ``spin`` (number in 2D, (3,) in space in 3D),
        ``rotation`` (angle in 2D, unit quaternion (w, x, y, z) in 3D); all zero when omitted. ``motion`` drives the
        body: a `Drive`, or a velocity as vector, profile or function of time. ``mass`` and ``inertia`` (number in 2D,
        three principal moments in 3D) replace what follows from the density.

        ``free`` names the directions in which the body moves freely: letters for translations ("y", "xy"), "turn" for
        turning, in 3D also "turn-z" for one axis; "xy turn" is a body on rails that may turn. In all others it is held,
        or driven by ``motion``. A wall that is free in some direction has the mass of all other free bodies where none
        is given.
        """
        self._check_open("add", "sim.add(...)")
        inputs.check_shape(self.dimension, shape)
        check_flags("scene.add", fixed=fixed)
        wall = isinstance(shape, Plane | HalfPlane)
        held = inputs.held_directions(self.dimension, free, fixed)
        if wall and not fixed and motion is None and free is None:
            raise InputError(f'{shape!r} is neither fixed nor driven; add fixed=True, motion=... or free="y".')
        if fixed and motion is not None:
            raise InputError("A body got fixed=True and motion=...; give one of them.")
        index = self.materials.index(material)
        kind = FIXED if fixed else DRIVEN if motion is not None and free is None else FREE
        place = inputs.vectors(self.dimension, "position", position, 1)
        placed = self._placed(place, velocity, spin, inputs.orientation(self.dimension, rotation), fixed)
        placed = placed._replace(kind=kind)
        inputs.check_held(held, placed.velocity, placed.spin)
        if wall:
            own = 1.0 if free is None else inputs.wall_mass(shape, held, mass)
            bodies = making.bodies(placed, own, np.ones(3), size=np.zeros(1), simple=False)
            row = np.zeros(1, dtype=np.int64)
            block = Tables(bodies, NO_BALLS, Planes(shape.normal[None], row + self.count, row + index))
        else:
            block = making.solid(shape, placed, self._stuff(index), mass, inertia)
        if held:
            block = block._replace(bodies=block.bodies._replace(held=np.array([held], dtype=np.int8)))
        if motion is not None:
            self.drives[self.count] = inputs.drive_of(self.dimension, motion)
            if held:
                inputs.check_drive(held, *self.drives[self.count])
        return self._enter(block, index)

    @explained
    def add_many(
        self, shapes, *, material: str, position, velocity=None, spin=None, rotation=None, fixed: bool = False
    ) -> np.ndarray:
        """Add many spheres or polyhedra (disks or polygons in 2D) at once and return their numbers (k,).

        ``shapes`` is an array of radii (k,), one radius or shape for all, or a sequence of spheres or disks, or of
        polygons or polyhedra; ``position`` (k, d), ``velocity``, ``spin`` and (for polygons) the angle or (for
        polyhedra) the quaternion ``rotation`` one for all or one each.
        """
        self._check_open("add_many", "sim.add_many(...)")
        check_flags("scene.add_many", fixed=fixed)
        place = np.atleast_2d(as_numbers("position", position))
        k = len(place)
        if isinstance(shapes, list | tuple) and any(isinstance(shape, list | tuple) for shape in shapes):
            raise InputError(f"add_many got shapes={shapes!r}; give one row of radii or of shapes.")
        place = inputs.vectors(self.dimension, "position", place, k)
        angular = Polygon | Polyhedron
        if isinstance(shapes, angular) or (np.ndim(shapes) == 1 and any(isinstance(s, angular) for s in shapes)):
            return self._add_angular(shapes, material, place, velocity, spin, rotation, fixed)
        if rotation is not None:
            raise InputError("add_many got rotation=... for balls, which look the same; leave it out.")
        radii = inputs.radii(self.dimension, shapes, k)
        index = self.materials.index(material)
        placed = self._placed(place, velocity, spin, np.full((k, 4), making.ALONG), fixed)
        self._enter(making.balls(self.dimension, placed, self._stuff(index), radii), index)
        return placed.first + np.arange(k)

    def _add_angular(self, shapes, material, place, velocity, spin, rotation, fixed) -> np.ndarray:
        """Polygons or polyhedra of `add_many`, as one block."""
        k = len(place)
        shapes = [shapes] * k if isinstance(shapes, Polygon | Polyhedron) else list(shapes)
        for shape in shapes:
            if not isinstance(shape, Polygon | Polyhedron):
                kind = "polygons" if self.dimension == 2 else "polyhedra"
                raise InputError(f"add_many got {shape!r} among {kind}; add other shapes by a call of their own.")
            inputs.check_shape(self.dimension, shape)
        if len(shapes) != k:
            raise InputError(f"add_many got {len(shapes)} shapes and {k} positions; give as many of both.")
        index = self.materials.index(material)
        placed = self._placed(place, velocity, spin, inputs.orientations(self.dimension, rotation, k), fixed)
        stuff = self._stuff(index)
        blocks = [making.solid(shape, placed.one(n), stuff) for n, shape in enumerate(shapes)]
        return self._enter(join_all(blocks), index) + np.arange(k)

    def _placed(self, place, velocity, spin, orientation, fixed) -> making.Placed:
        """Bodies that are fixed or move freely, with the next numbers."""
        speed = inputs.vectors(self.dimension, "velocity", velocity, len(place))
        turning = inputs.spins(self.dimension, spin, len(place))
        inputs.check_fixed(fixed, speed, turning)
        return making.Placed(self.count, place, orientation, speed, turning, FIXED if fixed else FREE)

    def _stuff(self, material: int) -> making.Stuff:
        return making.Stuff(material, self.materials.densities[material])

    def _enter(self, block: Tables, material: int) -> int:
        first, added = self.count, len(block.bodies.mass)
        self.blocks.append(block)
        self.count += added
        number, free = self._bodies_of.get(material, (0, False))
        now = (min(number + added, 2), free or bool((block.bodies.kind == FREE).any()))
        if now != (number, free):  # which materials can meet changes only with the first two bodies of a material
            self._bodies_of[material] = now
            self.changed_materials = True
        return first

    def take_over(self, block: Tables) -> None:
        """Have the bodies of ``block`` alone, as a file has them: its materials meet as if they had been added."""
        self.blocks, self._bodies_of = [block], {}
        owner = np.concatenate([block.balls.body, block.planes.body])
        made_of = np.concatenate([block.balls.material, block.planes.material])
        for material in np.unique(made_of):
            bodies = np.unique(owner[made_of == material])
            free = bool((block.bodies.kind[bodies] == FREE).any())
            self._bodies_of[int(material)] = (min(len(bodies), 2), free)

    # ---- loads -----------------------------------------------------------------------------------------------------

    @explained
    def force(self, body: int, force=None, torque=None) -> None:
        """Apply a force (d,) and a torque (number in 2D, (3,) in space): vectors, profiles or functions of time."""
        self._check_open("force", "sim.force(...)")
        self._known(body)
        d = self.dimension
        pair = (
            as_function(np.zeros(d) if force is None else force, d, "force"),
            as_function(np.zeros(1 if d == 2 else 3) if torque is None else torque, 1 if d == 2 else 3, "torque"),
        )
        self.forces.setdefault(int(body), []).append(pair)

    @explained
    def spring(
        self, first: int, second: int | None = None, *, stiffness: float, damping: float = 0.0, length: float = 0.0,
        anchor=None, other=None,
    ) -> None:  # fmt: skip
        """A linear spring with dashpot between two bodies, or a body and the ground (``second=None``).

        ``anchor`` (d,) is its point on the first body, in the body's axes from its centre; ``other`` that on the second
        one, or the point of the ground in space. ``length`` at rest.
        """
        self._check_open("spring", "sim.spring(...)")
        self._known(first)
        if second is not None:
            self._known(second)
        for name, value in (("stiffness", stiffness), ("damping", damping), ("length", length)):
            if not (is_number(value) and value >= 0):
                raise InputError(f"spring got {name}={value!r}; give a finite number >= 0.")
        ends = (inputs.vectors(self.dimension, name, end, 1) for name, end in (("anchor", anchor), ("other", other)))
        row = np.array([int(first)]), np.array([-1 if second is None else int(second)])
        self._springs.append(Springs(*row, *ends, *(np.array([float(v)]) for v in (stiffness, damping, length))))

    # ---- checks ----------------------------------------------------------------------------------------------------

    def _known(self, body) -> None:
        if not (is_whole(body) and body < self.count):
            there = f"scene.add returned the numbers 0 to {self.count - 1}" if self.count else "add bodies first"
            raise InputError(f"There is no body {body!r}; {there}.")

    # ---- the door --------------------------------------------------------------------------------------------------

    def freeze(self) -> Model:
        """Check the scene as a whole and return its `Model`."""
        if self.count == 0:
            raise InputError("The scene is empty; add bodies with scene.add(...).")
        tables = making.weighed(join_all(self.blocks))
        if self.cell is not None:
            self.cell.check_bodies(tables)
        if not (tables.bodies.kind == FREE).any():
            raise InputError("The scene has no free body: nothing can move; add one without fixed=True and motion=...")
        laws, index, axes = self.law_table()
        return Model(
            dimension=self.dimension, gravity=self.gravity_at(0.0), springs=self.springs(), laws=laws, law_index=index,
            law_axes=axes, drives=self.drives, forces=self.forces, joints=self.materials.joint_table(),
            **tables._asdict(),
        )  # fmt: skip

    def new_bodies(self) -> Tables:
        """Those that come to a running simulation, refused where they do not fit it: see `opened`."""
        tables = self.blocks[0] if len(self.blocks) == 1 else join_all(self.blocks)
        if np.isnan(tables.bodies.mass).any():
            raise InputError("A wall that comes later and moves freely needs mass=...; give it.")
        if self.cell is not None:
            self.cell.check_bodies(tables)
        return tables

    def law_table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The laws of all pairs of materials that can meet: a free body's with that of any other body."""
        self.changed_materials = False
        known = self._bodies_of
        free = [i for i, (_, is_free) in known.items() if is_free]
        used = {(min(i, j), max(i, j)) for i in free for j in known if i != j or known[i][0] > 1}
        return self.materials.table(used)

    def springs(self) -> Springs:
        """All springs, as arrays."""
        if self._springs:
            return join(self._springs)
        empty, rows = np.zeros(0), np.zeros(0, dtype=np.int64)
        return Springs(rows, rows, np.zeros((0, 3)), np.zeros((0, 3)), empty, empty, empty)
