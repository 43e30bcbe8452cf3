"""The numbers of the pages stand in `docs/claims.toml` with the commands that give them."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("claims")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_every_claim_stands_on_its_page(tool):
    claims, _ = tool.read()
    assert len(claims) >= 70
    for claim in claims:
        assert claim.words in (ROOT / claim.page).read_text(), f"{claim.page} no longer says {claim.words!r}"
        assert claim.number in claim.words, claim


def test_every_page_with_numbers_is_listed(tool):
    claims, measured = tool.read()
    pages = {claim.page for claim in claims} | {entry["page"] for entry in measured}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        name = str(page.relative_to(ROOT))
        assert not tool.numbers_of(name) or name in pages, f"{name} has numbers and no command that gives them"
    assert all((ROOT / page).is_file() for page in pages)
    assert not [line for line in tool.coverage(claims, measured) if "without" in line]


def test_every_command_exists(tool):
    from contactdynamics import bench
    from contactdynamics.experiments import runner

    claims, measured = tool.read()
    benchmarks = {line.split()[0] for line in bench.listing()}
    for command in {c.command for c in claims} | {c for e in measured for c in e["command"].split("; ")}:
        words = command.split()
        if words[:2] == ["cdyn", "run"]:
            assert words[2] in runner.names(), command
        elif words[:2] == ["cdyn", "bench"]:
            assert words[2] in benchmarks, command
        elif words[0] == "code":
            assert (ROOT / words[-1]).is_file(), command
        elif words[0] == "pytest":
            assert (ROOT / words[1]).exists(), command
        else:
            assert words[:2] in (["cdyn", "export"], ["cdyn", "film"]), command


@pytest.mark.parametrize(
    ("number", "path", "value", "good"),
    [("24.7", "x", 24.74, True), ("24.7", "x", 24.76, False), ("0.6", "x", -0.6, True),
     ("107 000", "x", 107000.4, True),
     ("3e-4", "x", 3.4e-4, True), ("3e-4", "x", 3.6e-4, False), ("1.6e-3", "x", 1.66e-3, False),
     ("336", "x", 337, False), ("4e-13", "~x", 1e-12, True), ("4e-13", "~x", 2e-12, False), ("1e-8", "<x", 9e-9, True),
     ("1e-8", "<x", 2e-8, False)],
)  # fmt: skip
def test_what_holds(tool, number, path, value, good):
    assert tool.holds(number, path, value) is good


def test_paths_lead_to_values(tool):
    results = {"error": {"0.1": 2.0}, "list": [[1.0], [3.0]], "ratio": 1.18}
    assert tool.value_of(results, "error/0.1") == 2 and tool.value_of(results, "~list/1/0") == 3
    assert tool.value_of(results, "ratio-1%") == pytest.approx(18)
    assert tool.value_of(results, "list/1/0 over error/0.1") == 1.5


def test_the_oldest_python_is_the_one_that_is_told():
    least = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]
    for page in ("README.md", "docs/start.md"):
        assert f"Python {least}" in (ROOT / page).read_text()


@pytest.mark.slow
def test_the_claims_hold(tool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["claims.py"])
    assert tool.main() == 0, [line for line in capsys.readouterr().out.splitlines() if "NOT HOLD" in line]
