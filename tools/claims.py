"""The numbers of the pages with the commands that give them: `make claims`.

    python tools/claims.py [--list] [--only WORD ...] [--long] [--results FOLDER]

``docs/claims.toml`` says, page by page, which command gives which number. The commands are run, once for each state of
the package, and a number that no longer comes out fails. Those of runs that take more than a minute (``long = true``)
are compared with ``--long``, or where a folder of results, such as ``results/``, has the run (``--results``). Numbers
that benchmarks gave, which differ from machine to machine, are listed with their commands; how many of all numbers are
checked is said at the end. ``--list`` runs nothing.

A claim is [words, number, path]: the words stand on the page, the number in the words, and the path leads to the value:
in the results of an experiment (`cdyn run`), or in the names that the code of a page leaves (`code of PAGE`). A number
holds to half of its last digit; "~" before the path: within a factor of 3 (what rounding leaves); "<": at most that;
"-1%" after it: what a ratio is above 1, in per cent; "one over two" is the ratio of the values of two paths.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from make_site import state

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "claims"
NUMBER = re.compile(r"(?<![\w.])\d+(?: \d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\w])")


class Claim(NamedTuple):
    """A number on a page, and where it comes from."""

    page: str
    words: str
    number: str
    command: str
    path: str
    long: bool = False  # by a run that takes more than a minute


def read() -> tuple[list[Claim], list[dict]]:
    """The claims, and what was measured by long commands: ``page``, ``command``."""
    said = tomllib.loads((ROOT / "docs" / "claims.toml").read_text())
    claims = [
        Claim(block["page"], words, number, block["command"], path, block.get("long", False))
        for block in said["checked"]
        for words, number, path in block["claims"]
    ]
    return claims, said["measured"]


def numbers_of(page: str) -> list[str]:
    """The numbers in the prose and tables of a page; neither code, nor years, nor single digits."""
    text = (ROOT / page).read_text()
    for unwanted in (r"(?ms)^```.*?^```", r"(?m)^ {4}.*$", r"`[^`]*`", r"\]\([^)]*\)", r"<[^>]*>", r"Python \d\.\d+"):
        text = re.sub(unwanted, "", text)
    return [n for n in NUMBER.findall(text) if not re.fullmatch(r"\d|(19|20)\d\d", n)]


def holds(number: str, path: str, value: float) -> bool:
    """Whether ``value`` is what the page says."""
    said = float(number.replace(" ", ""))
    if path[0] == "~":
        return said / 3 <= abs(value) <= 3 * said
    if path[0] == "<":
        return abs(value) <= said
    mantissa, _, exponent = number.replace(" ", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    return abs(abs(value) - said) <= (0.5 + 1e-6) * 10 ** (int(exponent or 0) - digits)


def value_of(results, path: str) -> float:
    """What a path such as "error/0.1" or "curve/events/error/3" leads to."""
    path, gain, _ = path.lstrip("~<").partition("-1%")
    if " over " in path:
        one, two = path.split(" over ")
        return value_of(results, one) / value_of(results, two)
    for part in path.split("/"):
        results = results[int(part)] if isinstance(results, list | tuple) else results[part]
    return 100 * (float(results) - 1) if gain else float(results)


def run(command: str, mark: str):
    """The results of a command; those of the same state of the package are there already."""
    folder = FOLDER / re.sub(r"\W+", "-", command)
    kept = folder / f"results-{mark}.json"
    if kept.is_file():
        return json.loads(kept.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if command.startswith("code of "):
        page = (ROOT / command.removeprefix("code of ")).read_text()
        code = "\n".join(re.findall(r"(?ms)^```python[^\n]*\n(.*?)^```", page))
        code += f"""
import json, numbers
_found = {{k: float(v) for k, v in list(globals().items()) if isinstance(v, numbers.Real)}}
json.dump(_found, open({str(kept)!r}, "w"))
"""
        done = subprocess.run([sys.executable, "-"], input=code, cwd=folder, capture_output=True, text=True)
    else:
        program = [sys.executable, "-m", "contactdynamics", *command.split()[1:], "--out", str(folder / "out")]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
        if done.returncode in (0, 1):  # 1: a row of its own table differs, which is not what is asked here
            kept.write_text(json.dumps(json.loads((folder / "out" / "summary.json").read_text())["results"]))
    if not kept.is_file():
        raise SystemExit(f"`{command}` failed: {done.stderr[-1000:]}")
    return json.loads(kept.read_text())


def kept_results(command: str, folder: Path | None):
    """The results of ``cdyn run NAME`` that stand in ``folder``, or None."""
    if folder is None or not re.fullmatch(r"cdyn run [\w-]+", command):
        return None
    summary = folder / command.split()[-1] / "summary.json"
    return json.loads(summary.read_text())["results"] if summary.is_file() else None


def coverage(claims: list[Claim], measured: list[dict]) -> list[str]:
    """How many numbers of each page are checked, in words; pages whose numbers nobody accounts for come first."""
    lines, total, checked = [], 0, 0
    for page in sorted(str(p.relative_to(ROOT)) for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        count, own = len(numbers_of(page)), sum(claim.page == page for claim in claims)
        total, checked = total + count, checked + min(own, count)
        if count and not own and not any(entry["page"] == page for entry in measured):
            lines.append(f"{page}: {count} numbers without a command")
    return [*lines, f"{checked} of {total} numbers are checked; the others are listed with what measured them"]


def main() -> int:
    """Print the claims, run their commands, say which do not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the claims and run nothing")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="claims whose page or command has one of these in it")
    parser.add_argument("--long", action="store_true", help="run the commands that take more than a minute too")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="take runs of long commands from here")
    asked = parser.parse_args()
    claims, measured = read()
    if asked.only is not None:
        claims = [c for c in claims if any(word in c.page + " " + c.command for word in asked.only)]
    failed, left, mark = 0, 0, state()
    for claim in claims:
        said, verdict = f"{claim.page}: {claim.number} in {claim.words!r}, by `{claim.command}`", ""
        kept = kept_results(claim.command, asked.results) if claim.long else None
        if claim.long and kept is None and not asked.long:
            verdict, left = ": by --long", left + 1
        elif not asked.list:
            value = value_of(run(claim.command, mark) if kept is None else kept, claim.path)
            good = holds(claim.number, claim.path, value)
            failed += not good
            verdict = f": {value:.6g}, {'holds' if good else 'DOES NOT HOLD'}"
        print(said + verdict, flush=True)
    if asked.only is None:
        for entry in measured:
            print(f"{entry['page']}: measured by `{entry['command']}`, not run here")
        print(*coverage(claims, measured), sep="\n")
    print(f"{len(claims)} claims" + ("" if asked.list else f", {left} of them by --long alone, {failed} do not hold"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
