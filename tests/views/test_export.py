"""Files for other programs: they read what the run has. Checked by those programs where they are installed."""

import csv
import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

import contactdynamics as cd
from command import cdyn
from contactdynamics.views import export, measures, vtk


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run in 2D (disks, polygons, one not convex, a half-plane), one in 3D (balls, a cluster, a plane, removal)."""
    folder = tmp_path_factory.mktemp("runs")
    flat = cd.Scene(gravity=(0, -9.81))
    flat.material('=wood<&>,"x"', density=600)
    flat.contact('=wood<&>,"x"', '=wood<&>,"x"', friction=0.4)
    name = '=wood<&>,"x"'
    flat.add(cd.HalfPlane(normal=(0, 1)), material=name, fixed=True)
    for k in range(4):
        flat.add(cd.Disk(0.1 + 0.01 * k), material=name, position=(0.3 * k, 0.2), velocity=(0.1 * k, 0), spin=2.0)
    flat.add(cd.Rectangle(0.3, 0.2), material=name, position=(-0.5, 0.11), rotation=0.1)
    ell = [(0, 0), (0.3, 0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.3), (0, 0.3)]
    with pytest.warns(UserWarning, match="not convex"):
        shape = cd.Polygon(ell)
    flat.add(shape, material=name, position=(-1.0, 0.3))
    cd.Simulation(flat, time_step=1e-3, recorders=[cd.HDF5(folder / "flat.h5", every=20)]).run(
        until=0.2, progress=False
    )

    space = cd.Scene(gravity=(0, 0, -9.81))
    space.material("m", density=1000.0)
    space.material("n", density=2000.0)
    space.contact("m", "m", friction=0.3)
    space.contact("m", "n", friction=0.3)
    space.contact("n", "n", friction=0.3)
    space.add(cd.Plane((0, 0.1, 1)), material="m", fixed=True)
    for k in range(5):
        space.add(cd.Sphere(0.1), material="mn"[k % 2], position=(0.25 * k, 0, 0.105), spin=(1, 2, 3))
    space.add(cd.Cluster([0.05, 0.04], [(0, 0, 0), (0.06, 0, 0)]), material="m", position=(0, 0.5, 0.1))
    sim = cd.Simulation(space, time_step=1e-3, recorders=[cd.HDF5(folder / "space.h5", every=20)])
    sim.before_step.append(lambda s: s.remove(2) if s.steps == 100 else None)
    sim.run(until=0.2, progress=False)
    return folder


def arrays_of(path):
    """A naive reader of the files that we write: name -> numbers, of the points and cells."""
    raw = path.read_bytes()
    head, data = raw.split(b'<AppendedData encoding="raw">\n_', 1)
    tree = ET.fromstring(head + b"</VTKFile>")
    types = {"Float64": "<f8", "Int64": "<i8"}
    out = {}
    for group in ("Points", "Verts", "Lines", "Polys", "PointData", "CellData"):
        for entry in tree.findall(f".//{group}/DataArray"):
            at = int(entry.get("offset"))
            blocks, _size, _last = struct.unpack_from("<3Q", data, at)
            sizes = struct.unpack_from(f"<{blocks}Q", data, at + 24)
            at += 24 + 8 * blocks
            whole = b""
            for size in sizes:
                whole += zlib.decompress(data[at : at + size])
                at += size
            numbers = np.frombuffer(whole, types[entry.get("type")])
            wide = int(entry.get("NumberOfComponents") or 1)
            out[entry.get("Name")] = numbers.reshape(-1, wide) if wide > 1 else numbers
    return out


def series(folder, name):
    tree = ET.parse(folder / f"{name}.pvd")
    return [(float(e.get("timestep")), folder / e.get("file")) for e in tree.iter("DataSet")]


@pytest.mark.parametrize("name", ["flat", "space"])
def test_vtk_has_the_numbers_of_the_frames(runs, name, tmp_path):
    assert cdyn("export", runs / f"{name}.h5", "--vtk", tmp_path / "out") == 0
    with cd.open(runs / f"{name}.h5") as recording:
        entries = series(tmp_path / "out", "bodies")
        assert [time for time, _ in entries] == recording.times.tolist()
        for (_, file), frame in zip(entries, recording, strict=True):
            got, d = arrays_of(file), frame.dimension
            assert np.array_equal(got["number"], frame.identities)
            assert np.array_equal(got["Points"][:, :d], frame.positions)
            assert np.array_equal(got["velocity"][:, :d], frame.velocities)
            assert np.array_equal(got["mass"], frame.masses)
        for (_, file), frame in zip(series(tmp_path / "out", "contacts"), recording, strict=True):
            got, c = arrays_of(file), frame.contacts
            assert np.array_equal(got["bodies"].reshape(-1, 2), c.bodies) and np.array_equal(got["gap"], c.gap)
            for k in range(len(c.gap)):
                force = sum(c.impulse[k, i] * c.frame[k, i] for i in range(d)) / frame.time_step
                assert got["force"].reshape(-1, 3)[k, :d] == pytest.approx(force, rel=1e-12, abs=1e-12)


def test_vtk_meshes_have_the_area_of_the_polygons(runs, tmp_path):
    cdyn("export", runs / "flat.h5", "--vtk", tmp_path / "out", "--every", "1000")
    entries = series(tmp_path / "out", "shapes")
    assert len(entries) == 2  # the first frame and the last
    got = arrays_of(entries[-1][1])
    areas, begin = {}, 0
    for end, number in zip(got["offsets"], got["number"], strict=True):
        x, y, _ = got["Points"][got["connectivity"][begin:end]].T
        areas[number] = areas.get(number, 0.0) + 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))
        begin = end
    assert areas == pytest.approx({5: 0.06, 6: 0.05}, rel=1e-9)


def test_volumes_are_those_of_mass_over_density(runs):
    with cd.open(runs / "flat.h5") as recording:
        frame = recording[-1]
        solid = measures.measure(frame).volume[1:]
        assert solid == pytest.approx(frame.masses[1:] / 600, rel=1e-9)


def test_a_ball_at_rest_has_the_pressure_of_its_weight(tmp_path):
    # One contact below: the moment is -F l with F = m g up and l = r down, so that its trace is m g r.
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.1))
    sim = cd.Simulation(scene, time_step=1e-3).run(until=0.05, progress=False)
    m = measures.measure(sim.frame())
    weight, volume = 9.81 * 1000 * 4 / 3 * np.pi * 1e-3, 4 / 3 * np.pi * 1e-3
    assert m.pressure == pytest.approx([0, weight * 0.1 / volume / 3], rel=1e-6)
    assert m.force == pytest.approx([weight, weight], rel=1e-6) and m.contacts.tolist() == [1, 1]


def test_the_vtk_library_reads_it(runs, tmp_path):
    pytest.importorskip("vtk", reason="vtk is not installed")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

    for name in ("flat", "space"):
        folder = tmp_path / name
        cdyn("export", runs / f"{name}.h5", "--vtk", folder)
        for file in sorted(folder.glob("frames/*.vtp")):
            reader, ours = vtkXMLPolyDataReader(), arrays_of(file)
            reader.SetFileName(str(file))
            reader.Update()
            data = reader.GetOutput()
            assert reader.GetErrorCode() == 0
            assert data.GetNumberOfPoints() == len(ours["Points"])
            if data.GetNumberOfPoints():
                assert np.array_equal(vtk_to_numpy(data.GetPoints().GetData()), ours["Points"])
            if "offsets" in ours:
                assert data.GetNumberOfCells() == len(ours["offsets"])
            for side in (data.GetPointData(), data.GetCellData()):
                for k in range(side.GetNumberOfArrays()):
                    read = vtk_to_numpy(side.GetArray(k))
                    assert np.array_equal(read.reshape(-1), ours[side.GetArrayName(k)].reshape(-1))


def test_large_arrays_go_in_several_blocks(rng):
    array = rng.normal(size=(vtk.BLOCK // 8 + 10_000, 2))
    data = vtk.compressed(array)
    blocks, size, last = struct.unpack_from("<3Q", data)
    assert blocks == 3 and (blocks - 1) * size + last == array.nbytes


@pytest.mark.parametrize("name", ["flat", "space"])
def test_csv_gives_back_every_digit(runs, name, tmp_path):
    assert cdyn("export", runs / f"{name}.h5", "--csv", tmp_path / "out") == 0
    with cd.open(runs / f"{name}.h5") as recording:
        rows = list(csv.DictReader((tmp_path / "out" / "bodies.csv").read_text().splitlines()))
        axes = "xyz"[: recording[0].dimension]
        place = np.array([[float(row[f"position_{axis}"]) for axis in axes] for row in rows])
        assert np.array_equal(place, np.concatenate([frame.positions for frame in recording]))
        assert [int(row["number"]) for row in rows] == np.concatenate([f.identities for f in recording]).tolist()
        names = {row["material"] for row in rows}
        assert names == ({'\'=wood<&>,"x"'} if name == "flat" else {"m", "n"})  # no formula in a spreadsheet
        gaps = [
            float(row["gap"]) for row in csv.DictReader((tmp_path / "out" / "contacts.csv").read_text().splitlines())
        ]
        assert np.array_equal(gaps, np.concatenate([frame.contacts.gap for frame in recording]))
        log = list(csv.DictReader((tmp_path / "out" / "log.csv").read_text().splitlines()))
        assert np.array_equal([float(row["residual"]) for row in log], recording.log["residual"])


def test_ase_reads_the_balls(runs, tmp_path):
    ase_io = pytest.importorskip("ase.io", reason="ase is not installed")
    assert cdyn("export", runs / "space.h5", "--ovito", tmp_path / "run.xyz") == 0
    read = ase_io.read(tmp_path / "run.xyz", index=":", format="extxyz")
    with cd.open(runs / "space.h5") as recording:
        assert len(read) == len(recording)
        for atoms, frame in zip(read, recording, strict=True):
            assert atoms.info["Time"] == frame.time
            assert atoms.positions == pytest.approx(frame.ball_centres, rel=1e-8, abs=1e-8)
            assert atoms.arrays["radius"] == pytest.approx(frame.ball_radii, rel=1e-8)
            assert np.array_equal(atoms.arrays["molecule"], frame.identities[frame.ball_bodies])
            assert len(set(atoms.symbols)) == 2


def test_bodies_with_corners_are_told_to_be_left_out(runs, tmp_path, capsys):
    assert cdyn("export", runs / "flat.h5", "--ovito", tmp_path / "run.xyz") == 0
    assert "2 bodies with corners are left out" in capsys.readouterr().err
    assert (tmp_path / "run.xyz").read_text().splitlines()[0] == "4"


def test_nothing_is_overwritten_unasked(runs, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for options in (("--vtk", tmp_path / "full"), ("--vtk", tmp_path / "full", "--force"), ()):
        assert cdyn("export", runs / "flat.h5", *options) == 2
        said = capsys.readouterr().err
        assert said.startswith("cdyn: ") and said.count("\n") == 1
    assert (tmp_path / "full" / "letter.txt").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
    assert cdyn("export", runs / "flat.h5", "--csv", tmp_path / "c") == 0
    assert cdyn("export", runs / "flat.h5", "--csv", tmp_path / "c") == 2
    assert cdyn("export", runs / "flat.h5", "--csv", tmp_path / "c", "--force", "--every", "5") == 0
    for every in ("0", "-1"):
        assert cdyn("export", runs / "flat.h5", "--csv", tmp_path / "d", "--every", every) == 2
    assert cdyn("export", tmp_path / "absent.h5", "--csv", tmp_path / "d") == 2
    assert cdyn("export", runs / "flat.h5", "--ovito", tmp_path / "no" / "x.xyz") == 2


def test_an_export_that_fails_leaves_nothing(runs, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vtk, "pieces", fails)
    with cd.open(runs / "flat.h5") as recording, pytest.raises(OSError, match="No space"):
        export.export_vtk(recording, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
