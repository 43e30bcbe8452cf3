"""Blocks from mesh files: what is read, what is refused in one sentence, and what is repaired and told."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import packings
from contactdynamics.errors import MeshWarning
from contactdynamics.scenes.shapes import meshes
from contactdynamics.scenes.shapes.convex_parts import split
from contactdynamics.scenes.shapes.polyhedra import block_of

CUBE = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
PUBLIC = os.environ.get("MASONRY_ASSEMBLIES", "")  # a folder of files of others


def cube(shift=(0, 0, 0), size=(1, 1, 1), faces=FACES):
    return meshes.mesh("cube", CUBE * size + shift, faces)


def stone_scene():
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2000.0)
    scene.contact("stone", "stone", friction=0.6)
    return scene


# ---- surfaces --------------------------------------------------------------------------------------------------------


def test_a_sound_surface_has_its_volume_and_no_fault():
    surface = cube(shift=(1e3, -1e3, 5), size=(2, 3, 0.5))
    assert meshes.fault(surface) is None and surface.volume == pytest.approx(3.0, rel=1e-12)
    block = block_of(surface)
    assert block.volume == pytest.approx(3.0, rel=1e-12) and len(block.faces) == 6
    np.testing.assert_allclose(block.center_of_mass, (1001, -998.5, 5.25), rtol=1e-12)


def test_faults_are_named_with_their_cure_and_repaired():
    inverted = cube(faces=[face[::-1] for face in FACES])
    opened = cube(faces=FACES[1:])
    mixed = cube(faces=[FACES[0][::-1], *FACES[1:]])
    for surface, words, cure in (
        (inverted, "inside out: its volume is -1", "repair=True"),
        (opened, "open: 4 of its edges have one face only", "close it where it was drawn"),
        (mixed, "turned different ways", "turn its faces outwards"),
    ):
        with pytest.raises(cd.InputError, match=words) as caught:
            block_of(surface)
        assert cure in str(caught.value) and str(caught.value).endswith(".") and "\n" not in str(caught.value)
        assert block_of(surface, repair=True).volume == pytest.approx(1.0, rel=1e-12)
    flat = cube(size=(1, 1, 0))
    for repair in (False, True):
        with pytest.raises(cd.InputError, match="flat: it has no volume; leave it out"):
            block_of(flat, repair=repair)


def test_corners_that_stand_twice_are_one():
    # Each face with corners of its own, as in many files: 24 corners, 8 places.
    corners = np.concatenate([CUBE[list(face)] for face in FACES])
    surface = meshes.mesh("loose", corners, np.arange(24).reshape(6, 4))
    assert surface.doubled == 16 and len(surface.corners) == 8
    assert meshes.fault(surface) is None and surface.volume == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("outline", [
    [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)],
    [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)],
    [(0, 0), (4, 0), (2, 1), (1.5, 4)],
])  # fmt: skip
def test_a_block_that_is_not_convex_is_cut_exactly(outline):
    # L, U and an arrow: the fan of the L starts at a corner that sees all others.
    area = 0.5 * sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(outline, outline[1:] + outline[:1], strict=True))
    k = len(outline)
    corners = [(x, y, z) for z in (0.0, 2.0) for x, y in outline]
    sides = [(n, (n + 1) % k, (n + 1) % k + k, n + k) for n in range(k)]
    ends = _ears(outline)
    faces = [*[t[::-1] for t in ends], *[tuple(c + k for c in t) for t in ends], *sides]
    surface = meshes.mesh("hollow", np.array(corners) + np.array((7, 8, 9)), faces)
    assert meshes.fault(surface) is None
    with pytest.raises(cd.InputError, match=r"not convex: it fills \d+\.\d+% of its convex hull; .*split"):
        block_of(surface)
    parts = split(surface)
    assert len(parts) > 1
    body = cd.Cluster(parts)  # the mass of the union: overlaps would count once, and be missed in the sum
    assert sum(part.volume for part in parts) == pytest.approx(2.0 * area, rel=1e-9)
    assert body.volume == pytest.approx(2.0 * area, rel=1e-9)
    assert block_of(surface, nonconvex="hull").volume > 2.0 * area


def test_a_block_with_a_hole_is_cut_into_few_parts():
    def ring(half, z):
        return [(x, y, z) for x, y in ((-half, -half), (half, -half), (half, half), (-half, half))]

    corners = [*ring(2, 0), *ring(1, 0), *ring(2, 1), *ring(1, 1)]
    faces = []
    for k in range(4):
        n = (k + 1) % 4
        faces += [
            (k, n, n + 8, k + 8),
            (n + 4, k + 4, k + 12, n + 12),
            (n, k, k + 4, n + 4),
            (k + 8, n + 8, n + 12, k + 12),
        ]
    parts = split(meshes.mesh("frame", np.array(corners, dtype=float), faces))
    assert len(parts) == 4 and sum(part.volume for part in parts) == pytest.approx(12.0, rel=1e-12)
    assert cd.Cluster(parts).volume == pytest.approx(12.0, rel=1e-9)


def _ears(outline):
    """Triangles of a polygon by cutting ears."""
    left, found = list(range(len(outline))), []
    cross = lambda a, b, c: (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])  # noqa: E731
    while len(left) > 3:
        for n in range(len(left)):
            i, j, k = left[n - 1], left[n], left[(n + 1) % len(left)]
            a, b, c = outline[i], outline[j], outline[k]
            others = [outline[m] for m in left if m not in (i, j, k)]
            if cross(a, b, c) > 0 and not any(
                cross(a, b, p) >= 0 and cross(b, c, p) >= 0 and cross(c, a, p) >= 0 for p in others
            ):
                found.append((i, j, k))
                left.pop(n)
                break
    return [*found, tuple(left)]


# ---- files -----------------------------------------------------------------------------------------------------------


def write_obj(path, surfaces, names=None):
    lines, first = [], 1
    for n, surface in enumerate(surfaces):
        lines.append(f"o {names[n] if names else f'block {n}'}")
        lines += ["v {} {} {}".format(*corner) for corner in surface.corners.tolist()]
        lines += ["f " + " ".join(str(first + c) for c in t) for t in surface.triangles]
        first += len(surface.corners)
    path.write_text("\n".join(lines) + "\n")


def write_stl(path, surfaces):
    lines = []
    for surface in surfaces:
        lines.append("solid part")
        for t in surface.triangles:
            lines += ["facet normal 0 0 0", "outer loop"]
            lines += ["vertex {} {} {}".format(*corner) for corner in surface.corners[t].tolist()]
            lines += ["endloop", "endfacet"]
        lines.append("endsolid part")
    path.write_text("\n".join(lines) + "\n")


def write_off(path, surface, head="OFF\n{v} {f} 0\n"):
    lines = ["{} {} {}".format(*c) for c in surface.corners.tolist()]
    lines += ["3 {} {} {}".format(*t) for t in surface.triangles]
    path.write_text(head.format(v=len(surface.corners), f=len(surface.triangles)) + "\n".join(lines) + "\n")


PLY = (
    "ply\nformat ascii 1.0\nelement vertex {v}\nproperty double x\nproperty double y\nproperty double z\n"
    "element face {f}\nproperty list uchar int vertex_indices\nend_header\n"
)


def test_one_block_from_each_format(tmp_path):
    pytest.importorskip("trimesh")
    surface = cube(size=(2, 1, 0.5))
    write_obj(tmp_path / "a.obj", [surface])
    write_stl(tmp_path / "a.stl", [surface])
    write_off(tmp_path / "a.off", surface)
    write_off(tmp_path / "a.ply", surface, PLY)
    for suffix in ("obj", "stl", "off", "ply"):
        block = cd.Polyhedron.read(tmp_path / f"a.{suffix}", scale=0.5)
        assert block.volume == pytest.approx(0.125, rel=1e-6)
        np.testing.assert_allclose(block.center_of_mass, (0.5, 0.25, 0.125), atol=1e-7)


def test_blocks_keep_the_order_of_the_file_and_their_places(tmp_path):
    pytest.importorskip("trimesh")
    write_obj(tmp_path / "tower.obj", [cube((0, 0, k)) for k in range(12)])
    scene = stone_scene()
    numbers = packings.blocks(scene, tmp_path / "tower.obj", material="stone", scale=0.5, position=(1, 0, 0), fixed=[0])
    assert numbers.tolist() == list(range(12))
    sim = cd.Simulation(scene, time_step=1e-3)
    expected = np.array([(1.25, 0.25, 0.25 + 0.5 * k) for k in range(12)])
    np.testing.assert_allclose(sim.positions, expected, atol=1e-12)
    assert sim.is_equilibrium()
    again = stone_scene()
    packings.blocks(again, tmp_path / "tower.obj", material="stone", fixed=lambda c: c[:, 2].min() < 1.5)
    assert cd.Simulation(again, time_step=1e-3).frame().kinds.tolist() == [1, 1] + [0] * 10


def test_two_blocks_in_one_object_are_two(tmp_path):
    pytest.importorskip("trimesh")
    one, two = cube(), cube((3, 0, 0))
    both = meshes.Mesh("both", np.concatenate([one.corners, two.corners]),
                       np.concatenate([one.triangles, two.triangles + 8]))  # fmt: skip
    write_obj(tmp_path / "both.obj", [both])
    with pytest.raises(cd.InputError, match=r"has 2 blocks, and Polyhedron.read takes one; .*packings.blocks"):
        cd.Polyhedron.read(tmp_path / "both.obj")
    assert len(packings.blocks(stone_scene(), tmp_path / "both.obj", material="stone")) == 2


def test_what_was_changed_is_told_and_what_is_refused_is_counted(tmp_path):
    pytest.importorskip("trimesh")
    bad = [cube(), cube((2, 0, 0), faces=FACES[1:]), cube((4, 0, 0), faces=[f[::-1] for f in FACES])]
    write_obj(tmp_path / "bad.obj", bad)
    with pytest.raises(cd.InputError, match=r"2 of 3 blocks are refused \(1 open, 1 inside out\); the first: block 1"):
        packings.blocks(stone_scene(), tmp_path / "bad.obj", material="stone")
    with pytest.warns(MeshWarning, match="1 of 3 blocks had no closed surface.*1 of 3 blocks were inside out"):
        packings.blocks(stone_scene(), tmp_path / "bad.obj", material="stone", repair=True)


def test_wrong_files_and_options(tmp_path):
    write_obj(tmp_path / "a.obj", [cube()])
    (tmp_path / "empty.obj").write_text("")
    (tmp_path / "torn.stl").write_bytes(b"solid \x00\xff")
    scene = stone_scene()
    for call, words in (
        (lambda: cd.Polyhedron.read(tmp_path / "a.dxf"), "ends in .obj, .stl, .ply, .off"),
        (lambda: cd.Polyhedron.read(tmp_path / "none.obj"), "There is no file"),
        (lambda: cd.Polyhedron.read(tmp_path / "a.obj", scale=0), "scale=0; give a positive number"),
        (lambda: packings.blocks(scene, tmp_path / "a.obj", material="stone", nonconvex="no"), "'refuse', 'hull'"),
        (lambda: packings.blocks(cd.Scene(gravity=(0, -1)), tmp_path / "a.obj", material="stone"), "three dimensions"),
        (lambda: packings.blocks(scene, 3, material="stone"), "give the name of a file"),
    ):
        with pytest.raises(cd.InputError, match=words):
            call()
    pytest.importorskip("trimesh")
    for name in ("empty.obj", "torn.stl"):
        with pytest.raises(cd.InputError, match=r"has no faces|could not be read"):
            cd.Polyhedron.read(tmp_path / name)
    with pytest.raises(cd.InputError, match=r"fixed=\[3\] for 1 blocks; give places from 0 to 0"):
        packings.blocks(scene, tmp_path / "a.obj", material="stone", fixed=[3])


# ---- overlaps and units at the start ---------------------------------------------------------------------------------


def test_all_pairs_that_overlap_are_listed_and_repaired():
    scene = stone_scene()
    for k in range(4):
        scene.add(cd.Box(1.0), material="stone", position=(0.9 * k, 0, 0))
    with pytest.raises(
        cd.InputError, match=r"Bodies \d and \d overlap by 20% .* beyond 5% also .*-.* by 0.1 m"
    ) as caught:
        cd.Simulation(scene, time_step=1e-3)
    assert str(caught.value).count(" by 0.1 m") == 2 and "repair=True" in str(caught.value)
    sim = cd.Simulation(scene, time_step=1e-3, repair=True)
    assert np.diff(sim.positions[:, 0]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("unit", [0.001, 1.0, 1000.0])
def test_units_that_look_wrong(unit):
    scene = stone_scene()
    scene.add(cd.Plane((0, 0, 1)), material="stone", fixed=True)
    packings.wall(scene, material="stone", length=0.8 * unit, courses=2, block=(0.4 * unit, 0.2 * unit),
                  depth=0.2 * unit)  # fmt: skip
    if unit == 1.0:
        cd.Simulation(scene, time_step=1e-3)
        return
    cure = "scale=0.001" if unit > 1 else "scale=1000"
    with pytest.warns(MeshWarning, match=f"m high in all.*not in metres, give {cure}"):
        cd.Simulation(scene, time_step=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC, reason="MASONRY_ASSEMBLIES names no folder")
def test_the_armadillo_is_decided():
    # As drawn, with joints up to a tenth of a block's inner radius wide, forces hold it; how blocks overlap is told.
    pytest.importorskip("trimesh")
    from contactdynamics import analysis

    scene = stone_scene()
    with pytest.raises(cd.InputError, match="399 of 399 blocks are refused"):
        packings.blocks(scene, Path(PUBLIC) / "armadillo.obj", material="stone")
    with pytest.warns(MeshWarning, match="399 of 399 blocks were not convex"):
        packings.blocks(scene, Path(PUBLIC) / "armadillo.obj", material="stone", nonconvex="hull",
                        fixed=lambda corners: corners[:, 2].min() < 0.5)  # fmt: skip
    with pytest.raises(cd.InputError, match=r"Bodies 63 and 65 overlap by 53% .* and 381 more"):
        cd.Simulation(scene, time_step=1e-3)
    sim = cd.Simulation(scene, time_step=1e-3, check=False)
    answer = sim.is_equilibrium(slack=0.1, tolerance=1.0, max_iterations=1)
    assert analysis.balance(sim.frame()._replace(contacts=answer.contacts))
    assert sim.repair() < 1e-9
