"""The documentation site: it is built without a warning, and its pages lead to each other."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason=f"{name} is not installed (pip install contactdynamics[docs])")
    out = tmp_path_factory.mktemp("site")
    program = [sys.executable, ROOT / "tools" / "make_site.py", "--out", out / "html", "--only", "essai-01", "bridge"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out / "html"


def test_every_link_leads_somewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        if page.parent.name == "runs":
            continue
        text = page.read_text()
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            place = target.split("#")[0].split("?")[0]
            if place and not re.match(r"[a-z]+:", place):
                assert (page.parent / place).exists(), f"{page.name} leads to {target}"


def test_nothing_comes_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not re.findall(
            r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', page.read_text()
        ), page


def test_the_gallery_has_picture_paragraph_command_program_and_run(site):
    text = (site / "experiments" / "bridge.html").read_text()
    for part in ("_images/", "cdyn run bridge", "runs/bridge.html",
                 "PARAMETERS", "Numbers of the quick form"):  # fmt: skip
        assert part in text
    assert (site / "runs" / "bridge.html").is_file() and (site / "searchindex.js").is_file()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, args=["--headless=new", "--no-sandbox"])
        yield opened
        opened.close()


def test_search_finds_pages_from_disk(site, browser):
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if request.url.startswith("http") else None)
    page.goto((site / "index.html").as_uri())
    page.fill("input[name=q]", "restitution")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a", timeout=60_000)
    found = page.locator("#search-results li a").all_inner_texts()
    assert len(found) >= 5 and any("Collisions" in name for name in found) and errors == []
    page.close()


def test_pages_are_as_wide_as_a_telephone(site, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    page = context.new_page()
    for name in ("index", "start", "api", "guide/performance", "coming-from/yade", "experiments/index"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    context.close()
