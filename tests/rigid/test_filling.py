"""Gases, compressions, walls under pressure, tables and measures."""

import csv
import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis, loads, packings

pytestmark = pytest.mark.usefixtures("watched")


def filled(d=2, count=60, fraction=0.3, friction=0.0, **cell):
    cell = cd.Cell(np.ones(d), **cell)
    gas = packings.random(cell, packings.Sieve.two(1.0, 1.4), fraction, count=count, seed=1)
    scene = cd.Scene(gravity=np.zeros(d), cell=cell)
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=friction)
    scene.add_many(gas.radii, material="m", position=gas.positions)
    return gas, scene


@pytest.mark.parametrize("d", [2, 3])
def test_a_gas_fills_the_asked_fraction_and_nothing_touches(d):
    vectors = np.eye(d) + 0.2 * np.triu(np.ones((d, d)), 1).T
    cell = cd.Cell(vectors, periodic=(True,) * (d - 1) + (False,))
    gas = packings.random(cell, packings.Sieve.log_normal(1.0, 0.2), 0.25, count=80, seed=3)
    unit = math.pi if d == 2 else 4 / 3 * math.pi
    assert gas.fraction == pytest.approx(0.25) and unit * (gas.radii**d).sum() / cell.volume == pytest.approx(0.25)
    apart = gas.positions[:, None] - gas.positions[None]
    shares = apart @ np.linalg.inv(vectors)
    shares[..., :-1] -= np.rint(shares[..., :-1])
    away = np.linalg.norm(shares @ vectors, axis=2) + 10 * np.eye(80)
    assert (away > gas.radii[:, None] + gas.radii[None]).all()
    shares = gas.positions @ np.linalg.inv(vectors)
    assert shares.min() > 0 and shares.max() < 1
    many = packings.random(cell, packings.Sieve.by_volume(0.05, 0.1), 0.2, seed=3)
    assert 0.2 <= many.fraction < 0.22 and many.radii.max() <= 0.05


def test_a_compressed_packing_is_isostatic_and_measured_alike():
    _, scene = filled()
    sim = cd.Simulation(scene, time_step=5e-4, tolerance=1e-5, penetration="anticipate", on_failure="ignore")
    found = packings.compress(sim, 100.0, longest=3.0)
    frame = sim.frame()
    assert found and "still" in found.reason and found.volume == sim.cell.volume
    assert np.diag(found.stress) == pytest.approx(100.0, abs=1.0)
    bones = analysis.backbone(frame)
    carrying = round((1 - bones.rattlers) * 60)
    # N' bodies that carry, two forces each, two free strains: 2 N' - 2 + 2 forces are needed, and no more possible.
    assert abs(bones.contacts.sum() - 2 * carrying) <= 1 and bones.coordination == pytest.approx(4.0, abs=0.05)
    assert 0.8 < analysis.solid_fraction(frame) < 0.87
    assert analysis.cell_stress(frame) == pytest.approx(sim.cell.stress, abs=1e-3)
    spread = analysis.force_distribution(frame)
    assert 0.5 < spread.beta < 5 and 0 < spread.weak < 1 and spread.beta_error > 0
    sim.cell.impose(rate=[[0, 0.05], [0, 0]], stress={"yy": 100.0}, carry=True)
    flow = analysis.profile(sim.frame(), width=0.05)
    middle = slice(20, 80)
    # beyond what the compression has left: grains that carry nothing may move
    carried = flow.velocity[middle, 0] - analysis.profile(frame, width=0.05).velocity[middle, 0]
    assert np.polyfit(flow.places[middle], carried, 1)[0] == pytest.approx(0.05, rel=0.05)
    assert flow.density.mean() == pytest.approx(analysis.solid_fraction(sim.frame()), rel=0.02)  # density 1
    assert analysis.inertial_number(sim.frame(), pressure=100.0) > 0
    for _ in range(20):
        sim.step()
    assert sim.cell.rate[0, 1] == 0.05 and np.isnan(sim.cell.asked[0, 0])
    assert analysis.granular_temperature(sim.frame()) < 1e-2


def pressed(tmp_path, name):
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=10.0)
    scene.contact("m", "m", friction=0.0)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    left = scene.add(cd.HalfPlane(normal=(1, 0)), material="m", fixed=True)
    right = scene.add(cd.HalfPlane(normal=(-1, 0)), material="m", position=(0.5, 0), fixed=True)
    place = [(0.0625 + 0.125 * i, 0.07 + 0.14 * j) for i in range(4) for j in range(3)]
    scene.add_many(0.06, material="m", position=place)
    lid = scene.add(cd.HalfPlane(normal=(0, -1)), material="m", position=(0, 0.45), free="y")
    recorders = [cd.HDF5(tmp_path / f"{name}.h5", every=100), cd.Table(tmp_path / f"{name}.csv", every=50)]
    sim = cd.Simulation(scene, time_step=1e-3, recorders=recorders, on_failure="ignore")
    sim.before_step.append(cd.Pressure(lid, loads.ramp([20.0], [60.0], 0.0, 0.5), area=(left, right)))
    return sim, lid


def test_a_wall_keeps_its_pressure_and_goes_on_from_a_file(tmp_path):
    sim, lid = pressed(tmp_path, "whole")
    sim.run(until=1.0, progress=False)
    servo = sim.before_step[0]
    assert servo.area == pytest.approx(0.5) and servo.asked == 60.0 and servo.measured == pytest.approx(60.0, rel=0.02)
    assert sim.body(lid).mass == pytest.approx(12 * sim.body(3).mass)
    with (tmp_path / "whole.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 21 and float(rows[-1][f"pressure_{lid}"]) == pytest.approx(60.0, rel=0.02)
    assert float(rows[5]["time"]) == pytest.approx(0.25)
    other, _ = pressed(tmp_path, "half")
    other.run(until=0.5, progress=False)
    with pytest.warns(UserWarning, match="Table"):
        again = cd.Simulation.from_file(tmp_path / "half.h5")
        again.run(until=1.0, progress=False)
    assert (again.positions == sim.positions).all()


def test_wrong_pressures_gases_and_tables_are_told(tmp_path):
    sim, _ = pressed(tmp_path, "a")
    for wall, options, words in (
        (0, {}, "held along"), (3, {}, "no plane"), (99, {}, "not there"), (15, {"area": (3, 4)}, "two planes"),
    ):  # fmt: skip
        sim.before_step = [cd.Pressure(wall, 1.0, **options)]
        with pytest.raises(cd.InputError, match=words):
            sim.step()
    for wrong in ({"wall": -1, "pressure": 1.0}, {"wall": 1, "pressure": (1.0, 2.0)}):
        with pytest.raises(cd.InputError):
            cd.Pressure(**wrong)
    with pytest.raises(cd.InputError, match="positive"):
        cd.Pressure(1, 1.0, area=-1.0)
    cell = cd.Cell((1.0, 1.0))
    with pytest.raises(cd.InputError, match="balls find no"):
        packings.random(cell, packings.Sieve.uniform(0.1, 0.2), 0.8)
    with pytest.raises(cd.InputError, match="twice as wide"):
        packings.random(cell, packings.Sieve.uniform(0.6, 0.6), 0.4)
    with pytest.raises(cd.InputError, match="without a cell"):
        packings.compress(sim, 1.0)
    (tmp_path / "there.csv").write_text("")
    with pytest.raises(cd.InputError, match="already"):
        cd.Table(tmp_path / "there.csv").begin(pressed(tmp_path, "b")[0])
    with pytest.raises(cd.InputError, match="periodic cell"):
        analysis.cell_stress(sim.frame())


def few_in_a_cell(**options):
    cell = cd.Cell((1.0, 1.0))
    gas = packings.random(cell, packings.Sieve.two(1, 1.4), 0.4, count=12, seed=1)
    scene = cd.Scene(gravity=(0, 0), cell=cell)
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.3)
    scene.add_many(gas.radii, material="m", position=gas.positions)
    return cd.Simulation(scene, time_step=1e-3, penetration="anticipate", **options)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stress": -5.0}, "stress=-5.0; give a positive pressure"),
        ({"stress": {"xy": 1.0}}, "along some of the axes"),
        ({"stress": 5.0, "longest": -1}, "longest=-1; give a positive number"),
        ({"stress": 5.0, "quiet": "low"}, "quiet='low'"),
        ({"stress": 5.0, "rate": 600.0}, "rate=600.0; give a number above 0, below half a cell in a step"),
    ],
)
def test_a_compression_that_cannot_be_is_refused_before_it_begins(given, words):
    sim = few_in_a_cell()
    with pytest.raises(cd.InputError, match=words):
        packings.compress(sim, **given)
    assert sim.steps == 0 and np.isnan(sim.cell.asked).all()


def test_a_cell_that_closes_in_slowly_first_does_so_along_the_asked_axes():
    """Up to the longest time, where contacts carry nothing before it."""
    sim = few_in_a_cell()
    found = packings.compress(sim, {"xx": 100.0}, rate=2.0, longest=0.05)
    assert not found and sim.cell.strain[1] == pytest.approx(0.0)
    assert sim.cell.strain[0, 0] == pytest.approx(-0.1, rel=0.1)
    sim = few_in_a_cell()
    assert packings.compress(sim, 100.0, rate=2.0, quiet=1e-4, longest=5.0)
    assert sim.watch.overlap < 0.05 and np.diag(sim.cell.stress) == pytest.approx(100.0, abs=1.0)


def test_a_compression_says_what_is_missing():
    found = packings.compress(few_in_a_cell(), 100.0, longest=0.01)
    assert not found and "still is" in found.reason and "of what is asked" in found.reason


def test_wrong_sizes_and_columns_are_told(tmp_path):
    cell, sim = cd.Cell((1.0, 1.0)), few_in_a_cell()
    with pytest.raises(cd.InputError, match="got sizes"):
        packings.random(cell, "x", 0.3)
    with pytest.raises(cd.InputError, match="above 0"):
        packings.random(cell, [0.1], 0)
    with pytest.raises(cd.InputError, match=r"count=2\.5"):
        packings.random(cell, [0.1], 0.3, count=2.5)
    for columns, words in (
        ({"time": lambda simulation: 1.0}, "which every table has"),
        ({"own": lambda simulation: "a"}, "must return a number"),
    ):
        with pytest.raises(cd.InputError, match=words):
            cd.Table(tmp_path / "run.csv", columns=columns).begin(sim)
    with pytest.raises(cd.InputError, match="dict of names"):
        cd.Table(tmp_path / "run.csv", columns=["a"])


def test_axes_of_a_profile_have_letters():
    frame = few_in_a_cell().frame()
    by_letter, by_number = analysis.profile(frame, axis="x", width=0.1), analysis.profile(frame, axis=0, width=0.1)
    assert (by_letter.density == by_number.density).all()
    for wrong in ("z", 2, "xy", None):
        with pytest.raises(cd.InputError, match="give one of x, y"):
            analysis.profile(frame, axis=wrong)
