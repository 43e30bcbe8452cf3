"""Which numbers of a page state something that must come from somewhere.

Every number counts that stands in prose, in tables, in comments of commands or in comments behind a ``print`` of a
program, but for

- code itself: blocks, `words in code`, addresses of links, tags (programs of pages are run by the tests);
- formulas: lines that are quoted (``>``) or begin with a wide blank, as displayed equations do here;
- places in the literature: years (not before a unit or something counted, and in a table only after a name or
  before a section, an equation or another year), what follows "section", "eq.", "fig." or "part", and (10.8);
- versions: what follows Python, "version", "package" or the name of another program, and whatever has two dots;
- parts of names: what hangs at a word by a hyphen or an underscore;
- whole numbers of one digit, which stand for words (two walls), unless they fill a cell of a table; numbers of lists.
"""

import re
from typing import NamedTuple

POWER = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
NUMBER = re.compile(
    r"(?<![\w.,])(?<!\w[-_])(?<!\\_)\d+(?: \d{3}(?!\d))*(?:\.\d+)?"  # 34 455, 0.25, no part of a name
    rf"(?:e-?\d+|(?<=10)[{POWER}]+)?(?![\w{POWER}]|\.\d)"  # 1e-8, 10⁶
)
LIST = r"\(?\d[\d.]*\)?(?:(?:, | to | and |, and |/)\(?\d[\d.]*\)?(?![\w°]))*"
PROGRAMS = "Python|YADE|Siconos|MuJoCo|PyBullet|compas_lmgc90|[Vv]ersion|package"
COUNTED = "grains|disks|spheres|balls|blocks|stones|bodies|contacts|steps|sweeps|frames|files|times|cores|processes"
UNITS = "%|°|[µmn]?s|[cmk]?m|Hz|N|J|kg|g|[kMG]?B|dPa|GHz|minutes|seconds"
YEAR = rf"\b(?:1[789]\d\d|20(?!00)\d\d)\b(?!\.\d|°| (?:{COUNTED}|{UNITS})(?!\w))"
HIDDEN = [
    r"`[^`\n]*(?:\n[^`\n]+)?`",
    r"\]\([^)]*\)",
    r"</?[a-zA-Z][^>]*>",
    r"(?m)^(?:>|[\u2002\u2003\u3000\u00a0]).*$",
    rf"\b(?:[Ss]ections?|[Ee]qs?\.|[Ff]igs?\.|[Ff]igures?|parts?) {LIST}",
    r"(?<=[( ])\(?\(\d+\.\d+\)",
    rf"(?:{PROGRAMS}) \(?\d+\.[\w.]*",
    r"\b\d+\.\d+\.\d+\w*\b",
]
BLOCK = re.compile(r"(?ms)^```(\w*)[^\n]*\n.*?^```[^\n]*$")
FILLING = "\x00"


class Number(NamedTuple):
    """A number as it stands in the plain text of a page, at ``start`` to ``end``."""

    start: int
    end: int
    text: str


def plain(text: str) -> str:
    """``text`` with every run of blanks as one."""
    return re.sub(r"\s+", " ", text)


def _blank(match: re.Match) -> str:
    return re.sub(r"\S", FILLING, match.group())


def _comments(line: str, program: bool) -> str:
    """A line of code of which nothing is left but the comment, and that only behind a ``print`` in a program."""
    code, mark, comment = line.partition("# ")
    keep = mark and ("print(" in code if program else code[-2:] == "  ")
    return re.sub(r"\S", FILLING, code) + (mark + comment if keep else re.sub(r"\S", FILLING, mark + comment))


def prose(text: str) -> str:
    """``text`` with as many marks in the place of what does not count."""

    def block(match: re.Match) -> str:
        return "\n".join(_comments(line, match.group(1).startswith("py")) for line in match.group().split("\n"))

    text = BLOCK.sub(block, text)
    text = "\n".join(_comments(line, False) if re.match(r" {4}\S", line) else line for line in text.split("\n"))
    for hidden in HIDDEN:
        text = re.sub(hidden, _blank, text)
    lines = text.split("\n")
    for k, line in enumerate(lines):
        in_table = line.startswith("|")
        year = rf"{YEAR}(?=,? ?\x00|/\d{{4}})|(?:(?<=[^\W\d_] )|(?<=al\. )|(?<=\d\d\d\d, )){YEAR}" if in_table else YEAR
        lines[k] = re.sub(year, _blank, line)
    return "\n".join(lines)


def numbers_of(text: str) -> list[Number]:
    """The numbers of a page that count, by their places in ``plain(text)``."""
    hidden = prose(text)
    assert len(hidden) == len(text)
    found = []
    shift = [0]  # place in the plain text of every place in the text
    for before, character in zip("-" + text, text, strict=False):
        shift.append(shift[-1] + (0 if character.isspace() and before.isspace() else 1))
    joined = re.sub(r"\s", " ", hidden)
    for match in NUMBER.finditer(joined):
        if text[: match.start()][-1:] in ("", "\n") and re.match(r"\d+\. ", text[match.start() :]):
            continue
        lone = re.search(r"\| $", joined[: match.start()]) and re.match(r" \|", joined[match.end() :])
        if re.fullmatch(r"\d", match.group()) and not lone:
            continue
        found.append(Number(shift[match.start()], shift[match.end()], match.group()))
    return found
