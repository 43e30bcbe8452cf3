"""Assemblies of COMPAS: older assemblies and models, supports, densities, the way back; files of the real packages."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.errors import MeshWarning

CUBE = list(itertools.product((0.0, 1.0), repeat=3))
FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
PUBLIC = os.environ.get("MASONRY_ASSEMBLIES", "")  # a folder of files of others


def mesh(shift=(0, 0, 0), corners=CUBE, faces=FACES):
    """A mesh as COMPAS writes it; its keys are no row of numbers."""
    place = {str(2 * k + 5): dict(zip("xyz", np.add(c, shift).tolist(), strict=True)) for k, c in enumerate(corners)}
    rims = {str(k): [2 * c + 5 for c in face] for k, face in enumerate(faces)}
    return {"dtype": "compas.datastructures/Mesh", "data": {"attributes": {}, "vertex": place, "face": rims}}


def assembly(path, blocks, supports=()):
    nodes = {str(k): {"block": block} | ({"is_support": True} if k in supports else {}) for k, block in blocks.items()}
    graph = {"dtype": "compas.datastructures/Graph",
             "data": {"node": nodes, "default_node_attributes": {"is_support": False}, "edge": {}}}  # fmt: skip
    data = {"dtype": "compas_assembly.datastructures/Assembly", "data": {"attributes": {}, "graph": graph}}
    path.write_text(json.dumps(data))
    return path


def test_an_assembly_in_the_order_of_its_keys(tmp_path):
    path = assembly(tmp_path / "a.json", {k: mesh((0, 0, k)) for k in (10, 2, 0, 1)}, supports=(0,))
    scene = cd.Scene.from_compas(path, scale=0.5)
    sim = cd.Simulation(scene, time_step=1e-3)
    np.testing.assert_allclose(sim.positions[:, 2], 0.5 * (np.array([0, 1, 2, 10]) + 0.5), atol=1e-12)
    assert sim.frame().kinds.tolist() == [1, 0, 0, 0]
    assert sim.frame().masses[1] == pytest.approx(2400 * 0.125)


def test_fixed_and_densities_by_place(tmp_path):
    path = assembly(tmp_path / "a.json", {k: mesh((0, 0, k)) for k in range(4)})
    scene = cd.Scene.from_compas(path, fixed=[0, 1], density={2: 1000.0, "default": 500.0}, friction=0.5)
    frame = cd.Simulation(scene, time_step=1e-3).frame()
    assert frame.kinds.tolist() == [1, 1, 0, 0] and frame.masses[2:] == pytest.approx([1000, 500])
    assert {law.friction for law in frame.laws} == {0.5}
    below = cd.Scene.from_compas(path, fixed=lambda corners: corners[:, 2].min() < 0.5)
    assert cd.Simulation(below, time_step=1e-3).frame().kinds.tolist() == [1, 0, 0, 0]


def test_a_model_with_transformations(tmp_path):
    matrix = [[0, -1, 0, 5], [1, 0, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1]]
    turn = {"dtype": "compas.geometry/Transformation", "data": {"matrix": matrix}}
    elements = [
        {"dtype": "compas_dem.elements/Block", "data": {"geometry": mesh(), "transformation": t, "is_support": s}}
        for t, s in ((None, True), (turn, False))
    ]
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"dtype": "compas_dem.models/BlockModel", "data": {"elements": elements, "tree": {}}}))
    frame = cd.Simulation(cd.Scene.from_compas(path), time_step=1e-3).frame()
    np.testing.assert_allclose(frame.positions, [(0.5, 0.5, 0.5), (4.5, 0.5, 2.5)], atol=1e-12)
    assert frame.kinds.tolist() == [1, 0]


def test_a_block_that_is_not_convex_is_cut(tmp_path):
    outline = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
    corners = [(x, y, z) for z in (0, 1) for x, y in outline]
    faces = [tuple(range(6))[::-1], tuple(range(6, 12)), *[(n, (n + 1) % 6, (n + 1) % 6 + 6, n + 6) for n in range(6)]]
    path = assembly(tmp_path / "a.json", {0: mesh((0, 0, -1), [(4 * x, 4 * y, z) for x, y, z in CUBE]),
                                          1: mesh((0, 0, 0), corners, faces)}, supports=(0,))  # fmt: skip
    with pytest.warns(MeshWarning, match="1 of 2 blocks are cut into convex parts"):
        scene = cd.Scene.from_compas(path, density=1.0)
    sim = cd.Simulation(scene, time_step=1e-3)
    assert sim.frame().masses[1] == pytest.approx(3.0, rel=1e-9)
    assert sim.is_equilibrium()
    with pytest.raises(cd.InputError, match="not convex"):
        cd.Scene.from_compas(path, nonconvex="refuse")


def test_there_and_back(tmp_path):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2400.0)
    scene.contact("stone", "stone", friction=0.84)
    rock = cd.Polyhedron.irregular(1.0, seed=3)
    scene.add(cd.Box((4, 4, 1)), material="stone", position=(0, 0, -0.5), fixed=True)
    scene.add(rock, material="stone", position=(0, 0, 2), rotation=(1, 2, 3, 4))
    scene.to_compas(tmp_path / "back.json")
    one, two = (cd.Simulation(s, time_step=1e-3).frame() for s in (scene, cd.Scene.from_compas(tmp_path / "back.json")))
    np.testing.assert_allclose(two.positions, one.positions, atol=1e-12)
    np.testing.assert_allclose(two.masses, one.masses, rtol=1e-12)
    assert one.kinds.tolist() == two.kinds.tolist()
    there = sorted(np.round(one.solid_corners, 9).tolist())
    np.testing.assert_allclose(sorted(np.round(two.solid_corners, 9).tolist()), there, atol=1e-8)


def test_wrong_files(tmp_path):
    (tmp_path / "torn.json").write_text('{"dtype": "x", "data": {')
    (tmp_path / "other.json").write_text("[1, 2, 3]")
    (tmp_path / "empty.json").write_text('{"dtype": "x", "data": {"graph": {"node": {}}}}')
    for name, words in (("none.json", "There is no file"), ("torn.json", "no assembly or model"),
                        ("other.json", "no assembly or model"), ("empty.json", "has no blocks")):  # fmt: skip
        with pytest.raises(cd.InputError, match=words):
            cd.Scene.from_compas(tmp_path / name)


@pytest.mark.skipif(not PUBLIC, reason="MASONRY_ASSEMBLIES names no folder")
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.MeshWarning")
def test_public_assemblies_rest():
    for name, fixed in (("cubes", [0]), ("type-a", [0, 1]), ("shelf-stable", [0])):
        scene = cd.Scene.from_compas(Path(PUBLIC) / f"{name}.json", fixed=fixed, friction=0.9)
        assert cd.Simulation(scene, time_step=1e-3, repair=True).is_equilibrium(slack=1e-3, max_iterations=20_000), name


def test_the_packages_themselves_read_what_is_written(tmp_path):
    compas = pytest.importorskip("compas")
    pytest.importorskip("compas_assembly")
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2400.0)
    scene.contact("stone", "stone", friction=0.84)
    for k in range(3):
        scene.add(cd.Box(1.0), material="stone", position=(0, 0, 0.5 + k), fixed=k == 0)
    scene.to_compas(tmp_path / "a.json")
    read = compas.json_load(tmp_path / "a.json")
    blocks = list(read.blocks())
    assert len(blocks) == 3 and [len(list(block.vertices())) for block in blocks] == [8] * 3
    compas.json_dump(read, tmp_path / "b.json")
    again = cd.Scene.from_compas(tmp_path / "b.json")
    assert cd.Simulation(again, time_step=1e-3).frame().kinds.tolist() == [1, 0, 0]
