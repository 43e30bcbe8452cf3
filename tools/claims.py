"""The numbers of the pages with what gives them: `make claims`.

    python tools/claims.py [--list] [--only WORD ...] [--long] [--results FOLDER]

``docs/claims/`` has a file for each page with numbers (`page_numbers` says which count): blocks of lines quoted from
the page (``says``), each with what gives its numbers (``by``), or of a whole table (``table``). A quoted
line stands once on the page, up to blanks, with a mark {...} behind each number that the block answers for.

``by`` is a command, which is run once for each state of the package, or one of the words below:

- `cdyn run NAME ...`: a mark is the path of a value in the results, "error/0.1"; "=friction" an option of the run;
- `code of PAGE`: a mark is a name that the program of the page leaves;
- `cdyn bench NAME ...`: as for runs; times, which differ between machines, within the ``factor`` of the block;
- "python": a mark is an expression, for closed forms and constants of the package (`source(file, pattern)` finds one);
- "published": what others have found; the work (``source``) is named on the page;
- "given": what is chosen and not found, and no option: measures of a scene, arguments of a call, ranges of a plot.

What was measured and no command gives again has no place on a page.

In every mark ": ..." is an expression with r (results), g (options), told(pattern) (by the run), math, np and what
``let`` of the block makes; "<" before it: at most that; "~": within a factor of 3 (what rounding leaves). A number
holds to half of its last digit, or to the share ``within`` of the block for what differs between processors. In blocks
of the last two words all numbers of the lines are meant. ``table`` is the beginning of the head of a table, ``cells``
an expression for each column ("" for none); row is the first cell, two numbers in a cell are a pair.

``slow`` computations take seconds; runs of more than a minute (``long``) and benchmarks are compared with ``--long``,
or where a folder of results has a run with the same options (``--results``). ``--list`` runs nothing. A number of a
page that no block answers for fails.
"""

import argparse
import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from make_site import state
from page_numbers import NUMBER, POWER, Number, numbers_of, plain

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "claims"
CLAIMS = ROOT / "docs" / "claims"
TOLD = ("published", "given")


class Block(NamedTuple):
    """Numbers of a page that come from one place."""

    page: str
    by: str
    says: tuple[str, ...] = ()
    table: str = ""
    cells: tuple[str, ...] = ()
    let: str = ""
    long: bool = False  # by a run that takes more than a minute
    slow: bool = False  # computed in more than a moment
    factor: float = 0.0  # of times
    within: float = 0.0  # share by which a result may differ on other processors
    source: str = ""

    @property
    def kind(self) -> str:
        """In a word, what checks it."""
        if self.by in TOLD:
            return self.by
        if self.by == "python":
            return "computed"
        return "benchmark" if self.by.startswith("cdyn bench") else "long run" if self.long else "run"


class Claim(NamedTuple):
    """One number on a page, at its place in the plain text, and the expression or path that gives it."""

    block: Block
    number: Number
    mark: str
    row: str = ""


def pages() -> list[str]:
    """All pages, by their paths."""
    return sorted(str(p.relative_to(ROOT)) for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@cache
def text_of(page: str) -> str:
    """A page with every run of blanks as one."""
    return plain((ROOT / page).read_text())


@cache
def numbers_on(page: str) -> list[Number]:
    """The numbers of a page that count."""
    return numbers_of((ROOT / page).read_text())


def read() -> list[Block]:
    """The blocks of all files."""
    blocks = []
    for path in sorted(CLAIMS.glob("*.toml")):
        said = tomllib.loads(path.read_text())
        for entry in said["block"]:
            entry["says"] = tuple(line.strip() for line in entry.get("says", "").splitlines() if line.strip())
            blocks.append(Block(said["page"], **{k: tuple(v) if k == "cells" else v for k, v in entry.items()}))
    return blocks


def claims_of(block: Block) -> list[Claim]:
    """The claims of a block; a quoted line that is not on the page, or an unknown mark, is an error."""
    claims, text = [], text_of(block.page)
    counted = {number.start: number for number in numbers_on(block.page)}
    for line in block.says:
        words = plain(re.sub(r"\{[^{}]*\}", "", line))
        start = text.find(words)
        if text.count(words) != 1:
            raise LookupError(f"{block.page} says {text.count(words)} times {words!r}; quote what it says once")
        if block.by in TOLD:
            claims += [Claim(block, n, "") for at, n in counted.items() if start <= at < start + len(words)]
            continue
        end = 0
        for part in re.finditer(r"([^{}]*)\{([^{}]*)\}", plain(line)):
            end += len(part.group(1))
            before = [n for n in NUMBER.finditer(text[start : start + end]) if start + end - start - n.end() <= 3]
            if not before:
                raise LookupError(f"{block.page}: no number before {{{part.group(2)}}} in {words!r}")
            found = before[-1]
            number = Number(start + found.start(), start + found.end(), found.group())
            claims.append(Claim(block, number, part.group(2)))
    return claims + (_cells(block) if block.table else [])


def _cells(block: Block) -> list[Claim]:
    """The claims of a table: the numbers of each cell with the expression of its column."""
    text, lines = (ROOT / block.page).read_text(), []
    where = text.find(block.table)
    if where < 0 or text.count(block.table) > 1:
        raise LookupError(f"{block.page} has not one table that begins with {block.table!r}")
    lines = text[where:].split("\n\n")[0].split("\n")[2:]
    claims = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        place = text_of(block.page).find(plain(line))
        row = re.sub(r"[\\*]", "", cells[0])
        for cell, mark in zip(cells, block.cells, strict=True):
            at = text_of(block.page).find(f"| {cell} |", place) + 2 if cell else place
            place = at if cell else place
            for k, found in enumerate(NUMBER.finditer(cell) if mark else ()):
                number = Number(at + found.start(), at + found.end(), found.group())
                claims.append(Claim(block, number, f":pick({mark}, {k})", row))
    return claims


def all_claims(blocks: list[Block]) -> list[Claim]:
    """The claims of all blocks, those that are compared first."""
    claims = [claim for block in blocks if block.by not in TOLD for claim in claims_of(block)]
    for block in (block for block in blocks if block.by in TOLD):
        taken = {claim.number.start for claim in claims if claim.block.page == block.page}
        claims += [claim for claim in claims_of(block) if claim.number.start not in taken]
    return claims


def uncovered(claims: list[Claim]) -> dict[str, list[str]]:
    """By page, the numbers that no claim answers for, with the words around them."""
    left = {}
    for page in pages():
        taken = {claim.number.start for claim in claims if claim.block.page == page}
        free = [n for n in numbers_on(page) if n.start not in taken]
        if free:
            left[page] = [f"...{text_of(page)[max(0, n.start - 40) : n.end + 25]}..." for n in free]
    return left


def value_of_number(said: str) -> float:
    """The value of a number as pages write it: 34 455, 1e-8, 10⁶."""
    said = said.replace(" ", "")
    power = re.fullmatch(rf"10([{POWER}]+)", said)
    return 10.0 ** int(power[1].translate(str.maketrans(POWER, "0123456789-"))) if power else float(said)


def holds(number: str, mark: str, value: float, block: Block | None = None) -> bool:
    """Whether ``value`` is what the page says."""
    said, size = value_of_number(number), abs(float(value))
    if mark[:1] == "<":
        return size <= said * (1 + 1e-9)
    factor = 3.0 if mark[:1] == "~" else block.factor if block else 0.0
    if factor and said / factor <= size <= factor * said:
        return True
    mantissa, _, exponent = number.replace(" ", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    half = 0.0 if "10" == number[:2] and number[-1] in POWER else 0.5 * 10.0 ** (int(exponent or 0) - digits)
    return abs(size - said) <= max(half * (1 + 1e-6) + 1e-12 * said, (block.within if block else 0.0) * said)


def source(path: str, pattern: str) -> float:
    """The number in a file of the project that a pattern finds: a constant that has no name to import."""
    found = set(re.findall(pattern, (ROOT / path).read_text()))
    if len(found) != 1:
        raise LookupError(f"{pattern} finds {sorted(found)} in {path}, not one number")
    return float(found.pop().replace("_", ""))


def value_of(claim: Claim, summary, given) -> float:
    """What a mark such as "error/0.1", "=friction" or ": r['a'] / r['b']" gives."""
    mark, results = claim.mark.lstrip("~<").strip(), summary and summary["results"]
    if claim.block.by == "python" or mark.lstrip("=").startswith(":"):
        names = {"r": results, "g": given, "math": math, "np": np, "row": claim.row, "source": source, "pick": _pick}
        names["told"] = lambda pattern: float(re.search(pattern, f"{summary['audit']} {summary['overlap']}")[1])
        exec(claim.block.let, names)
        return float(eval(mark.lstrip("=:").strip(), names))
    if mark.startswith("="):
        mark, results = mark[1:], given
    for part in mark.split("/"):
        results = results[int(part)] if isinstance(results, list | tuple) else results[part]
    return float(results)


def _pick(values, k: int) -> float:
    return values[k] if isinstance(values, list | tuple) else values


def options_of(command: str) -> dict:
    """The options with which `cdyn run` would run."""
    from contactdynamics.experiments import runner

    words = command.split()
    settings = {"from_data": "true"} if "--from-data" in words else {}
    settings |= dict(words[k + 1].split("=", 1) for k, word in enumerate(words) if word == "--set")
    return runner.parameters_of(runner.load(words[2]), settings, quick="--quick" in words)


def kept(command: str, folder: Path | None) -> list[dict]:
    """The summaries of a run with these options, or of the benchmark, that stand below ``folder``; the newest first."""
    words, found = command.split(), []
    paths = folder.glob("*/summary.json") if folder else ()
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        summary = json.loads(path.read_text())
        if words[1] == "bench" and summary.get("benchmark") in (words[2], "-".join(words[2:4])):
            found.append(summary)
        elif words[1] == "run" and words[2] == summary.get("experiment"):
            asked = json.loads(json.dumps(options_of(command), default=list))
            found += [summary] if summary["parameters"] == asked else []
    return found


def run(command: str, mark: str):
    """The summary of a command; that of the same state of the package is there already."""
    folder = FOLDER / re.sub(r"\W+", "-", command)
    place = folder / f"summary-{mark}.json"
    if place.is_file():
        return json.loads(place.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if command.startswith("code of "):
        page = (ROOT / command.removeprefix("code of ")).read_text()
        code = "\n".join(re.findall(r"(?ms)^```python[^\n]*\n(.*?)^```", page))
        code += f"""
import json, numbers
_found = {{k: float(v) for k, v in list(globals().items()) if isinstance(v, numbers.Real)}}
json.dump({{"results": _found}}, open({str(place)!r}, "w"))
"""
        done = subprocess.run([sys.executable, "-"], input=code, cwd=folder, capture_output=True, text=True)
    else:
        program = [sys.executable, "-m", "contactdynamics", *command.split()[1:], "--out", str(folder / "out")]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
        if done.returncode in (0, 1):  # 1: a row of its own table differs, which is not what is asked here
            shutil.copy(folder / "out" / "summary.json", place)
    if not place.is_file():
        raise RuntimeError(f"`{command}` failed: {done.stderr[-1000:]}")
    return json.loads(place.read_text())


def computed(claim: Claim, mark: str) -> float:
    """The value of a slow computation; that of the same state of the package is there already."""
    name = hashlib.sha256(f"{claim.block.let}\n{claim.mark}".encode()).hexdigest()[:16]
    place = FOLDER / "computed" / f"{name}-{mark}.json"
    if not place.is_file():
        value = value_of(claim, None, None)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(value))
    return json.loads(place.read_text())


def at_once(claim: Claim) -> bool:
    """Whether a claim is compared without any run."""
    return (claim.block.by == "python" and not claim.block.slow) or claim.mark.lstrip("~<").startswith("=")


def check(claim: Claim, asked: argparse.Namespace, mark: str) -> tuple[bool | None, str]:
    """Whether a claim holds (None: not asked), and what was found."""
    block = claim.block
    if block.by in TOLD or asked.list:
        return None, block.source
    if block.slow:
        value = computed(claim, mark)
    elif block.by == "python" or at_once(claim):
        value = value_of(claim, None, options_of(block.by) if block.by.startswith("cdyn run") else None)
    elif block.long or block.kind == "benchmark":
        value = None
        for summary in kept(block.by, asked.results):
            try:
                value = value_of(claim, summary, None)
                break
            except (KeyError, IndexError, StopIteration):  # results of another form of the benchmark
                continue
        if value is None and (not asked.long or re.search(r"\b(FOLDER|PYTHON)\b", block.by)):
            return None, "by --long or --results"
        value = value_of(claim, run(block.by, mark), None) if value is None else value
    else:
        value = value_of(claim, run(block.by, mark), None)
    good = holds(claim.number.text, claim.mark, value, block)
    return good, f"{value:.6g}, {'holds' if good else 'DOES NOT HOLD'}"


def main() -> int:
    """Print the claims, run their commands, say which do not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the claims and run nothing")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="claims whose page or command has one of these in it")
    parser.add_argument("--long", action="store_true", help="run the commands that take more than a minute too")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="take runs of long commands from here")
    asked = parser.parse_args()
    claims, mark = all_claims(read()), state()
    missing = uncovered(claims) if asked.only is None else {}
    if asked.only is not None:
        claims = [c for c in claims if any(word in f"{c.block.page} {c.block.by}" for word in asked.only)]
    counts = Counter(claim.block.kind for claim in claims)
    failed = left = 0
    for claim in claims:
        try:
            good, words = check(claim, asked, mark)
        except Exception as error:  # what cannot be computed any more does not hold, and the others are asked
            good, words = False, f"DOES NOT HOLD, {type(error).__name__}: {error}"
        failed, left = failed + (good is False), left + (good is None and claim.block.by not in TOLD)
        page, number = claim.block.page, claim.number
        around = text_of(page)[max(0, number.start - 30) : number.end + 12]
        print(f"{page}: {number.text} in {around!r}, by {claim.block.by}: {words}", flush=True)
    for page, numbers in missing.items():
        print(f"{page}: {len(numbers)} numbers without a source", *numbers, sep="\n  ")
    print(f"{len(claims)} numbers: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print(f"{left} not compared here (--long, --results), {failed} do not hold, ", end="")
    print(f"{sum(map(len, missing.values()))} without a source")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
