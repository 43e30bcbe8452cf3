"""Bodies that come take the next rows of all arrays: what is known then is what a new start would know."""

import copy

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import packings
from contactdynamics.rigid import simulation
from contactdynamics.rigid.contact_set import ContactSet
from contactdynamics.rigid.growing import ROOM, grown, longer
from contactdynamics.rigid.loading import Loading
from contactdynamics.rigid.pages import LINE
from contactdynamics.rigid.watch import Watch

# ---- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float, np.int32, np.int8, bool])
@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_grown_columns_are_joined_ones(dtype, shape, rng):
    """The naive twin: numpy.concatenate."""
    column = expected = rng.integers(0, 2, (5, *shape)).astype(dtype)
    for _ in range(60):
        more = rng.integers(0, 2, (int(rng.integers(0, 4)), *shape)).astype(dtype)
        column, expected = grown(column, len(column), more), np.concatenate([expected, more])
        np.testing.assert_array_equal(column, expected)
        assert type(column) is np.ndarray and column.dtype == expected.dtype
        assert column.flags.c_contiguous and column.flags.aligned and column.flags.writeable
        assert column.ctypes.data % LINE == 0


def test_rows_stay_where_they_are_while_there_is_room():
    columns = [grown(None, 0, np.arange(80.0))]
    for k in range(80 // ROOM):
        columns.append(grown(columns[-1], 80 + k, np.array([1.0 * k])))
    assert {column.ctypes.data for column in columns[1:]} == {columns[0].ctypes.data}
    last = grown(columns[-1], len(columns[-1]), np.zeros(ROOM))
    assert last.ctypes.data != columns[0].ctypes.data
    np.testing.assert_array_equal(last[:90], columns[-1])


def test_of_two_that_go_on_from_one_the_second_is_a_copy():
    column = grown(None, 0, np.arange(80.0))
    one, two, less = grown(column, 80, np.ones(1)), grown(column, 80, np.zeros(1)), grown(column, 40, np.zeros(40))
    assert one[80] == 1.0 and two[80] == 0.0 and column[40] == 40.0 and less[40] == 0.0
    part = longer(one[:40], 80)
    part[:] = -1.0
    assert one[0] == 0.0
    kept = copy.copy(column)
    grown(column, 80, np.ones(1))[0] = 7.0
    assert kept[0] == 0.0


def test_values_are_not_shared():
    values = np.zeros(8)
    column = grown(None, 0, values)
    column[0] = 1.0
    assert values[0] == 0.0


def test_other_shapes_in_the_same_memory():
    table = longer(np.zeros((2, 0, 2)), 2, 40, 2)
    more = longer(table, 2, 42, 2)
    assert more.shape == (2, 42, 2) and more.ctypes.data == table.ctypes.data


# ---- scenes ----------------------------------------------------------------------------------------------------------

SHAPES = {
    "disks": [cd.Disk(0.1), cd.Disk(0.07)],
    "clusters": [cd.Disk(0.1), cd.Cluster([0.08, 0.06], [(0.0, 0.0), (0.1, 0.0)])],
    "polygons": [cd.Rectangle(0.2, 0.1), cd.Disk(0.08)],
    "spheres": [cd.Sphere(0.1), cd.Sphere(0.07)],
    "boxes": [cd.Sphere(0.1), cd.Box((0.2, 0.1, 0.1))],
}


def bodies(name, count):
    """Shapes and options of bodies in a grid above a floor; some are fixed, held or driven, walls among them."""
    shapes = SHAPES[name]
    d = shapes[0].dimension
    wall = (cd.HalfPlane if d == 2 else cd.Plane)((1.0,) + (0.0,) * (d - 1))
    for k in range(count):
        place = (0.3 * (k % 4), *(0.0,) * (d - 2), 0.12 + 0.3 * (k // 4))
        shape, options = shapes[k % 2], {}
        if k % 5 == 3:
            options["fixed"] = True
        elif name != "disks" and k % 7 == 4:
            options["free"] = "x"
        elif name != "disks" and k == 9:
            shape, place = wall, (-0.4,) + (0.0,) * (d - 1)
            options["motion"] = cd.Drive(spin=0.1) if d == 2 else cd.Drive(velocity=(0.0, 0.0, 0.0))
        yield shape, {"material": "m", "position": place} | options


def scene_of(name, count, d):
    scene = cd.Scene(gravity=(0.0,) * (d - 1) + (-9.81,))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add((cd.HalfPlane if d == 2 else cd.Plane)((0.0,) * (d - 1) + (1.0,)), material="m", fixed=True)
    for shape, options in bodies(name, count):
        scene.add(shape, **options)
    return scene


def started(name, count):
    scene = scene_of(name, count, SHAPES[name][0].dimension)
    return cd.Simulation(scene, time_step=1e-3, tolerance=1e-8, check=False, on_failure="ignore")


def arrays(thing, known=()):
    """All arrays and numbers of tables and named tuples, by the way to them."""
    if isinstance(thing, tuple):
        names = getattr(thing, "_fields", range(len(thing)))
        return {
            key: value for name, part in zip(names, thing, strict=True)
            for key, value in arrays(part, (*known, name)).items()
        }  # fmt: skip
    return {known: thing}


def derived(sim):
    """What follows from the bodies of a simulation, by its way; scratch whose numbers are anything left out."""
    met, near = sim.contact_set, sim.contact_set.near
    found = {
        "tables": sim.roster.tables, "rows": sim.rows, "order": sim.roster.order, "balls": sim.roster.ball_number,
        "columns": sim._columns, "shapes": (sim._before.shape, sim._free.shape, near.places.shape, near.moved.shape),
        "watch": (sim.watch.room, sim.watch.pace, sim._roll), "every": near._every,
        "near": (near.largest, near.smallest, near.reach, near.span), "smallest": met._smallest,
        "kinds": (tuple(map(type, met.searches)), tuple(map(type, met.equations)), met.turned),
        "linear": met._linear, "springs": sim.loading.springs,
    }  # fmt: skip
    for search in met.searches:
        found[type(search).__name__] = (search.rules, search.equations, search.sortable)
    return arrays(tuple(found.values()))


def fresh(sim):
    """A simulation that follows all bodies of another anew."""
    twin = copy.copy(sim)
    twin.roster, near = copy.copy(sim.roster), sim.contact_set.near
    twin.contact_set, twin.watch = ContactSet(near.space, near.length), Watch()
    twin.loading = Loading(twin.roster, sim.scene)
    twin.derive()
    return twin


def assert_same(one, two):
    assert one.keys() == two.keys()
    for key, value in one.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, two[key], err_msg=str(key))
            assert value.dtype == two[key].dtype and value.flags.c_contiguous == two[key].flags.c_contiguous
        else:
            assert value == two[key], key


@pytest.mark.parametrize("name", SHAPES)
def test_bodies_that_come_one_by_one_are_those_of_a_whole_scene(name):
    whole, sim = started(name, 20), started(name, 2)
    for shape, options in list(bodies(name, 20))[2:]:
        sim.add(shape, **options)
        assert_same(derived(sim), derived(fresh(sim)))
    assert_same(derived(sim), derived(whole))
    assert sim.rows.ctypes.data % LINE == 0
    for one in (sim, whole):
        for _ in range(20):
            one.step()
    np.testing.assert_array_equal(sim.positions, whole.positions)
    np.testing.assert_array_equal(sim.velocities, whole.velocities)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_known_after_coming_going_and_sorting_is_what_follows_from_the_bodies(name, monkeypatch):
    """Between steps, in any order: the arrays are those that a new start from the same bodies has."""
    monkeypatch.setattr(simulation, "SORT_FROM", 2)
    monkeypatch.setattr(simulation, "SORT_EVERY", 5)
    sim, rng = started(name, 6), np.random.default_rng(4)
    for shape, options in list(bodies(name, 26))[6:]:
        for _ in range(3):
            sim.step()
        sim.add(shape, **options)
        assert_same(derived(sim), derived(fresh(sim)))
        if rng.random() < 0.3:
            sim.remove(int(rng.choice(sim.identities[1:3])))
            assert_same(derived(sim), derived(fresh(sim)))
        if sim.contact_set.sortable:
            sim._sort()
            assert_same(derived(sim), derived(fresh(sim)))
    assert np.isfinite(sim.positions).all() and sim.energy.closure < 1e-10


def test_a_material_that_comes_with_a_body_changes_the_laws_of_all():
    sim = started("disks", 6)
    for _ in range(5):
        sim.step()
    sim.material("glue", density=500.0)
    sim.contact("glue", "m", friction=0.3, cohesion=5.0)
    sim.add(cd.Disk(0.05), material="glue", position=(0.15, 2.0))
    assert_same(derived(sim), derived(fresh(sim)))
    assert not sim.contact_set.searches[0].all_diagonal


def test_blocks_of_the_scene_are_all_that_came():
    sim = started("disks", 4)
    sim.add(cd.Disk(0.1), material="m", position=(0.0, 5.0))
    with pytest.raises(cd.InputError):
        sim.add_many([0.1], material="m", position=[(np.nan, 5.0)])
    sim.add_many([0.1, 0.05], material="m", position=[(0.0, 6.0), (0.0, 7.0)])
    assert sum(len(block.bodies.mass) for block in sim.scene.blocks) == sim.scene.count == len(sim.rows) == 8


# ---- pours -----------------------------------------------------------------------------------------------------------


def pouring(count=40, **options):
    scene = cd.Scene(gravity=(0.0, 0.0, -981.0))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    pour = packings.Pour(scene, material="m", sizes=(0.25, 0.5), rate=500.0, count=count, radius=0.6, seed=3)
    return cd.Simulation(scene, time_step=5e-4, before_step=[pour], on_failure="ignore", **options)


def test_a_pour_goes_on_from_its_file_with_the_same_bits(monkeypatch, tmp_path):
    """Also where its file was written between two grains, and bodies were sorted before."""
    monkeypatch.setattr(simulation, "SORT_FROM", 2)
    monkeypatch.setattr(simulation, "SORT_EVERY", 30)
    whole, part = pouring(), pouring(recorders=[cd.HDF5(tmp_path / "run.h5", every=10)])
    whole.run(until=0.1, progress=False)
    part.run(until=0.051, progress=False)
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    again.recorders = []
    again.run(until=0.1, progress=False)
    assert len(again.rows) == len(whole.rows) == 41
    assert_same(derived(again), derived(fresh(again)))
    for name in ("positions", "velocities", "spins", "rotations"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name), err_msg=name)


def test_lists_that_were_extended_find_what_new_ones_find():
    """The same bits whether lists are built anew after each grain or not."""
    kept, anew = pouring(), pouring()
    anew.before_step = [*anew.before_step, lambda sim: setattr(sim.contact_set.near, "lists", None)]
    for _ in range(180):
        kept.step()
        anew.step()
    assert kept.rows.tobytes() == anew.rows.tobytes() and kept.report.contacts > 20
