"""Films and plots: what is drawn is where it is, in its colour, nearer bodies before farther ones."""

import numpy as np
import pytest

import contactdynamics as cd
from command import cdyn
from contactdynamics.views import film, measures, raster


def canvas(height=40, width=60):
    return np.zeros((height, width, 3), dtype=np.float32), np.full((height, width), np.inf, dtype=np.float32)


def ball_twin(shape, x, y, z, r):
    """Depth and brightness of one ball, asked point by point."""
    depth, light = np.full(shape, np.inf), np.zeros(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            u, v = (j - x) / r, (y - i) / r
            if u * u + v * v < 1:
                w = np.sqrt(1 - u * u - v * v)
                depth[i, j] = z - r * w
                light[i, j] = 0.36 + 0.5 * max(0, np.dot((u, v, w), raster.LIGHT)) + 0.22 * w
    return depth, light


def test_balls_as_a_naive_painter_paints_them(rng):
    k = 12
    x, y = rng.uniform(-5, 65, k), rng.uniform(-5, 45, k)  # some reach over the edge, some are outside
    z, r, tint = rng.uniform(0, 30, k), rng.uniform(0.3, 12, k), rng.uniform(0, 1, (k, 3))
    image, depth = canvas()
    raster.draw_balls(image, depth, x, y, z, r, tint, np.zeros((k, 2)), False, False)
    expected, far = canvas()
    for b in range(k):
        d, light = ball_twin(far.shape, x[b], y[b], z[b], r[b])
        near = d < far
        far[near] = d[near]
        expected[near] = light[near][:, None] * tint[b]
    assert np.isinf(depth).tolist() == np.isinf(far).tolist()
    assert depth == pytest.approx(far, rel=1e-5) and image == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_triangles_and_tubes_as_naive_painters_paint_them(rng):
    corners = rng.uniform(-10, 70, (6, 3, 3))
    image, depth = canvas()
    raster.draw_triangles(image, depth, corners, np.ones(6), rng.uniform(0, 1, (6, 3)), False)
    for i in range(0, 40, 3):
        for j in range(0, 60, 3):
            depths = []
            for a, b, c in corners:
                inside = np.linalg.solve(np.array([[*a[:2], 1], [*b[:2], 1], [*c[:2], 1]]).T, [j, i, 1])
                if (inside > 1e-9).all():
                    depths.append(inside @ np.array([a[2], b[2], c[2]]))
            assert depth[i, j] == pytest.approx(min(depths, default=np.inf), rel=1e-4, abs=1e-4)
    image, depth = canvas()
    raster.draw_tubes(image, depth, np.array([[[10.0, 20, 5], [40, 20, 5]]]), np.array([4.0]), np.ones((1, 3)), 0.0)
    assert (depth[20, 10:41] == 1).all() and np.isinf(depth[25]).all() and np.isinf(depth[20, 45])


def test_the_picture_is_halved_by_means():
    image = np.arange(4 * 6 * 3, dtype=np.float32).reshape(4, 6, 3) / 100
    small = raster.coarser(image, 2)
    means = image.reshape(2, 2, 3, 2, 3).mean(axis=(1, 3))
    assert small.dtype == np.uint8 and np.abs(small - 255 * means).max() <= 0.51


def test_bodies_are_where_they_are(files):
    with cd.open(files / "flat.h5") as recording:
        painter = film.Painter(recording, [0, 20], colour="number", size=(640, 360))
        frame = recording[20]
        picture = painter.picture(frame).astype(float)
        at = painter._placed(np.column_stack([frame.positions, np.zeros(len(frame.positions))]))[:, :2] / film.FINER
        low, high = painter.range
        for row in range(1, 8):
            expected = 255 * film.ramp(film.VIRIDIS, np.array([(row - low) / (high - low)]))[0]
            x, y = np.round(at[row]).astype(int)
            assert np.abs(picture[y + 3, x - 2] - expected).max() < 10
    with cd.open(files / "space.h5") as recording:
        near = film.Painter(recording, [0], view="x", colour="material", size=(320, 200)).picture(recording[0])
        far = film.Painter(recording, [0], view="180,0", colour="material", size=(320, 200)).picture(recording[0])
        assert not np.array_equal(near, far)  # seen along x, one ball hides the four behind it


def test_views_say_the_same_as_their_names(files):
    low, high = np.zeros(3), np.array([1.0, 2.0, 3.0])
    for name, angles, right, up in (("x", "0,0", (0, 1, 0), (0, 0, 1)), ("y", "-90,0", (1, 0, 0), (0, 0, 1)),
                                    ("z", "-90,90", (1, 0, 0), (0, 1, 0))):  # fmt: skip
        for text in (name, angles):
            view = film.view_of(text, 3, low, high, 1.5)
            assert view.right == pytest.approx(right, abs=1e-12) and view.up == pytest.approx(up, abs=1e-12)
    link = "http://127.0.0.1:1/x/#frame=3&camera=0,-10,0,0,0,0,2"
    view = film.view_of(link, 3, low, high, 1.5)
    assert view.back == pytest.approx([0, 1, 0]) and view.half == pytest.approx(5 * np.tan(np.radians(17.5)))


def test_the_link_of_a_page_says_what_the_film_shows(files):
    link = "file:///x.html#frame=1&colour=birth&range=0,2&forces=1&threshold=0.3&bodies=1&cut=0,0.8,0.1&camera=5,0,0,0,0,0,1"
    assert film.asked_of(link, None, False) == film.Asked("birth", (0.0, 2.0), True, 0.3, True, (0, 0.8, 0.1))
    assert film.asked_of(link, "spin", False)[:2] == ("spin", None)
    assert film.asked_of("x", None, True) == film.Asked(forces=True)
    for bad in ("colour=taste", "range=2,1", "threshold=x", "cut=7,0,0", "cut=nan,0,0", "forces=2", "bodies="):
        assert film.asked_of(f"#{bad}&camera=1,0,0,0,0,0,1", None, False) == film.Asked()
    with cd.open(files / "space.h5") as recording:
        painter = film.Painter(recording, [0], view=link, size=(64, 40))
        slots = painter._shown(measures.in_space(recording[0].positions))
        assert np.flatnonzero(slots).tolist() == [3]  # the ball at x = 0.8
        assert painter.range == (0.0, 2.0)
    near = "#half=0.25&camera=0.4,0.1,10,0.4,0.1,0,1"
    assert film.view_of(near, 2, np.zeros(3), np.ones(3), 1.0).half == 0.25


def test_a_film_plays(files, tmp_path):
    assert cdyn("film", files / "flat.h5", tmp_path / "a.gif", "--size", "160x90", "--every", "4", "--forces") == 0
    from PIL import Image

    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 6 and gif.size == (160, 90)
    reader = pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed")
    assert cdyn("film", files / "space.h5", tmp_path / "a.mp4", "--size", "161x90", "--view=-30,40") == 0
    frames, seconds = reader.count_frames_and_secs(str(tmp_path / "a.mp4"))
    assert frames == 21 and seconds == pytest.approx(21 / 25, abs=0.05)
    assert b"avc1" in (tmp_path / "a.mp4").read_bytes()  # H.264


@pytest.mark.parametrize(
    "options", [("a.avi",), ("a",), ("a.gif", "--size", "12"), ("a.gif", "--size", "8x8"), ("a.gif", "--rate", "0"),
                ("a.gif", "--rate", "nan"), ("a.gif", "--colour", "taste"), ("a.gif", "--view", "north"),
                ("a.gif", "--view", "1,2,3"), ("a.gif", "--view", "10,95"), ("a.gif", "--view", "#camera=1"),
                ("a.gif", "--every", "0"), ("no/a.gif",)], ids=str)  # fmt: skip
def test_wrong_films_are_told_in_a_sentence(files, tmp_path, capsys, options):
    name, *rest = options
    assert cdyn("film", files / "space.h5", tmp_path / name, *rest) == 2
    said = capsys.readouterr().err
    assert said.startswith("cdyn: ") and said.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_mp4_without_its_encoder_says_what_to_install(files, tmp_path, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert cdyn("film", files / "flat.h5", tmp_path / "a.mp4") == 2
    assert "contactdynamics[film]" in capsys.readouterr().err


WHAT = ["bodies", "forces", "stress", "energy", "residual", "histograms"]


@pytest.mark.parametrize(
    "name, what", [*(("flat", what) for what in WHAT), ("space", "stress"), ("space", "histograms")]
)
def test_plots(files, tmp_path, name, what):
    ending = {"bodies": "svg", "energy": "pdf"}.get(what, "png")
    out = tmp_path / f"a.{ending}"
    assert cdyn("plot", files / f"{name}.h5", "--what", what, "--time", "0.1", "--out", out) == 0
    begin = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[ending]
    assert out.read_bytes().startswith(begin) and out.stat().st_size > 5000


def test_a_plot_that_is_not_known_is_told(files, tmp_path, capsys):
    assert cdyn("plot", files / "flat.h5", "--what", "all", "--out", tmp_path / "a.png") == 2
    assert "histograms" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
