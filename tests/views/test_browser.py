"""The page in a real browser, judged by what it shows.

Needs Chromium (Debian: `apt-get install chromium`) and Playwright; without them the tests are skipped with a message.
"""

import io
import shutil
import threading
import time

import numpy as np
import pytest
from runs import NAME, cell, flat, space

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.views.server import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless=new", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
VIRIDIS = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as play:
        try:
            opened = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start here ({str(error).splitlines()[0]})")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The exported pages of runs in 2D, in 3D and in a periodic cell."""
    folder = tmp_path_factory.mktemp("pages")
    for name, make in (("flat", flat), ("space", space), ("cell", cell)):
        make(folder / f"{name}.h5")
        with pytest.raises(SystemExit) as end:
            main(["export", str(folder / f"{name}.h5"), "--html", str(folder / f"{name}.html")])
        assert not end.value.code
    return folder


class Looked:
    """A page that is open: what it says, what it shows, what went wrong on it."""

    def __init__(self, browser, address, ready=True, dark=False):
        self.context = browser.new_context(
            viewport={"width": 900, "height": 700}, color_scheme="dark" if dark else "light"
        )
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("dialog", lambda d: (self.errors.append("dialog"), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(address)
        self.until("!!(window.cdyn && (cdyn.ready || cdyn.failed))")
        assert self("cdyn.ready") is ready, self.said("message")

    def __call__(self, script, *arguments):
        return self.page.evaluate(f"(...a) => {script}" if not arguments else f"(a) => {script}", *arguments)

    def until(self, script, seconds=20):
        end = time.monotonic() + seconds
        while not self(script):
            assert time.monotonic() < end, f"{script} did not come true; {self.errors}"
            time.sleep(0.03)

    def said(self, name):
        return self.page.inner_text(f"#{name}")

    def choose(self, name, value):
        self.page.select_option(f"#{name}", value)

    def show(self, k):
        assert self("cdyn.show(a)", k)

    def pixels(self):
        """(h, w, 3) of the stage alone."""
        from PIL import Image

        drawn = self("cdyn.drawn")
        self("(cdyn.stage.needed = true)")
        self.until(f"cdyn.drawn > {drawn}")
        for name in ("legend", "fold"):
            self("document.getElementById(a).style.visibility = 'hidden'", name)
        self("document.querySelector('header').style.visibility = 'hidden'")
        return np.asarray(Image.open(io.BytesIO(self.page.locator("#stage").screenshot())).convert("RGB")).astype(int)

    def screen(self, row):
        """Pixel of the centre of the body in a row of the frame."""
        x, y, _ = self("cdyn.stage.toScreen(Array.from(cdyn.frame.position.subarray(3 * a, 3 * a + 3)))", row)
        return round(x), round(y)

    def close(self):
        assert self.errors == []
        self.context.close()


def palette(share):
    """The colour of the legend at a share of its length."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in VIRIDIS], dtype=float)
    return np.array([np.interp(share * 7, np.arange(8), stops[:, c]) for c in range(3)])


def spots(mask):
    """How many connected spots of some size a picture has."""
    from scipy import ndimage

    label, count = ndimage.label(mask)
    return int((np.bincount(label.ravel(), minlength=count + 1)[1:] > 30).sum())


def test_panel_and_bar_fit_a_small_window(browser, pages):
    look = Looked(browser, (pages / "space.html").as_uri())
    for part in ("aside", "#colour", "footer", "#time"):
        assert look(f"document.querySelector('{part}').getBoundingClientRect().right <= innerWidth"), part
    assert look("document.querySelector('footer').scrollWidth <= document.querySelector('footer').clientWidth")


def test_a_flat_run(browser, pages):
    look = Looked(browser, (pages / "flat.html").as_uri())
    assert {url.split(":")[0] for url in look.requests} <= {"file", "blob", "data"}  # from disk, without a network
    assert look("cdyn.run.count") == 21 and "1 / 21" in look.said("time")
    look.show(20)
    look.choose("colour", "number")
    look("document.getElementById('hold').click()")
    low, high = look("cdyn.state.range")
    picture = look.pixels()
    for row in range(1, 8):  # each body has its colour of the legend (below the centre: the radius of a disk is drawn)
        x, y = look.screen(row)
        expected = palette(np.clip((row - low) / (high - low), 0.002, 0.998))
        assert np.abs(picture[y + 4, x - 2] - expected).max() < 12, row
    plain = np.abs(picture - picture[5, 5]).sum(axis=2) > 40
    x, y = look.screen(7)
    row = picture[y + 4]
    same = np.abs(row - picture[y + 4, x - 2]).max(axis=1) < 8
    scale = (look.screen(6)[0] - look.screen(1)[0]) / 2.0  # pixels per metre: five times 0.4 m
    assert same.sum() == pytest.approx(0.4 * scale, abs=4)  # the rectangle is as wide as it is
    assert spots(plain[: look.screen(6)[1] - round(0.12 * scale)]) == 0  # nothing above the highest disk
    look.close()


def test_a_run_in_space(browser, pages):
    look = Looked(browser, (pages / "space.html").as_uri())
    look.show(20)
    look("document.getElementById('view-y').click()")
    look.choose("colour", "material")
    picture = look.pixels()
    tints = np.array([[0xC9, 0xB4, 0x8F], [0x7F, 0x9F, 0xBF]], dtype=float)
    found = []
    for row in range(1, 6):  # a ball facing the light is its colour, a shade brighter or darker
        x, y = look.screen(row)
        pixel = picture[y, x].astype(float)
        ratio = [np.std(pixel / tint) for tint in tints]
        assert min(ratio) < 0.06, (row, pixel)
        found.append(int(np.argmin(ratio)))
    assert found == [0, 1, 0, 1, 0]
    light = (
        picture[look.screen(3)[1] - 8, look.screen(3)[0]].sum()
        - picture[look.screen(3)[1] + 8, look.screen(3)[0]].sum()
    )
    assert light > 20  # lit from above: a ball, not a disk
    look("(document.getElementById('view-x').click(), document.getElementById('slice').value = 'x')")
    look.choose("slice", "x")
    look.page.locator("#place").fill("0")
    assert look("cdyn.stage.pickBody(...cdyn.stage.toScreen([1.2, 0, 0.1]))") == -1  # sliced away
    look.close()


def test_a_periodic_cell(browser, pages):
    look = Looked(browser, (pages / "cell.html").as_uri())
    look.show(10)
    assert look("cdyn.stage.cell.visible && cdyn.stage.cell.geometry.attributes.position.count") == 8
    places = np.array(look("Array.from(cdyn.frame.position)")).reshape(-1, 3)[1:, 0]
    assert (places >= -1e-3).all() and (places <= 1 + 1e-3).all()
    look("(document.getElementById('forces').click(), document.getElementById('threshold').value = 0)")
    tubes = np.array(look("Array.from(cdyn.stage.tubeGeometry.attributes.from.data.array)")).reshape(-1, 2, 3)
    lengths = np.sqrt(((tubes[:, 1] - tubes[:, 0]) ** 2).sum(axis=1))
    assert len(lengths) >= 6 and lengths == pytest.approx(0.1, abs=2e-3)  # each from a centre to a rim, none across
    look("document.getElementById('forces').click()")
    x, y, _ = look("cdyn.stage.toScreen([0.1, 0.1, 0])")
    assert look("cdyn.pick(...a)", [x, y]) == {"body": 2}
    picture, (x, y, _) = look.pixels(), look("cdyn.stage.toScreen([0.5, 1, 0])")
    paper = picture[5, 5]
    assert np.abs(picture[round(y) - 1 : round(y) + 2, round(x)] - paper).max() > 60  # the upper edge of the cell
    look("(cdyn.state.body = 4, cdyn.state.trails || document.getElementById('trails').click())")
    look.until("cdyn.stage.trails.children.length === 2")  # it leaves on one side and comes in on the other
    look.close()


def test_polyhedra_are_drawn_and_picked(browser, tmp_path):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    for k in range(3):
        scene.add(cd.Box((0.4, 0.4, 0.4)), material="m", position=(k, 0, 0.2))
    sim = cd.Simulation(scene, time_step=1e-3)
    look = Looked(browser, sim.show().save(tmp_path / "boxes.html").as_uri())
    look("document.getElementById('view-y').click()")
    look.choose("colour", "kind")
    picture, tint = look.pixels(), np.array([0xC9, 0xB4, 0x8F], dtype=float)
    scale = (look.screen(3)[0] - look.screen(1)[0]) / 2.0  # pixels per metre, at the centres
    for row in (1, 2, 3):
        x, y = look.screen(row)
        assert look("cdyn.stage.pickBody(...a)", [x, y]) == row
        ratio = picture[y].astype(float) / tint
        own = (ratio.std(axis=1) < 0.03) & (ratio.mean(axis=1) < 1.02)  # the tint, darker or brighter
        start = max(0, x - round(0.45 * scale))
        wide = int(own[start : x + round(0.45 * scale)].sum())
        assert 0.4 * scale * 0.97 <= wide <= 0.4 * scale * 1.35  # the front face is nearer than the centre
    assert look("cdyn.stage.pickBody(...a)", [(look.screen(1)[0] + look.screen(2)[0]) / 2, look.screen(1)[1]]) == -1
    look.close()


def test_play_scrub_pick_and_keys(browser, pages):
    look = Looked(browser, (pages / "flat.html").as_uri())
    page = look.page
    page.keyboard.press("ArrowRight")
    look.until("cdyn.state.frame === 1")
    page.keyboard.press("End")
    look.until("cdyn.state.frame === 20")
    page.locator("#slider").fill("7")
    look.until("cdyn.state.frame === 7")
    assert "t = 0.07" in look.said("time")
    page.click("#play")
    look.until("cdyn.state.frame > 9")
    page.click("#play")
    assert look("cdyn.state.playing") is False
    look.show(20)
    box = page.locator("#stage").bounding_box()
    x, y = look.screen(4)
    page.mouse.click(box["x"] + x, box["y"] + y)
    look.until("cdyn.state.body === 4")
    assert "body 4" in look.said("picked") and NAME in look.said("picked")
    speed = look("cdyn.frame.speed[4]")
    assert speed == pytest.approx(abs(1.5 - 9.81 * 0.2), rel=0.02)  # thrown upwards with 1.5 m/s, 0.2 s ago
    page.keyboard.press("t")
    look.until("cdyn.stage.trails.children.length === 1")
    x, y = look.screen(5)
    page.keyboard.down("Shift")
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.keyboard.up("Shift")
    look.until("cdyn.stage.trails.children.length === 2")
    points = look("Array.from(cdyn.stage.trails.children[0].geometry.attributes.position.array)")
    with cd.open(pages / "flat.h5") as recording:
        way = np.array([frame.body(4).position for frame in recording])
    assert np.array(points).reshape(-1, 3)[:, :2] == pytest.approx(way, abs=0.1 / 256)
    page.keyboard.press("Escape")
    assert look("cdyn.state.body") == -1
    page.keyboard.press("f")
    assert look("cdyn.stage.tubes.visible") and "contacts, above" in look.said("forces-said")
    row, most = look("[cdyn.frame.contacts.count, Math.max(...cdyn.frame.contacts.force)]")
    assert row >= 3 and most == pytest.approx(9.81 * 600 * 0.12 / 2, rel=0.3)  # half of the rectangle on a corner
    x, y, _ = look("cdyn.stage.toScreen(Array.from(cdyn.frame.contacts.point.subarray(0, 3)))")
    assert "contact" in look("cdyn.pick(...a)", [x, y]) and "normal force" in look.said("picked")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert look("cdyn.state.body") == 1 and "body 1" in look.said("picked")
    page.keyboard.press("Shift+N")
    assert look("cdyn.state.body") == 7  # the one before the first is the last
    page.keyboard.press("g")
    force = look("cdyn.frame.contacts.force[cdyn.state.contact]")
    assert force == most and "normal force" in look.said("picked")
    before = look("cdyn.stage.toScreen([0, 0, 0])")
    page.mouse.click(box["x"] + 5, box["y"] + 5)  # the keys are the scene's from there on
    page.keyboard.press("Shift+ArrowRight")
    assert look("cdyn.stage.toScreen([0, 0, 0])[0]") < before[0] - 10  # the eye goes to the right
    page.keyboard.press("Control+ArrowUp")
    assert look("cdyn.stage.toScreen([0, 0, 0])[1]") > before[1] + 10
    page.keyboard.press("i")
    assert look("cdyn.stage.camera.zoom") == pytest.approx(1.2)
    look.choose("colour", "material")
    assert NAME in look.said("legend") and look("document.querySelectorAll('#legend img').length") == 0
    look.close()


def test_link_and_picture(browser, pages):
    look = Looked(browser, (pages / "space.html").as_uri())
    look.show(11)
    look.choose("colour", "spin")
    look("document.getElementById('view-x').click()")
    before = look("cdyn.stage.camera.position.toArray()")
    look.page.locator("#stage").focus()
    look.page.keyboard.press("Shift+ArrowRight")
    after = look("cdyn.stage.camera.position.toArray()")
    middle = look("cdyn.stage.controls.target.toArray()")
    assert after[1] > before[1] + 0.1 and after[2] == pytest.approx(before[2])  # to the right, seen along x: y
    assert np.subtract(after, middle) @ np.subtract(after, middle) == pytest.approx(
        np.subtract(before, middle) @ np.subtract(before, middle)
    )
    link, place = look("cdyn.link()"), look("cdyn.stage.camera.position.toArray()")
    wide, high, ink = look(
        """(() => {
        const c = cdyn.picture(3000);
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let seen = 0;
        for (let k = 0; k < d.length; k += 4) if (d[k] !== d[0]) seen++;
        return [c.width, c.height, seen];
        })()"""
    )
    assert wide == 3000 and high > 1000 and ink > 20_000
    look.close()
    again = Looked(browser, link)
    assert again("[cdyn.state.frame, cdyn.state.colour]") == [11, "spin"]
    assert again("cdyn.stage.camera.position.toArray()") == pytest.approx(place, rel=1e-4, abs=1e-4)
    again.close()


def test_a_notebook_shows_the_present_state(browser, tmp_path):
    sim = flat(tmp_path / "run.h5", until=0.05)
    (tmp_path / "cell.html").write_text(f"<!doctype html><body>{sim.show()._repr_html_()}</body>")
    context = browser.new_context()
    page = context.new_page()
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto((tmp_path / "cell.html").as_uri())
    inside = page.frames[1]
    end = time.monotonic() + 20
    while not inside.evaluate("() => !!(window.cdyn && (cdyn.ready || cdyn.failed))"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert inside.evaluate("() => cdyn.ready && cdyn.frame.bodies") == 8
    inside.evaluate("() => document.getElementById('link').click()")
    assert errors == []
    context.close()


def test_dark_and_light_can_be_read(browser, pages):
    ways = []
    for dark in (False, True):
        look = Looked(browser, (pages / "flat.html").as_uri(), dark=dark)
        ways.append(look.pixels()[5, 5].sum())
        colours = look("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
        ink, paper = (np.array([int(v) for v in c[4:-1].split(",")]) for c in colours)
        assert np.abs(ink - paper).sum() > 450
        look.close()
    assert ways[0] > 600 > 200 > ways[1]


def test_a_page_that_is_cut_off_says_so(browser, pages, tmp_path):
    text = (pages / "flat.html").read_text()
    end = text.index('id="part-2"')
    (tmp_path / "cut.html").write_text(text[: end + 300])
    look = Looked(browser, (tmp_path / "cut.html").as_uri())  # what is there is shown
    assert "cut off" in look.said("message")
    look.show(3)
    assert look("cdyn.show(20)") is False
    (tmp_path / "short.html").write_text(text[: text.index('id="part-shapes"') + 40])
    short = Looked(browser, (tmp_path / "short.html").as_uri(), ready=False)
    assert "cut off" in short.said("message")
    at = text.index('id="part-1">') + 60
    (tmp_path / "bad.html").write_text(text[:at] + 40 * "A" + text[at + 40 :])
    bad = Looked(browser, (tmp_path / "bad.html").as_uri())
    assert bad("cdyn.show(10)") is False and "damaged" in bad.said("message")
    for page in (look, short, bad):
        page.close()


def test_a_run_that_goes_on_is_followed(browser, tmp_path):
    recorder = cd.HDF5(tmp_path / "run.h5", every=10)
    sim = flat(None, until=0.1, recorder=recorder)
    server = Server(tmp_path / "run.h5")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        look = Looked(browser, server.address)
        assert look("[cdyn.run.count, cdyn.state.frame]") == [11, 10]
        sim.add(cd.Disk(0.1), material=NAME, position=(3.0, 0.1))
        sim.run(until=0.2, progress=False)
        look.until("cdyn.run.count === 21 && cdyn.state.frame === 20")
        assert look("cdyn.frame.time") == pytest.approx(0.2) and look("cdyn.frame.bodies") == 9
        assert {url.split("/")[2] for url in look.requests if url.startswith("http")} == {server.address.split("/")[2]}
        whole = (tmp_path / "run.h5").read_bytes()
        (tmp_path / "run.h5").write_bytes(whole[: len(whole) // 3])
        look.until("!document.getElementById('message').hidden")
        assert "damaged" in look.said("message")
        (tmp_path / "run.h5").write_bytes(whole)
        look.until("document.getElementById('message').hidden")
        look.errors = [e for e in look.errors if "500" not in e]  # the browser's own note of the damaged file
        look.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
