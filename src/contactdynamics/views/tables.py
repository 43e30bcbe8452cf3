"""A run as plain text: tables for any program (CSV), and extended XYZ for OVITO and ASE.

CSV: ``bodies.csv`` and ``contacts.csv`` have one row per body or contact and frame, with its time; ``log.csv`` one per
step. XYZ: one particle per ball, all frames in one file; the orientation is (x, y, z, w) as OVITO has it. The species
are chemical symbols, because ASE reads no others: one for each material, in turn. In a periodic cell XYZ has the cell
and the images inside it, CSV the places as they are, which leave the cell.
"""

from pathlib import Path

import numpy as np

from ..errors import InputError
from ..state import FREE, STATUS_NAMES, Frame
from .measures import measure, touching

KINDS = ("free", "fixed", "driven")
SPECIES = ("Si", "Al", "Fe", "Ca", "Na", "K", "Mg", "Ti", "C", "O")


def names_of(recording) -> list[str]:
    """The names of the materials of a run."""
    return [material["name"] for material in recording.parameters["materials"]]


def _quoted(text: str) -> str:
    """A text in a CSV table; a spreadsheet must not take it for a formula."""
    text = "'" + text if text[:1] in "=+-@\t\r" else text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ",\"\n\r\t'") else text


def _columns(d: int, name: str) -> list[str]:
    return [f"{name}_{axis}" for axis in "xyz"[:d]]


def _body_rows(frame: Frame, materials: list[str]):
    m, d = measure(frame), frame.dimension
    turns = ["rotation_w", "rotation_x", "rotation_y", "rotation_z"] if d == 3 else ["rotation"]
    spins = _columns(3, "spin") if d == 3 else ["spin"]
    head = ["time", "number", "kind", "material", *_columns(d, "position"), *turns, *_columns(d, "velocity"), *spins,
            "radius", "mass", "contacts", "largest_force", "pressure"]  # fmt: skip
    known = frame.materials if len(frame.materials) else np.full(len(frame.kinds), -1)
    numbers = np.column_stack([frame.positions, frame.rotations, frame.velocities, frame.spins, m.radius, frame.masses])
    rows = (
        [repr(frame.time), str(number), KINDS[kind], "" if material < 0 else _quoted(materials[material]),
         *map(repr, values), str(count), repr(force), repr(pressure)]
        for number, kind, material, values, count, force, pressure in zip(
            frame.identities.tolist(), frame.kinds.tolist(), known.tolist(), numbers.tolist(), m.contacts.tolist(),
            m.force.tolist(), m.pressure.tolist(), strict=True)
    )  # fmt: skip
    return head, rows


def _contact_rows(frame: Frame):
    c, d = touching(frame), frame.dimension
    head = ["time", "first", "second", "status", *_columns(d, "point"), *_columns(d, "normal"), *_columns(d, "force"),
            "gap", "normal_force", "friction_force"]  # fmt: skip
    numbers = np.column_stack([c.point[:, :d], c.normal[:, :d], c.force[:, :d], c.gap, c.normal_force,
                               c.friction_force])  # fmt: skip
    rows = (
        [repr(frame.time), str(a), str(b), STATUS_NAMES[status], *map(repr, values)]
        for (a, b), status, values in zip(c.bodies.tolist(), c.status.tolist(), numbers.tolist(), strict=True)
    )
    return head, rows


def write_csv(recording, folder: Path, frames, advance=lambda: None) -> list[str]:
    """Write the tables of ``frames`` (numbers) into ``folder``; returns the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    materials = names_of(recording)
    with (folder / "bodies.csv").open("w", newline="") as bodies, (folder / "contacts.csv").open("w", newline="") as c:
        for place, k in enumerate(frames):
            frame = recording[k]
            for file, (head, rows) in ((bodies, _body_rows(frame, materials)), (c, _contact_rows(frame))):
                if place == 0:
                    file.write(",".join(head) + "\n")
                file.writelines(",".join(row) + "\n" for row in rows)
            advance()
    log = recording.log
    with (folder / "log.csv").open("w", newline="") as file:
        file.write(",".join(log) + "\n")
        columns = (values.tolist() for values in log.values())
        file.writelines(",".join(map(repr, row)) + "\n" for row in zip(*columns, strict=True))
    return ["bodies.csv", "contacts.csv", "log.csv"]


def write_xyz(recording, path: Path, frames, advance=lambda: None) -> int:
    """Write the balls of ``frames`` (numbers) as extended XYZ into one file.

    Returns how many free bodies of the last frame are left out, because they have corners and no balls.
    """
    properties = ("species:S:1:pos:R:3:radius:R:1:id:I:1:molecule:I:1:material:I:1:velo:R:3:orientation:R:4:"
                  "angular_velocity:R:3:mass:R:1:contacts:I:1:pressure:R:1:largest_force:R:1")  # fmt: skip
    first = recording[frames[0]]
    if not len(first.ball_bodies) and not any(len(recording[k].ball_bodies) for k in frames):
        raise InputError(f"{recording.path} has no balls, which OVITO's format needs; export it with --vtk or --html.")
    with path.open("w") as file:
        for k in frames:
            frame = recording[k].inside()
            m, rows = measure(frame), frame.ball_bodies
            centres = np.zeros((len(rows), 3))
            centres[:, : frame.dimension] = frame.ball_centres
            known = frame.materials if len(frame.materials) else np.zeros(len(frame.kinds), dtype=int)
            vectors, low, around = _lattice(frame, centres)
            lattice = " ".join(f"{v:.9g}" for v in vectors.ravel())
            origin = " ".join(f"{v:.9g}" for v in low)
            file.write(
                f'{len(rows)}\nLattice="{lattice}" Origin="{origin}" Properties={properties} Time={frame.time!r} '
                f'pbc="{" ".join("FT"[a] for a in around)}"\n'
            )
            whole = np.column_stack([np.arange(len(rows)), frame.identities[rows], known[rows]]).tolist()
            reals = np.column_stack([
                m.velocity[rows], m.orientation[rows][:, [1, 2, 3, 0]], m.spin[rows], frame.masses[rows]
            ]).tolist()  # fmt: skip
            ends = zip(m.contacts[rows].tolist(), m.pressure[rows].tolist(), m.force[rows].tolist(), strict=True)
            for place, radius, (ball, body, material), values, (count, pressure, force) in zip(
                centres.tolist(), frame.ball_radii.tolist(), whole, reals, ends, strict=True
            ):
                species = SPECIES[material % len(SPECIES)]
                numbers = " ".join(f"{v:.9g}" for v in (*place, radius))
                rest = " ".join(f"{v:.9g}" for v in values)
                file.write(f"{species} {numbers} {ball} {body} {material} {rest} {count} {pressure:.9g} {force:.9g}\n")
            advance()
    return int((~np.isin(np.flatnonzero(frame.kinds == FREE), frame.ball_bodies)).sum())


def _lattice(frame: Frame, centres) -> tuple[np.ndarray, np.ndarray, list[bool]]:
    """Vectors (3, 3) and origin (3,) of the periodic cell, and along which vectors it repeats itself; in open space
    the box around the balls."""
    low, high = _box(centres, frame.ball_radii)
    vectors = np.diag(high - low)
    if frame.cell is None:
        return vectors, low, [False] * 3
    d = frame.dimension
    vectors[:d, :d] = frame.cell
    low[:d] = 0.0
    return vectors, low, [*map(bool, frame.periodic), *(3 - d) * [False]]


def _box(centres, radii) -> tuple[np.ndarray, np.ndarray]:
    """Opposite corners of the box around balls; with a thickness also in 2D."""
    if not len(radii):
        return np.zeros(3), np.ones(3)
    return (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
