"""One short line for every object a user prints, the picture in notebooks, and forces drawn where they act."""

import base64
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

import contactdynamics as cd
from contactdynamics import analysis as an


@pytest.fixture(scope="module")
def pile(tmp_path_factory):
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("<b>wood</b>", density=600.0)
    scene.contact("<b>wood</b>", "<b>wood</b>", friction=0.4)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="<b>wood</b>", fixed=True)
    for k in range(3):
        scene.add(cd.Disk(0.1), material="<b>wood</b>", position=(0.2 * k, 0.1))
    for k in range(2):
        scene.add(cd.Polygon.regular(6, 0.1), material="<b>wood</b>", position=(0.1 + 0.2 * k, 0.35))
    path = tmp_path_factory.mktemp("run") / "a<b>.h5"
    return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path)]).run(until=0.3, progress=False), path


def bounce():
    floor = cd.Constraint(lambda t, q: q[0])
    system = cd.System(inertia=[1.0], force=lambda t, q, u: (-10.0,), constraints=[floor])
    return cd.integrate(system, q=(1.0,), u=(0.0,), step=0.01, until=1.0)


def results(frame):
    box = an.Box((-1, 0), (1, 1))
    return [
        an.balance(frame), an.coordination(frame), an.directions(frame), an.fabric(frame), an.force_chains(frame),
        an.ground_pressure(frame, width=0.1), an.interior(frame, margin=0.01), an.mobilised_friction(frame),
        an.normal_forces(frame), an.slope(frame), an.stress(frame, box), an.strip(frame, ((-1, 0.1), (1, 0.1))),
        an.surface(frame), an.thrust_line(frame, [1, 4]),
    ]  # fmt: skip


def test_one_short_line(pile):
    sim, path = pile
    with cd.open(path) as recording:
        things = [sim, sim.scene, recording, bounce(), sim.frame(), sim.contacts, sim.energy, sim.is_equilibrium()]
        for thing in [*things, *results(sim.frame())]:
            line = repr(thing)
            assert "\n" not in line and 10 < len(line) <= 160
            assert type(thing).__name__ in line and "np.float64" not in line and "object at" not in line
    assert "6 bodies" in repr(sim.scene) and "t = 0.3" in repr(sim) and "300 steps" in repr(sim)
    assert repr(recording).startswith("Recording a<b>.h5")  # also of a file that is closed
    assert repr(bounce()) == "Motion of 1 freedom and 1 constraint: 100 steps of 0.01 s, t = 0 to 1"
    assert repr(cd.Scene(gravity=(0, 0, -1))).startswith("Scene in 3D: 0 bodies")


def test_notebooks_get_the_line_and_the_picture(pile):
    sim, path = pile
    before = plt.get_fignums()
    with cd.open(path) as recording:
        drawn = [r for r in results(sim.frame()) if hasattr(r, "plot")]
        assert len(drawn) == 7
        for thing in [sim, sim.scene, recording, bounce(), *drawn]:
            page = thing._repr_html_()
            found = re.search(r'src="data:image/png;base64,([^"]+)"', page)
            assert found and base64.b64decode(found[1]).startswith(b"\x89PNG")
            assert page.startswith("<pre>") and "<b>" not in page  # names are escaped
    assert plt.get_fignums() == before


def test_a_picture_that_fails_leaves_the_line(pile, monkeypatch):
    sim, path = pile
    with cd.open(path) as recording:
        pass
    assert recording._repr_html_() == "<pre>" + repr(recording).replace("<", "&lt;").replace(">", "&gt;") + "</pre>"

    def fails(*_, **__):
        plt.figure()
        raise RuntimeError("no ink")

    monkeypatch.setattr(cd.Simulation, "plot", fails)
    before = plt.get_fignums()
    assert sim._repr_html_() == f"<pre>{sim!r}</pre>" and plt.get_fignums() == before
    assert cd.Scene(gravity=(0, -1))._repr_html_().startswith("<pre>Scene")  # nothing to draw


# ---- forces ----------------------------------------------------------------------------------------------------------


def drawn_forces(ax):
    """Segments of the forces, and the force that the bar shows per length."""
    red = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_zorder() == 3]
    bar = next(a for a in ax.artists if isinstance(a, AnchoredSizeBar))
    force = float(bar.txt_label.get_text().removeprefix("force "))
    return np.array(red[0].get_segments()), force / bar.size_bar.get_children()[0].get_width()


def test_forces_are_drawn_at_the_contact_points_with_a_scale(pile):
    sim, _ = pile
    frame = sim.frame()
    lines, scale = drawn_forces(sim.plot())
    forces = an.contact_forces(frame)
    order = np.argsort(np.sqrt((forces**2).sum(axis=1)))
    assert lines.mean(axis=1) == pytest.approx(frame.contacts.point[order], abs=1e-12)
    assert scale * (lines[:, 1] - lines[:, 0]) == pytest.approx(forces[order], rel=1e-9, abs=1e-9)
    plt.close("all")


def test_forces_in_space_are_seen_from_where_the_picture_is():
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=600.0)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.Plane(normal=(0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.1))
    sim = cd.Simulation(scene, time_step=1e-3).run(until=0.05, progress=False)
    weight = sim.frame().masses[1] * 9.81
    for elevation in (0.0, 60.0):  # a vertical force is foreshortened
        lines, scale = drawn_forces(sim.plot(elevation=elevation))
        along = scale * np.abs(lines[0, 1] - lines[0, 0])
        assert along == pytest.approx([0, weight * np.cos(np.radians(elevation))], abs=1e-3 * weight)
    plt.close("all")
