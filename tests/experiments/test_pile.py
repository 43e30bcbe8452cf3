"""The pile experiment as the command line runs it: a handful of grains, its files, its redrawing and its resumption."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.experiments import pile, runner
from contactdynamics.files.recorders import HDF5

# Of twelve piles with other grains one still had a grain that rolled after 0.6 s, and none after 0.9 s.
SETTINGS = {"grains": "60", "rate": "400", "step": "5e-4", "relaxation": "1.2", "frame_every": "0.05"}
FIGURES = {"figure", "layers", "cuts", "arching", "ground", "stress", "chains", "statistics", "growth"}
KEYS = {
    "grains", "contacts", "slope_degrees", "height_cm", "volume_mass", "central_pressure_dPa",
    "hydrostatic_pressure_dPa", "pressure_profile", "weight_balance", "reciprocity_error", "wall_seconds",
    "seconds_per_step_at_end", "sweeps_per_step", "largest_penetration",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("pile")
    experiment = runner.load("pile")
    summary, verdict = runner.run(experiment, runner.parameters_of(experiment, SETTINGS), out)
    return out, summary, verdict


def test_a_small_pile_is_made_measured_and_drawn(run):
    out, summary, verdict = run
    assert verdict.passed
    assert KEYS <= set(summary["results"])
    assert {path.stem for path in out.glob("*.png")} == FIGURES
    assert json.loads((out / "summary.json").read_text())["results"]["grains"] == 60
    assert summary["results"]["weight_balance"] == pytest.approx(1, abs=1e-3)
    assert not any("slope" in row.quantity for row in verdict.rows)  # 60 grains are no bank


def test_it_is_drawn_again_from_its_file_and_from_an_extract(run, tmp_path):
    out, summary, _ = run
    pile.export(out / "run.h5", tmp_path / "small.h5", commit="abc")
    assert (tmp_path / "small.h5").stat().st_size < (out / "run.h5").stat().st_size / 2
    experiment = runner.load("pile")
    for source, same in ((out / "run.h5", 1e-12), (tmp_path / "small.h5", 1e-3)):
        parameters = runner.parameters_of(experiment, {"from_data": str(source)})
        verdict = pile.check(pile.build(parameters), parameters)
        assert verdict.passed
        for key in ("slope_degrees", "height_cm", "volume_mass", "central_pressure_dPa", "wall_seconds"):
            assert verdict.results[key] == pytest.approx(summary["results"][key], rel=same)
    figures = pile.figure(pile.build(parameters), parameters)
    assert set(figures) == FIGURES
    plt.close("all")


def test_wrong_files_are_told(run, tmp_path):
    experiment = runner.load("pile")
    with pytest.raises(cd.InputError, match="stored pile"):
        pile.build(runner.parameters_of(experiment, {"from_data": str(tmp_path / "none.h5")}))
    scene = cd.Scene(gravity=(0, 0, -1))
    scene.material("m", density=1.0)
    scene.add(cd.Sphere(1.0), material="m", position=(0, 0, 0))
    cd.Simulation(scene, time_step=0.1, recorders=[HDF5(tmp_path / "ball.h5")]).run(until=0.2, progress=False)
    parameters = runner.parameters_of(experiment, {"from_data": str(tmp_path / "ball.h5")})
    with pytest.raises(cd.InputError, match="no run of the pile"):
        pile.check(pile.build(parameters), parameters)


def test_a_resumed_pile_has_the_same_bits(run, tmp_path):
    out, _, _ = run
    experiment = runner.load("pile")
    parameters = runner.parameters_of(experiment, SETTINGS)
    cut = pile.build(parameters)
    cut.about |= {"experiment": "pile", "quick": False, "parameters": runner.plain(parameters)}
    cut.recorders.append(HDF5(tmp_path / "run.h5", every=0.05))
    cut.run(until=0.08, progress=False)
    whole = runner.resume(tmp_path / "run.h5")
    with cd.open(out / "run.h5") as recording:
        assert recording[-1].time == pytest.approx(1.35)
        assert np.array_equal(recording[-1].positions, whole.positions)
        assert np.array_equal(recording[-1].velocities, whole.velocities)


def test_the_ground_is_wide_enough_and_the_layer_scales():
    parameters = dict(pile.PARAMETERS)
    assert pile.duration(parameters) == 72
    assert 13 < pile.ground_radius(parameters) < 18  # the foot of the papers' pile is near 11


def test_a_handful_of_grains_has_no_inside(tmp_path):
    """Fifteen grains lie side by side: no volume mass can be measured, and all the rest is there."""
    experiment = runner.load("pile")
    settings = {"grains": "15", "relaxation": "0.3", "frame_every": "0.05"}
    summary, _ = runner.run(experiment, runner.parameters_of(experiment, settings), tmp_path)
    assert summary["results"]["volume_mass"] is None and summary["results"]["height_cm"] > 0
    assert {path.stem for path in tmp_path.glob("*.png")} == FIGURES
