"""Every number of the pages has a source in `docs/claims`, and those that can be compared at once hold."""

import argparse
import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASKED = argparse.Namespace(list=False, long=False, results=None)


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("claims")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def claims(tool):
    return tool.all_claims(tool.read())


# ---- which numbers count -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It sags by 2.6e-5 diameters, 34 455 contacts, 10⁶ times, −0.6 and n^1.03.",
         ["2.6e-5", "34 455", "10⁶", "0.6", "1.03"]),
        ("two walls and 3 disks, 12 of them", ["12"]),
        ("| 5 | 0.6 of 3 |", ["5", "0.6"]),
        ("(2004, section 6.2), eqs. (33) to (36), Fig. 12, parts 10 and 11, by (10.8)", []),
        ("the bisection (0.01°) ends", ["0.01"]),
        ("Heyman (1967) found 0.042", ["0.042"]),
        ("2000 grains, 1999 grains, 1946 ms; 2004 grammar", ["2000", "1999", "1946"]),
        ("| 1946 | 2020 | 1986, section 7 | 2003/2004, eq. 5 |", ["1946", "2020"]),
        ("| da Cruz et al. 2005 | Roux 2015: 1946 ms | (Radjai 1996, 1998) | 1770 ± 190 |", ["1946", "1770", "190"]),
        ("Python 3.11, version 1.10, MuJoCo 4.0, compas_lmgc90 0.1.11, (4.1.0, YADE 442 steps", ["442"]),
        ("`tolerance=1e-3` and [0.25](page-12.md) <img width=\"205\"> where p < 0.5 > 0", ["0.25", "0.5"]),
        ("OneObject-i1028-138, LMGC\\_100\\_PR, H.264, 2D", []),
        ("> ω = 0.25 (s² − 12)\n\u2003b = 0.5\n", []),
        ("```python\nx = 0.25  # 0.5\nprint(x)  # 0.75 of it\n```\nand 0.1", ["0.75", "0.1"]),
        ("```\ncdyn run pile --set grains=2000   # 72 s\n```", ["72"]),
        ("    cdyn run pile --set grains=2000   # 72 s", ["72"]),
        ("10. tenth\n11. eleventh, 0.5", ["0.5"]),
    ],
)  # fmt: skip
def test_which_numbers_count(tool, text, numbers):
    found = tool.numbers_of(text)
    assert [number.text for number in found] == numbers
    assert all(tool.plain(text)[n.start : n.end] == n.text for n in found)


# ---- every number has a source -------------------------------------------------------------------------------------


def test_every_number_has_a_source(tool, claims):
    left = tool.uncovered(claims)
    assert not left, f"say in docs/claims where these come from: {left}"
    assert len(claims) > 1200


def test_a_new_number_is_found(tool, claims, monkeypatch, tmp_path):
    page = tmp_path / "README.md"
    page.write_text((ROOT / "README.md").read_text() + "\n\nIt is 17.3 times faster.\n")
    monkeypatch.setattr(tool, "pages", lambda: [str(page)])
    assert "17.3" in tool.uncovered([])[str(page)][-1]


def test_a_line_that_is_not_on_the_page_is_an_error(tool):
    with pytest.raises(LookupError, match="0 times"):
        tool.claims_of(tool.Block("README.md", "given", says=("it says no such thing, 17.3 times",)))


def test_what_is_told_says_where_it_comes_from(tool):
    for block in tool.read():
        if block.by == "published":
            assert block.source and block.source in tool.text_of(block.page), (block.page, block.source)


def test_every_command_exists(tool):
    from contactdynamics import bench
    from contactdynamics.experiments import runner

    benchmarks = {line.split()[0] for line in bench.listing()}
    for by in {block.by for block in tool.read()}:
        words = by.split()
        if words[:2] == ["cdyn", "run"]:
            assert words[2] in runner.names() and tool.options_of(by), by
        elif words[:2] == ["cdyn", "bench"]:
            assert bench.joined(words[2], words[3] if len(words) > 3 else None)[0] in benchmarks, by
        elif words[0] == "code":
            assert (ROOT / words[-1]).is_file(), by
        else:
            assert by in ("python", *tool.TOLD), by


# ---- whether it holds ----------------------------------------------------------------------------------------------


def test_what_is_compared_at_once_holds(tool, claims):
    quick = [claim for claim in claims if tool.at_once(claim)]
    assert len(quick) > 150
    for claim in quick:
        good, words = tool.check(claim, ASKED, "")
        assert good, f"{claim.block.page} says {claim.number.text}: {claim.mark} is {words}"


@pytest.mark.parametrize(
    ("number", "mark", "value", "good"),
    [("24.7", "x", 24.74, True), ("24.7", "x", 24.76, False), ("0.6", "x", -0.6, True),
     ("107 000", "x", 107000.4, True), ("10⁶", "x", 1e6, True), ("10⁶", "x", 1.1e6, False),
     ("3e-4", "x", 3.4e-4, True), ("3e-4", "x", 3.6e-4, False), ("1.6e-3", "x", 1.66e-3, False),
     ("336", "x", 337, False), ("4e-13", "~x", 1e-12, True), ("4e-13", "~x", 2e-12, False), ("1e-8", "<x", 9e-9, True),
     ("1e-8", "<x", 2e-8, False)],
)  # fmt: skip
def test_what_holds(tool, number, mark, value, good):
    assert tool.holds(number, mark, value) is good


def test_times_hold_within_their_factor(tool):
    block = tool.Block("README.md", "cdyn bench sweep", factor=3)
    assert tool.holds("10", "x", 25.0, block) and not tool.holds("10", "x", 35.0, block)
    block = tool.Block("README.md", "cdyn run pile", within=0.05)
    assert tool.holds("10.0", "x", 10.4, block) and not tool.holds("10.0", "x", 10.6, block)


def test_marks_lead_to_values(tool):
    block = tool.Block("README.md", "cdyn run pile", let="double = lambda x: 2 * x")
    summary = {
        "results": {"error": {"0.1": 2.0}, "list": [[1.0], [3.0]]},
        "audit": "4 of 3502 steps not solved",
        "overlap": "",
    }

    def value(mark):
        return tool.value_of(tool.Claim(block, None, mark), summary, {"friction": 0.4})

    assert value("error/0.1") == 2 and value("~list/1/0") == 3 and value("=friction") == 0.4
    assert value(": double(r['list'][1][0])") == 6 and value("=: 10 * g['friction']") == 4
    assert value(": told(r'of (\\d+) steps')") == 3502


def test_a_table_is_compared_cell_by_cell(tool):
    block = tool.Block("docs/guide/performance.md", "cdyn bench growth 1000000", table="| grains | ms per step |",
                       cells=("row", "", "2 * 1.4", "", "", "(851, 0)", ""))  # fmt: skip
    found = tool.claims_of(block)
    assert [claim.number.text for claim in found[:3]] == ["924", "1.40", "851"]
    assert tool.value_of(found[2], {"results": {}}, None) == 851


def test_results_are_taken_from_runs_with_the_same_options(tool, tmp_path):
    import json

    command = "cdyn run sliding-block --set friction=0.4"
    for name, friction in (("one", 0.6), ("two", 0.4)):
        (tmp_path / name).mkdir()
        options = tool.options_of(f"cdyn run sliding-block --set friction={friction}")
        summary = {"experiment": "sliding-block", "parameters": options, "results": {"is": friction}}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    assert [summary["results"] for summary in tool.kept(command, tmp_path)] == [{"is": 0.4}]
    assert tool.kept(command + " --quick", tmp_path) == [] and tool.kept(command, None) == []


def test_the_oldest_python_is_the_one_that_is_told():
    least = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]
    for page in ("README.md", "docs/start.md"):
        assert f"Python {least}" in (ROOT / page).read_text()


@pytest.mark.slow
def test_the_claims_hold(tool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["claims.py"])
    assert tool.main() == 0, [line for line in capsys.readouterr().out.splitlines() if "NOT HOLD" in line]
