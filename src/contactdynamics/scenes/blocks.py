"""Blocks from files: meshes of one block each, as bodies of a scene (reached as ``packings.blocks``)."""

import warnings
from collections import Counter

import numpy as np

from ..errors import InputError, MeshWarning, as_numbers, as_path, check_flags, explained, is_one_of
from .shapes import meshes
from .shapes.clusters import Cluster
from .shapes.convex_parts import split
from .shapes.polyhedra import CONVEX, block_of

WAYS = ("refuse", "hull", "split")


@explained
def blocks(
    scene,
    path,
    *,
    material: str,
    scale: float = 1.0,
    position=(0.0, 0.0, 0.0),
    fixed=(),
    nonconvex: str = "refuse",
    repair: bool = False,
) -> np.ndarray:
    """Add the blocks of a mesh file (OBJ, STL, PLY, OFF), each where it was drawn; their numbers, in the file's order.

    Each object or group of the file, and each connected part of one, is a block. ``scale`` multiplies all lengths,
    ``position`` (3,) is then added. ``fixed`` are those that do not move: their places in the file, or a function of
    a block's corners (k, 3) in the scene, such as ``lambda corners: corners[:, 2].min() < 0.1``. Blocks that are not
    convex are refused, taken as their "hull", or "split" into convex parts (``nonconvex``); ``repair`` turns surfaces
    that are inside out and takes the hull of those that are open. What was changed is told by a `MeshWarning`.
    """
    if getattr(scene, "dimension", None) != 3:
        raise InputError(f"blocks got {scene!r}; give a Scene in three dimensions.")
    if not is_one_of(nonconvex, WAYS):
        raise InputError(f"blocks got nonconvex={nonconvex!r}; give {', '.join(map(repr, WAYS))}.")
    check_flags("blocks", repair=repair)
    place = as_numbers("position of blocks", position)
    if place.shape != (3,) or not np.isfinite(place).all():
        raise InputError(f"blocks got position={position!r}; give three finite numbers.")
    found = meshes.read(path, scale)
    shapes = shapes_of(found, as_path("blocks", path).name, nonconvex=nonconvex, repair=repair)
    return set_blocks(scene, shapes, material, place, fixed)


def set_blocks(scene, shapes, material, place, fixed) -> np.ndarray:
    """Add ``shapes`` where their corners are stated, moved by ``place`` (3,)."""
    stay = stays(shapes, place, fixed)
    return np.array(
        [
            scene.add(shape, material=material, position=shape.center_of_mass + place, fixed=bool(still))
            for shape, still in zip(shapes, stay, strict=True)
        ]
    )


def corners_of(shape) -> np.ndarray:
    """(k, 3) of all convex parts, where they were stated."""
    return np.concatenate([vertices for vertices, _ in shape.solids]) + shape.center_of_mass


def stays(shapes, place, fixed) -> np.ndarray:
    """Which of the shapes (k,) do not move: those at the places ``fixed``, or those it is true of."""
    if callable(fixed):
        return np.array([bool(fixed(corners_of(shape) + place)) for shape in shapes])
    numbers = np.atleast_1d(as_numbers("fixed of blocks", fixed)) if len(np.atleast_1d(fixed)) else np.zeros(0)
    if numbers.ndim != 1 or not np.isin(numbers, np.arange(len(shapes))).all():
        raise InputError(
            f"blocks got fixed={fixed!r} for {len(shapes)} blocks; give places from 0 to {len(shapes) - 1}, or a "
            "function of a block's corners."
        )
    return np.isin(np.arange(len(shapes)), numbers)


def shapes_of(found: list, name: str, *, nonconvex: str, repair: bool) -> list:
    """The shapes of surfaces; refuses those with faults, and tells what was changed."""
    faults, shapes, changed = [], [], Counter()
    largest, at = 0.0, ""
    for mesh in found:
        wrong = meshes.fault(mesh)
        try:
            block = block_of(mesh, repair=repair, nonconvex=split if nonconvex == "split" else nonconvex)
        except InputError as error:
            faults.append((mesh, wrong or "is not convex", str(error)))
            continue
        if mesh.doubled:
            changed["had corners twice, which are one now"] += 1
        if wrong and wrong.startswith("is inside out"):
            changed["were inside out, and are turned"] += 1
        elif wrong:
            changed["had no closed surface, and are their convex hulls"] += 1
        if isinstance(block, list):
            block = Cluster(block) if len(block) > 1 else block[0]
            changed["are cut into convex parts"] += isinstance(block, Cluster)
        elif not wrong and mesh.volume < (1 - CONVEX) * block.volume:
            changed["were not convex, and are their convex hulls"] += 1
            if 1 - mesh.volume / block.volume > largest:
                largest, at = 1 - mesh.volume / block.volume, mesh.name
        shapes.append(block)
    if faults:
        raise InputError(_refusal(faults, len(found), name))
    changed = {what: count for what, count in changed.items() if count}
    if changed:
        more = f"; the hull that differs most has {largest:.1%} that the block lacks ({at})" if largest else ""
        told = "; ".join(f"{count} of {len(found)} blocks {what}" for what, count in changed.items())
        warnings.warn(f"{name}: {told}{more}.", MeshWarning, stacklevel=5)
    return shapes


def _refusal(faults, count, name) -> str:
    """One sentence about all blocks that were refused."""
    first = faults[0][-1]
    if len(faults) == 1:
        return first
    kinds = Counter(wrong.split(":")[0].removeprefix("is ").removeprefix("has ") for _, wrong, _ in faults)
    told = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    return f"{name}: {len(faults)} of {count} blocks are refused ({told}); the first: {first}"
