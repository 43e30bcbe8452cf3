"""The parts of the page: what is packed comes out again within its rounding; the server keeps to itself."""

import hashlib
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import NAME, flat, unbox

import contactdynamics as cd
from command import cdyn
from contactdynamics.views import measures, packing, page
from contactdynamics.views.server import Server


@given(hnp.arrays(np.int32, st.integers(0, 50)), hnp.arrays(np.float32, st.integers(0, 50)))
def test_a_box_gives_back_what_was_put_in(whole, reals):
    out, about = unbox(packing.box({"a": whole, "b": reals, "c": whole % 7}, {"x": [1]}))
    assert np.array_equal(out["a"], whole) and np.array_equal(out["c"], whole % 7) and about == {"x": [1]}
    assert np.array_equal(out["b"].view(np.int32), reals.view(np.int32))


@given(hnp.arrays(float, st.integers(1, 30), elements=st.floats(-1e12, 1e12)))
def test_a_code_is_exact_to_half_a_percent(values):
    code, floor = packing.coded(values)
    back = np.sign(code) * floor * (2 ** (np.abs(code) / packing.STEPS) - 1)
    share = 2 ** (0.5 / packing.STEPS) - 1  # half a step, of the value above the floor
    assert (np.abs(back - values) <= share * (np.abs(values) + floor) * (1 + 1e-9)).all()


def opened(data, shapes):
    """The twin of what the page does with a group, one body at a time."""
    columns, about = unbox(data)
    last, frames = {}, []
    for k, said in enumerate(about["frames"]):
        slots = np.cumsum(columns[f"{k}.slot"])
        place = np.zeros((len(slots), 3))
        turn = np.zeros((len(slots), 4))
        row, d = 0, shapes.frame.dimension
        for j, slot in enumerate(slots):
            memory = last.setdefault(slot, np.zeros(7))
            for i in range(d):
                memory[i] += columns[f"{k}.{'xyz'[i]}"][j]
            if shapes.turned[slot]:
                for i in (0, 1, 2, 3) if d == 3 else (0, 3):
                    memory[3 + i] += columns[f"{k}.q{i}"][row]
                row += 1
            place[j], turn[j] = memory[:3] * shapes.quantum, memory[3:] / packing.TURN
        frames.append((said["time"], slots, place, turn))
    return frames


@pytest.mark.parametrize("name", ["flat", "space"])
def test_places_and_turns_are_exact_to_their_quantum(files, name):
    with cd.open(files / f"{name}.h5") as recording:
        pieces = page.Pieces(recording)
        assert pieces.groups == -(-len(recording) // packing.GROUP) > 1
        k = 0
        for g in range(pieces.groups):
            for time, slots, place, turn in opened(pieces.group_box(g), pieces.shapes):
                frame = recording[k]
                assert time == frame.time
                assert np.array_equal(pieces.shapes.frame.identities[slots], frame.identities)
                true = measures.in_space(frame.positions)
                assert np.abs(place - true).max() <= pieces.shapes.quantum * 0.5001
                shown = pieces.shapes.turned[slots]
                q = measures.quaternions_of(frame)[shown]
                q *= np.sign(np.einsum("ij,ij->i", q, turn[shown]))[:, None]
                assert np.abs(turn[shown] - q).max() <= 0.5001 / packing.TURN
                k += 1
        assert k == len(recording)


def test_shapes_stand_at_the_origin_as_they_were_stated(files):
    with cd.open(files / "flat.h5") as recording:
        shapes = packing.shapes_of(recording.shapes())
        corners = shapes.frame.polygon_corners
        assert np.sort(np.abs(corners), axis=0) == pytest.approx(np.array([[0.2, 0.15]] * 4))
        assert shapes.plane.tolist() == [True] + 7 * [False] and shapes.simple.tolist() == [False] + 6 * [True] + [
            False
        ]
        assert shapes.radius[1:] == pytest.approx([0.1] * 6 + [0.25])


def test_contacts_of_the_page_push_with_the_forces_of_the_frame(files):
    with cd.open(files / "flat.h5") as recording:
        pieces = page.Pieces(recording)
        last = len(recording) - 1
        columns, about = unbox(pieces.group_box(pieces.groups - 1))
        k = last % packing.GROUP
        frame = recording[last]
        forces = np.sort(frame.contacts.impulse[frame.contacts.impulse.any(axis=1), 0] / frame.time_step)
        code = columns[f"{k}.force"]
        back = np.sign(code) * about["frames"][k]["force"] * (2 ** (np.abs(code) / packing.STEPS) - 1)
        assert np.sort(back) == pytest.approx(forces, rel=6e-3)
        assert len(columns[f"{k}.u"]) == 2  # the corners of the rectangle; contacts of disks are derived


def test_a_page_is_one_file_that_asks_for_nothing(files, tmp_path):
    assert cdyn("export", files / "flat.h5", "--html", tmp_path / "page.html") == 0
    text = (tmp_path / "page.html").read_text()
    assert NAME not in text and "<img" not in text.split("<script>")[0]
    for element in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text.split("<script>")[0] + text[-2000:]):
        assert "src=" not in element and "href=" not in element
    index = json.loads(re.search(r'id="index">(.*?)</script>', text)[1])
    assert index["materials"] == [NAME] and len(index["times"]) == 21
    assert cdyn("export", files / "flat.h5", "--html", tmp_path / "page.html") == 2  # not overwritten unasked


def test_the_program_is_made_from_its_sources():
    sources = sorted((Path(__file__).parents[2] / "viewer" / "src").glob("*.js"), key=lambda path: path.name)
    assert len(sources) >= 5
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    assert f"made from viewer/src {digest};" in page.program()[:200], "run `make viewer`"


def test_show_in_a_notebook(files, tmp_path):
    sim = flat(tmp_path / "own.h5", until=0.02)
    shown = sim.show()
    assert shown._repr_html_().startswith("<iframe sandbox=") and "\n" not in repr(shown)
    assert shown.save(tmp_path / "now.html").read_text().startswith("<!doctype html>")
    with cd.open(files / "space.h5") as recording:
        assert len(recording.show().pieces.frames) == len(recording)
        assert len(recording.show(every=10).pieces.frames) == 3
        with pytest.raises(cd.InputError, match="every is 0"):
            recording.show(every=0)
        text = recording._repr_html_()
        assert "<iframe" in text and text.startswith("<pre>Recording")


def test_polyhedra_keep_their_volume_and_close(files):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Box((0.1, 0.2, 0.3)), material="m", position=(3, 4, 5), rotation=(0.8, 0.6, 0, 0))
    scene.add(cd.Polyhedron.regular(20, 0.2), material="m", position=(0, 0, 1))
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame()
    assert measures.measure(frame).volume[1:] == pytest.approx(frame.masses[1:] / 1000, rel=1e-12)
    shapes = page.Still(sim).shapes()
    corners, starts, rows = measures.outlines(shapes)
    triangles, bodies, edges, edge_bodies = packing._triangles(corners, starts, rows, False)
    assert np.bincount(bodies).tolist() == [0, 12, 20] and np.bincount(edge_bodies).tolist() == [0, 12, 30]
    box = edges[edge_bodies == 1]
    assert np.sort(np.linalg.norm(box[:, 1] - box[:, 0], axis=1)) == pytest.approx(4 * [0.1] + 4 * [0.2] + 4 * [0.3])
    area = np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1) / 2
    assert area[bodies == 1].sum() == pytest.approx(2 * (0.02 + 0.03 + 0.06))


# ---- the server ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(files):
    served = Server(files / "flat.h5")
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.shutdown()
    served.server_close()
    thread.join()


def ask(server, path, **headers):
    connection = http.client.HTTPConnection(*server.server_address, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_the_server_hands_out_the_file_and_nothing_else(server, files):
    assert server.server_address[0] == "127.0.0.1" and len(server.token) >= 32
    here = f"/{server.token}/"
    assert ask(server, here)[0] == 200
    index = json.loads(ask(server, here + "index")[1])
    assert len(index["times"]) == 21
    assert unbox(ask(server, here + "shapes")[1])[0]["number"].tolist() == list(range(8))
    for g in range(3):
        assert len(unbox(ask(server, f"{here}group/{g}")[1])[1]["frames"]) == (8 if g < 2 else 5)
    for path in ("/", "/index", "/wrong/", f"/{server.token[:-1]}/", here + "group/3", here + "group/-1", here + "x",
                 here + "../index", here + "group/%2e%2e", here + "group/1e3", here + "group/%C2%B2",
                 here + str(files / "flat.h5"), here + "group/" + 9000 * "1"):  # fmt: skip
        assert ask(server, path) == (404, b"Not found."), path


def test_other_names_of_this_machine_are_refused(server):
    port = server.server_address[1]
    assert ask(server, f"/{server.token}/", Host=f"evil.example:{port}")[0] == 403
    assert ask(server, f"/{server.token}/", Host=f"localhost:{port}")[0] == 200


def test_a_file_that_goes_bad_is_told_in_a_sentence(tmp_path):
    flat(tmp_path / "run.h5", until=0.02)
    server = Server(tmp_path / "run.h5")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        whole = (tmp_path / "run.h5").read_bytes()
        (tmp_path / "run.h5").write_bytes(whole[: len(whole) // 2])
        status, body = ask(server, f"/{server.token}/index")
        assert status == 500 and b"damaged" in body and body.count(b"\n") == 0
        (tmp_path / "run.h5").unlink()
        status, body = ask(server, f"/{server.token}/index")
        assert status == 500 and b"is it still there" in body
        (tmp_path / "run.h5").write_bytes(whole)
        assert ask(server, f"/{server.token}/index")[0] == 200
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_wrong_files_and_ports_of_view(files, tmp_path, capsys):
    (tmp_path / "no.h5").write_text("no")
    for arguments in ((tmp_path / "absent.h5",), (tmp_path,), (tmp_path / "no.h5",), (files / "flat.h5", "--port", "x"),
                      (files / "flat.h5", "--port", "70000")):  # fmt: skip
        assert cdyn("view", *arguments, "--no-browser") == 2
        said = capsys.readouterr().err
        assert said.startswith("cdyn: ") and said.count("\n") == 1


def test_view_serves_until_it_is_interrupted(files):
    command = [sys.executable, "-c", "from contactdynamics.cli import main; main()", "view", str(files / "flat.h5")]
    process = subprocess.Popen(  # a suite in the background ignores SIGINT, and its children with it
        [*command, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+/)", process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=20)
        connection.request("GET", address[2] + "index")
        assert json.loads(connection.getresponse().read())["name"] == "flat.h5"
        connection.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0 and errors == ""
    finally:
        process.kill()
        process.wait()
