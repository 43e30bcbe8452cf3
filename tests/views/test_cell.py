"""Runs in a periodic cell, as all views show them: with the cell, every body inside it, forces between neighbours."""

import numpy as np
import pytest
from runs import cell, unbox

import contactdynamics as cd
from command import cdyn
from contactdynamics.views import film, packing, page


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("cell") / "cell.h5"
    cell(path)
    return path


def test_the_page_gets_bodies_inside_and_the_cell(run):
    with cd.open(run) as recording:
        columns, about = unbox(page.Pieces(recording).group_box(0))
        said = about["frames"][0]["cell"]
        assert said == {"vectors": [1, 0, 0, 0, 1, 0, 0, 0, 1], "periodic": [True, False, False]}
        place = columns["0.x"] * packing.shapes_of(recording.shapes()).quantum
        assert place[1:] == pytest.approx([0.9, 0.1, 0.0, 0.7], abs=1e-3) or place[3] == pytest.approx(1.0, abs=1e-3)


def test_a_film_shows_the_cell(run):
    with cd.open(run) as recording:
        painter = film.Painter(recording, range(len(recording)), size=(320, 320), forces=True, colour="birth")
        assert painter.low[0] >= -0.11 and painter.high[0] <= 1.11  # not from -3 to 3
        frame = recording[len(recording) - 1]
        picture = painter.picture(frame).astype(int)

        def at(x, y):
            i, j = np.round(painter._placed(np.array([[x, y, 0.0]]))[0, :2] / film.FINER).astype(int)
            return picture[j - 1 : j + 2, i - 1 : i + 2].reshape(-1, 3)

        assert at(0.5, 1.0).mean(axis=1).min() < 190  # the upper edge of the cell
        empty = at(0.5, 0.1)
        assert empty.min() > 240  # no force goes through the middle of the cell from one side to the other
        assert np.ptp(at(0.9, 0.12), axis=1).max() > 30  # a grain, or the force in it


def test_others_read_the_cell(run, tmp_path):
    pytest.importorskip("vtk", reason="vtk is not installed")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

    assert cdyn("export", run, "--vtk", tmp_path / "vtk", "--ovito", tmp_path / "run.xyz") == 0
    read = {}
    for name in ("cell", "bodies", "contacts"):
        reader = vtkXMLPolyDataReader()
        reader.SetFileName(str(sorted((tmp_path / "vtk" / "frames").glob(f"{name}_*.vtp"))[-1]))
        reader.Update()
        read[name] = vtk_to_numpy(reader.GetOutput().GetPoints().GetData())
    assert len(read["cell"]) == 8 and read["cell"].max(axis=0) == pytest.approx([1, 1, 0])
    assert read["bodies"][1:, 0].min() >= 0 and read["bodies"][1:, 0].max() < 1
    for point in read["contacts"]:  # each lies on one of the disks that are shown
        away = np.sqrt(((read["bodies"][1:] - point) ** 2).sum(axis=1))
        assert min(abs(away - [0.1, 0.1, 0.1, 0.05])) < 1e-3
    ase_io = pytest.importorskip("ase.io", reason="ase is not installed")
    atoms = ase_io.read(tmp_path / "run.xyz", index="-1", format="extxyz")
    assert atoms.pbc.tolist() == [True, False, False] and atoms.cell.lengths()[:2] == pytest.approx([1, 1])
    heap = atoms.get_distances(2, [0, 1], mic=True)
    assert heap == pytest.approx([0.2, 0.2], abs=1e-3)


def test_plots_are_of_the_cell(run, tmp_path):
    with cd.open(run) as recording:
        from contactdynamics.views.plots import _scene

        ax = _scene(recording[-1])
        assert ax.get_xlim()[0] > -0.3 and ax.get_xlim()[1] < 1.3
