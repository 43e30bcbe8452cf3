"""What a user states of bodies, checked and as arrays with three components; ``dimension`` is that of the scene."""

import math

import numpy as np

from ..errors import InputError, as_numbers, is_number
from .cell import AXES
from .loads import Drive, as_function
from .shapes.balls import Disk, HalfPlane, Plane, Sphere


def held_directions(dimension: int, free, fixed) -> int:
    """The directions that are held, as bits (see `motion`); 0 where ``free`` is not given."""
    if free is None:
        return 0
    d, flat = dimension, dimension == 2
    bits = every = 59 if flat else 63
    words = ["turn"] if flat else ["turn", *(f"turn-{axis}" for axis in AXES)]
    for word in free.replace(",", " ").split() if isinstance(free, str) else ("",):
        if word in words:
            bits &= ~(56 if word == "turn" else 8 << AXES.index(word[-1]))
        elif word and set(word) <= set(AXES[:d]):
            for letter in word:
                bits &= ~(1 << AXES.index(letter))
        else:
            raise InputError(
                f'A body got free={free!r}; name directions such as "y" or "{AXES[:d]}", and '
                f"{', '.join(words)} for turning."
            )
    if bits == every or fixed:
        raise InputError(f"A body got free={free!r}" + (" and fixed=True; give one of them." if fixed else "; name "
                         "a direction, or add fixed=True."))  # fmt: skip
    if bits >> 3 not in (0, 7, 6, 5, 3):
        raise InputError(f"A body got free={free!r}; let it turn about all axes, about one, or not at all.")
    if bits == 0:
        raise InputError(f"A body got free={free!r}, which is all; leave free out.")
    return bits


def check_held(held, velocity, spin) -> None:
    """Refuse a velocity in a direction that is held."""
    both = np.concatenate([velocity[0], spin[0]])
    if held and any(both[k] and (held >> k) & 1 for k in range(6)):
        raise InputError("A body got a velocity or spin in a direction in which it is held; give motion=... there.")


def check_drive(held, velocity, spin) -> None:
    """Turning that is driven goes with turning that is held about all axes."""
    if np.any(np.asarray(spin(0.0))) and held >> 3 != 7:
        raise InputError(
            "A body got motion=Drive(spin=...) and turns freely about an axis; hold its turning, or leave the spin."
        )


def check_fixed(fixed, velocity, spin) -> None:
    """Refuse a velocity of a fixed body."""
    if fixed and (velocity.any() or spin.any()):
        raise InputError("A body got fixed=True and a velocity or spin; leave them out, or drive it with motion=...")


def vectors(dimension: int, name: str, value, k: int) -> np.ndarray:
    """(k, 3) array from vectors of the scene's dimension."""
    out = np.zeros((k, 3))
    if value is not None:
        array = as_numbers(name, value)
        if array.shape not in ((dimension,), (k, dimension)) or not np.isfinite(array).all():
            raise InputError(
                f"{name} has the shape {array.shape} or contains nan; give finite numbers of shape "
                f"({dimension},)" + (f" or ({k}, {dimension})." if k > 1 else ".")
            )
        out[:, :dimension] = array
    return out


def spins(dimension: int, value, k: int) -> np.ndarray:
    """(k, 3) spins in space from numbers in the plane, or vectors."""
    if dimension == 3:
        return vectors(dimension, "spin", value, k)
    out = np.zeros((k, 3))
    if value is not None:
        array = as_numbers("spin", value)
        if array.shape not in ((), (1,), (k,)) or not np.isfinite(array).all():
            raise InputError(f"spin is {value!r}; in 2D give one finite number (rad/s) per body.")
        out[:, 2] = array
    return out


def orientation(dimension: int, rotation) -> np.ndarray:
    """(1, 4) a unit quaternion from an angle in the plane, or a quaternion."""
    if rotation is None:
        return np.array([[1.0, 0, 0, 0]])
    value = as_numbers("rotation", rotation)
    if dimension == 2:
        if value.size != 1 or not np.isfinite(value).all():
            raise InputError(f"rotation is {rotation!r}; in 2D give an angle (rad).")
        half = 0.5 * float(value.item())
        return np.array([[math.cos(half), 0, 0, math.sin(half)]])
    if value.shape != (4,) or not np.isfinite(value).all() or not value @ value > 0:
        raise InputError(f"rotation is {rotation!r}; in 3D give a quaternion (w, x, y, z).")
    return value[None] / math.sqrt(value @ value)


def orientations(dimension: int, rotation, k: int) -> np.ndarray:
    """(k, 4) from one rotation for all or one each."""
    if rotation is None:
        return np.tile([1.0, 0, 0, 0], (k, 1))
    value = as_numbers("rotation", rotation)
    one = () if dimension == 2 else (4,)
    if value.shape not in (one, (1, *one), (k, *one)) or not np.isfinite(value).all():
        what = "angle (rad)" if dimension == 2 else "quaternion (w, x, y, z)"
        raise InputError(f"rotation has the shape {value.shape} or contains nan; give one {what} per body.")
    return np.concatenate([orientation(dimension, each) for each in np.broadcast_to(value, (k, *one))])


def drive_of(dimension: int, motion) -> tuple:
    """Velocity and spin as functions of time."""
    drive = motion if isinstance(motion, Drive) else Drive(velocity=motion)
    d, s = dimension, 1 if dimension == 2 else 3
    velocity = np.zeros(d) if np.isscalar(drive.velocity) and drive.velocity == 0 else drive.velocity
    spin = np.zeros(s) if np.isscalar(drive.spin) and drive.spin == 0 else drive.spin
    return as_function(velocity, d, "motion velocity"), as_function(spin, s, "motion spin")


def check_shape(dimension: int, shape) -> None:
    """Refuse what is no shape, or one of the other dimension."""
    solid = all(hasattr(shape, part) for part in ("dimension", "balls", "mass_properties"))
    if isinstance(shape, type) or not (solid or isinstance(shape, Plane | HalfPlane)):
        raise InputError(
            f"scene.add got the shape {shape!r}; give a Sphere, Disk, Plane, HalfPlane, Cluster, Polygon, "
            "Rectangle, Polyhedron or Box."
        )
    if shape.dimension != dimension:
        raise InputError(
            f"{shape!r} is a shape of {shape.dimension} dimensions and the scene has {dimension}; "
            "use Disk, Polygon and HalfPlane with gravity of length 2, Sphere, Polyhedron and Plane with length 3."
        )


def radii(dimension: int, shapes, k: int) -> np.ndarray:
    """(k,) from radii or from disks (spheres), one for all or one each."""
    kind = Disk if dimension == 2 else Sphere
    if isinstance(shapes, kind):
        found = np.full(k, shapes.radius)
    elif np.ndim(shapes) == 1 and all(isinstance(s, kind) for s in shapes):
        found = np.array([s.radius for s in shapes])
    else:
        try:
            found = np.full(k, np.asarray(shapes, dtype=float))
        except (TypeError, ValueError):
            raise InputError(
                f"add_many got shapes={shapes!r} for {k} positions; give as many radii or {kind.__name__}s, or one "
                "for all."
            ) from None
    if len(found) != k:
        raise InputError(f"add_many got {len(found)} shapes and {k} positions; give as many of both.")
    bad = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if bad.size:
        raise InputError(f"add_many got the radius {found[bad[0]]} at row {bad[0]}; give positive lengths.")
    return found


def wall_mass(shape, held: int, mass) -> float:
    """The mass of a wall that moves freely; nan where it is that of all other free bodies, known later."""
    if held >> 3 != 7:
        raise InputError(f"{shape!r} has no centre to turn about; let it move freely, not turn.")
    if mass is None:
        return math.nan
    if not (is_number(mass) and mass > 0):
        raise InputError(f"A body got mass={mass!r}; give a positive number.")
    return float(mass)
