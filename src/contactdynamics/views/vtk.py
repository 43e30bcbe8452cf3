"""A run for ParaView: series of VTK's XML files, binary and compressed, each with a ``.pvd`` that has the times.

::

    bodies.pvd    one point per body: number, radius, orientation, velocity, spin, mass, stress, pressure, ...
    balls.pvd     one point per ball, where bodies have several (clusters): radius, body
    shapes.pvd    polygons and polyhedra as meshes, with the numbers of their bodies on each face
    planes.pvd    planes as squares (half-planes as lines) as wide as the run
    contacts.pvd  one point per contact: bodies, normal, force, gap, status

Only series that have something in them are written. Vectors have three components also in 2D; orientation is a unit
quaternion (w, x, y, z). Forces are impulses of the last step over its length.
"""

import zlib
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from ..state import Frame
from .measures import in_space, measure, outlines, touching

BLOCK = 1 << 20  # bytes that are compressed at a time
TYPES = {"f4": "Float32", "f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}
FOLDER = "frames"


def compressed(array: np.ndarray) -> bytes:
    """An array as `vtkZLibDataCompressor` has it: number and sizes of the blocks, then the blocks."""
    data = np.ascontiguousarray(array).tobytes()
    blocks = [zlib.compress(data[k : k + BLOCK], 6) for k in range(0, len(data), BLOCK)]
    last = len(data) % BLOCK if data else 0
    head = [len(blocks), BLOCK, last, *map(len, blocks)]
    return np.array(head, dtype="<u8").tobytes() + b"".join(blocks)


def poly_data(points, *, vertices=False, lines=None, polygons=None, point_data=None, cell_data=None) -> bytes:
    """A ``.vtp`` file: points (P, 3), as vertices, with ``lines`` or with ``polygons`` (corner list, ends of each)."""
    count = len(points)
    cells = {"Verts": (np.arange(count), np.arange(1, count + 1)) if vertices else None, "Lines": lines,
             "Polys": polygons}  # fmt: skip
    pieces, size, body = [], 0, []

    def entry(name, array, indent=8):
        nonlocal size
        array = np.asarray(array)
        if array.dtype.kind in "iu" and array.dtype.itemsize > 1:
            array = array.astype("<i8")
        elif array.dtype.kind == "f":
            array = array.astype("<f8")
        wide = int(np.prod(array.shape[1:], dtype=int))
        width = f' NumberOfComponents="{wide}"' if array.ndim > 1 else ""
        kind = TYPES[array.dtype.str[1:]]
        body.append(
            f'{" " * indent}<DataArray type="{kind}" Name={quoteattr(name)}{width} format="appended" offset="{size}"/>'
        )
        pieces.append(compressed(array))
        size += len(pieces[-1])

    sizes = " ".join(f'NumberOf{name}="{0 if cell is None else len(cell[1])}"' for name, cell in cells.items())
    body.append(f'    <Piece NumberOfPoints="{count}" {sizes} NumberOfStrips="0">')
    body.append("      <Points>")
    entry("Points", np.asarray(points, dtype="<f8").reshape(-1, 3))
    body.append("      </Points>")
    for name, cell in cells.items():
        if cell is not None:
            body.append(f"      <{name}>")
            entry("connectivity", cell[0])
            entry("offsets", cell[1])
            body.append(f"      </{name}>")
    for name, data in (("PointData", point_data), ("CellData", cell_data)):
        body.append(f"      <{name}>")
        for key, array in (data or {}).items():
            entry(key, array)
        body.append(f"      </{name}>")
    body.append("    </Piece>")
    head = ('<?xml version="1.0"?>\n<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" '
            'header_type="UInt64" compressor="vtkZLibDataCompressor">\n  <PolyData>\n')  # fmt: skip
    middle = "\n".join(body) + '\n  </PolyData>\n  <AppendedData encoding="raw">\n_'
    return (head + middle).encode() + b"".join(pieces) + b"\n  </AppendedData>\n</VTKFile>\n"


def collection(entries) -> str:
    """A ``.pvd`` file of pairs (time, name of a file)."""
    lines = [f'    <DataSet timestep="{time!r}" part="0" file={quoteattr(file)}/>' for time, file in entries]
    return "\n".join(
        ['<?xml version="1.0"?>', '<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">',
         "  <Collection>", *lines, "  </Collection>", "</VTKFile>", ""]
    )  # fmt: skip


def pieces(frame: Frame, reach: tuple) -> dict[str, bytes]:
    """The files of one frame, by the name of their series; planes are as large as ``reach`` = (middle (3,), radius)."""
    m = measure(frame)
    bodies = {
        "number": frame.identities, "radius": m.radius, "orientation": m.orientation, "velocity": m.velocity,
        "spin": m.spin, "mass": frame.masses, "volume": m.volume, "kind": frame.kinds.astype(np.int64),
        "material": frame.materials if len(frame.materials) else np.full(len(frame.kinds), -1),
        "contacts": m.contacts, "largest_force": m.force, "pressure": m.pressure, "stress": m.stress.reshape(-1, 9),
    }  # fmt: skip
    out = {"bodies": poly_data(m.position, vertices=True, point_data=bodies)}
    if len(np.unique(frame.ball_bodies)) < len(frame.ball_bodies):
        rows = frame.ball_bodies
        data = {"number": frame.identities[rows], "radius": frame.ball_radii, "velocity": m.velocity[rows],
                "pressure": m.pressure[rows]}  # fmt: skip
        out["balls"] = poly_data(in_space(frame.ball_centres), vertices=True, point_data=data)
    corners, starts, rows = outlines(frame)
    if len(rows):
        data = {key: value[rows] for key, value in bodies.items() if key not in ("orientation", "radius")}
        out["shapes"] = poly_data(corners, polygons=(np.arange(len(corners)), starts[1:]), cell_data=data)
    if len(frame.plane_normals):
        out["planes"] = _planes(frame, *reach)
    if frame.cell is not None:
        ends = in_space(frame.edges_of_cell().reshape(-1, frame.dimension))
        out["cell"] = poly_data(ends, lines=(np.arange(len(ends)), np.arange(2, len(ends) + 1, 2)))
    c = touching(frame)
    data = {"bodies": c.bodies, "normal": c.normal, "force": c.force, "normal_force": c.normal_force,
            "friction_force": c.friction_force, "gap": c.gap, "status": c.status.astype(np.int64)}  # fmt: skip
    out["contacts"] = poly_data(c.point, vertices=True, point_data=data)
    return out


def _planes(frame: Frame, middle, radius) -> bytes:
    normals, points = in_space(frame.plane_normals), in_space(frame.plane_points)
    foot = middle - np.einsum("ij,ij->i", middle - points, normals)[:, None] * normals
    if frame.dimension == 2:
        along = np.stack([-normals[:, 1], normals[:, 0], np.zeros(len(foot))], axis=1)
        ends = np.stack([foot - radius * along, foot + radius * along], axis=1).reshape(-1, 3)
        return poly_data(ends, lines=(np.arange(len(ends)), np.arange(2, len(ends) + 1, 2)))
    least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    one = np.cross(normals, least)
    one /= np.sqrt((one**2).sum(axis=1))[:, None]
    two = np.cross(normals, one)
    corners = np.stack([foot + radius * (i * one + j * two) for i, j in ((1, 1), (-1, 1), (-1, -1), (1, -1))], axis=1)
    corners = corners.reshape(-1, 3)
    return poly_data(corners, polygons=(np.arange(len(corners)), np.arange(4, len(corners) + 1, 4)))


def reach_of(frame: Frame) -> tuple:
    """Middle (3,) and radius of the bodies of a frame that are no planes."""
    places = in_space(np.concatenate([frame.ball_centres, frame.polygon_corners.reshape(-1, 2)])
                      if frame.dimension == 2 else frame.ball_centres)  # fmt: skip
    places = np.concatenate([places, outlines(frame)[0]])
    if not len(places):
        return np.zeros(3), 1.0
    low, high = places.min(axis=0), places.max(axis=0)
    largest = frame.ball_radii.max(initial=0.0)
    return 0.5 * (low + high), 0.6 * float(np.sqrt(((high - low) ** 2).sum())) + 2 * float(largest)


def write(recording, folder: Path, frames, advance=lambda: None) -> list[str]:
    """Write the series of ``frames`` (numbers) into ``folder``; returns their names."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    series = {}
    wide = len(str(max(frames)))
    reach = reach_of(recording[frames[-1]].inside())
    for k in frames:
        frame = recording[k].inside()
        for name, data in pieces(frame, reach).items():
            file = f"{FOLDER}/{name}_{k:0{wide}d}.vtp"
            (folder / file).write_bytes(data)
            series.setdefault(name, []).append((frame.time, file))
        advance()
    for name, entries in series.items():
        (folder / f"{name}.pvd").write_text(collection(entries))
    return sorted(series)
