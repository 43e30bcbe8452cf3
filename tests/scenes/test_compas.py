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


def column(path, **options):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2400.0)
    scene.material("lead", density=11000.0)
    for pair in (("stone", "stone"), ("stone", "lead")):
        scene.contact(*pair, friction=0.84)
    for k in range(3):
        made_of = "lead" if k == 2 else "stone"
        scene.add(cd.Box(1.0), material=made_of, position=(0, 0, 0.5 + k), fixed=k == 0)
    scene.to_compas(path, **options)
    return path


def test_a_model_as_it_is_written_keeps_densities_and_supports(tmp_path):
    frame = cd.Simulation(cd.Scene.from_compas(column(tmp_path / "m.json", kind="model")), time_step=1e-3).frame()
    assert frame.masses.tolist() == pytest.approx([2400, 2400, 11000]) and frame.kinds.tolist() == [1, 0, 0]
    one = cd.Scene.from_compas(tmp_path / "m.json", density=1000.0)
    assert cd.Simulation(one, time_step=1e-3).frame().masses.tolist() == pytest.approx([1000] * 3)
    with pytest.raises(cd.InputError, match="'assembly' or 'model'"):
        column(tmp_path / "x.json", kind="mesh")


def test_groups_of_a_model_move_what_stands_in_them(tmp_path):
    def lift(z):
        matrix = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, z], [0, 0, 0, 1]]
        return {"dtype": "compas.geometry/Translation", "data": {"matrix": matrix}}

    elements = {
        "g": {"dtype": "compas_model.elements/Group", "data": {"transformation": lift(10)}},
        "two": {"dtype": "x", "data": {"geometry": mesh(), "transformation": lift(1)}},
        "one": {"dtype": "x", "data": {"geometry": mesh(), "transformation": None, "is_support": True}},
    }
    tree = {"root": {"children": [{"element": "g", "children": [{"element": "two"}]}, {"element": "one"}]}}
    nodes = {"0": {"element": "one"}, "1": {"element": "two"}, "2": {"element": "g"}}
    data = {"elements": elements, "tree": tree, "graph": {"node": nodes}, "transformation": lift(100)}
    (tmp_path / "m.json").write_text(json.dumps({"dtype": "compas_model.models/Model", "data": data}))
    frame = cd.Simulation(cd.Scene.from_compas(tmp_path / "m.json"), time_step=1e-3).frame()
    assert frame.positions[:, 2] == pytest.approx([100.5, 111.5]) and frame.kinds.tolist() == [1, 0]


def test_a_body_of_several_parts_is_told_when_it_is_written(tmp_path):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2400.0, friction=0.5)
    two = [cd.Polyhedron(np.add(CUBE, (0, 0, k))) for k in (0, 1)]
    scene.add(cd.Cluster(two), material="stone", position=(0, 0, 0))
    with pytest.warns(MeshWarning, match="1 more than there are bodies"):
        scene.to_compas(tmp_path / "a.json")


# ---- with the real packages: pip install contactdynamics[compas] -----------------------------------------------------


def test_the_packages_themselves_read_what_is_written(tmp_path):
    compas = pytest.importorskip("compas")
    pytest.importorskip("compas_assembly")
    read = compas.json_load(column(tmp_path / "a.json"))
    blocks = list(read.blocks())
    assert len(blocks) == 3 and [len(list(block.vertices())) for block in blocks] == [8] * 3
    compas.json_dump(read, tmp_path / "b.json")
    for source in (tmp_path / "b.json", read):  # the file, and the assembly itself
        assert cd.Simulation(cd.Scene.from_compas(source), time_step=1e-3).frame().kinds.tolist() == [1, 0, 0]


@pytest.fixture
def problem(tmp_path):
    """A column of three cubes as a problem of compas_dem; the top one of lead."""
    compas = pytest.importorskip("compas")
    pytest.importorskip("compas_dem", reason="pip install contactdynamics[compas] brings compas_dem")
    from compas_dem.problem import Problem

    problem = Problem(compas.json_load(column(tmp_path / "m.json", kind="model")))
    problem.set_contact_model("MohrCoulomb", mu=0.6)
    return problem


def test_a_problem_of_compas_dem_is_solved_in_one_line(problem, tmp_path):
    import compas

    results = cd.compas.solve(problem, duration=0.02)
    assert results.metadata["equilibrium"] and results.metadata["failures"] == 0 and results.metadata["moved"] < 1e-9
    for edge, expected in (((0, 1), 13400 * 9.81), ((1, 2), 11000 * 9.81)):
        force = np.array(results.resultant_global(edge))  # on the edge's first node: downwards
        assert force == pytest.approx([0, 0, -expected], rel=1e-6, abs=1e-3)
        assert results.face_contact(edge) and len(results.contact_data(edge).points) == 4
        assert list(results.contact_frame(edge).zaxis) == pytest.approx([0, 0, -1])
        assert results.resultant_local(edge)[2] == pytest.approx(expected, rel=1e-6)
    compas.json_dump(results, tmp_path / "r.json")
    assert compas.json_load(tmp_path / "r.json").metadata["n_steps"] == 20


def test_loads_and_displacements_of_a_problem(problem):
    group = problem.add_boundary_condition("pushed")
    group.add_point_load(block_index=2, force=[0, 0, -1000.0], point=[0.25, 0, 3.0], loading_type="ramp")
    group.add_global_body_force(0.5, 0, 0, loading_type="ramp")
    results = cd.compas.solve(problem, duration=0.06, tolerance=1e-7)
    force = np.array(results.resultant_global((1, 2)))
    assert force == pytest.approx([0.5 * 11000, 0, -11000 * 9.81 - 1000], rel=1e-4, abs=1.0)
    lifted = problem.add_boundary_condition("lifted")
    lifted.add_displacement(block_index=0, dz=1e-3)
    matrix = np.array(cd.compas.solve(problem, duration=0.1).node_attribute(2, "transformation").matrix)
    assert matrix[:3, 3] == pytest.approx([0, 0, 1e-3], abs=2e-5)


def test_what_a_problem_asks_and_does_not_get_is_told(problem):
    with pytest.raises(cd.InputError, match="give a Problem of compas_dem"):
        cd.compas.solve("problem")
    with pytest.raises(cd.InputError, match="duration"):
        cd.compas.solve(problem, duration=0)
    problem.set_joint_model(kn=1e9, kt=1e9)
    with pytest.warns(MeshWarning, match="joints are rigid"):
        cd.compas.solve(problem, duration=0.002)
    problem.set_contact_model("MohrCoulomb", mu=0.6, c=1e5)
    with pytest.raises(cd.InputError, match="leave them"):
        cd.compas.solve(problem)
    problem.set_contact_model("MohrCoulomb", mu=0.6)
    problem.contact_properties.joint_model = None
    problem.add_boundary_condition("far").add_point_load(block_index=7, force=[0, 0, 1.0])
    with pytest.raises(cd.InputError, match="block_index=7"):
        cd.compas.solve(problem)
