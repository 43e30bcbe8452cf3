"""The documentation site: pages of docs/, the gallery made by running every experiment, the reference from docstrings.

    python tools/make_site.py [--out build/site] [--only NAME ...]

Every experiment is run in its quick form, once for each state of the package; what it drew, what it says and its
program make a page, with the run itself to be turned and played where there is motion. Sphinx is asked to refuse
what is wrong (-W). ``--only`` runs these experiments alone, for a quick look.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SOURCE, RUNS = BUILD / "site-source", BUILD / "gallery"
ROOT_PAGES = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
LARGEST = 6e6  # bytes of a run that is put on a page
# Headings of the site and the folders or pages under them, in this order.
PARTS = {
    "Start": ["start", "tutorials/*"],
    "How to": ["howto/*", "guide/*"],
    "Coming from": ["coming-from/*"],
    "Theory": ["theory/notation", "theory/*"],
    "Gallery": ["experiments/index", "gallery/*"],
    "Reference": ["api", "architecture", "contributing", "changes"],
}


def state() -> str:
    """A word that changes with the package."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run_all(names: list[str], mark: str) -> None:
    """Run the experiments in their quick form, two at a time; those of the same package are there already."""
    waiting = [name for name in names if not done(name, mark)]
    running = {}
    while waiting or running:
        while waiting and len(running) < min(2, os.cpu_count() or 1):
            name = waiting.pop(0)
            shutil.rmtree(RUNS / name, ignore_errors=True)
            begin = "from contactdynamics.cli import main; main()"
            command = [sys.executable, "-c", begin, "run", name, "--quick", "--out", str(RUNS / name)]
            log = (RUNS / f"{name}.log").open("w")
            running[name] = (subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT), log)
        for name, (process, log) in list(running.items()):
            try:
                code = process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
            log.close()
            del running[name]
            if code not in (0, 1):  # 1: its check does not hold in the quick form, which the page says
                raise SystemExit(f"{name} failed: {(RUNS / f'{name}.log').read_text()[-2000:]}")
            (RUNS / name / "state").write_text(mark)
            print(f"{name}: run", flush=True)


def done(name: str, mark: str) -> bool:
    """Whether an experiment was run by this state of the package."""
    path = RUNS / name / "state"
    return path.is_file() and path.read_text() == mark


def embedded(name: str) -> str | None:
    """The page of a run with motion, written beside the others; None where there is none that is small enough."""
    import contactdynamics as cd
    from contactdynamics.views import page

    run = RUNS / name / "run.h5"
    if not run.is_file():
        return None
    with cd.open(run) as recording:
        if len(recording) < 2:
            return None
        shown = page.page_of(recording)
        if shown.size > LARGEST:
            return None
        target = SOURCE / "_extra" / "runs" / f"{name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        shown.save(target)
    return f"../runs/{name}.html"


def experiment_page(name: str) -> str:
    """The page of an experiment: what it is, the command, its pictures, its numbers, the run, the program."""
    from contactdynamics.experiments import runner

    experiment = runner.load(name)
    words = [block.strip() for block in experiment.module.__doc__.strip().split("\n\n")]
    summary = json.loads((RUNS / name / "summary.json").read_text())
    folder = SOURCE / "experiments" / "pictures" / name
    folder.mkdir(parents=True, exist_ok=True)
    out = [f"# {name}", "", f"**{experiment.title.rstrip('.')}.** {experiment.module.FIGURE}.", ""]
    for block in words[1:]:
        if any(line.startswith("    ") for line in block.split("\n")):  # a table, or commands
            out += ["```text", block, "```", ""]
        else:
            out += [re.sub(r"([*_<>\[\]#|$\\])", r"\\\1", block), ""]
    out += ["```", f"cdyn run {name} --quick", f"cdyn run {name}", "```", ""]
    pictures = sorted(p for p in (RUNS / name).iterdir() if p.suffix in (".png", ".gif"))
    pictures.sort(key=lambda p: p.stem != "figure")
    for picture in pictures:
        shutil.copy(picture, folder / picture.name)
        out += [f"![{name}: {picture.stem}](pictures/{name}/{picture.name})", ""]
    page = embedded(name)
    if page is not None:
        out += ["## The run", "", "Drag to turn, click a body to read its numbers; the keys are in its panel.", "",
                f'<iframe src="{page}" title="The run of {name}" loading="lazy"></iframe>', "",
                f'<p><a href="{page}">The run in a window of its own</a></p>', ""]  # fmt: skip
    out += [
        "## Numbers of the quick form",
        "",
        "| quantity | expected | source | computed | |",
        "|---|---|---|---|---|",
    ]
    for row in summary["checks"]:
        cells = [row.get("quantity"), row.get("expected"), row.get("source"), row.get("computed")]
        verdict = "agrees" if row.get("passed") else "differs"
        out.append("| " + " | ".join([*map(_cell, cells), verdict]) + " |")
    out += ["", "## The program", "", f"```{{literalinclude}} programs/{name}.py", ":language: python", "```", ""]
    programs = SOURCE / "experiments" / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    shutil.copy(experiment.module.__file__, programs / f"{name}.py")
    return "\n".join(out)


def _cell(value) -> str:
    if isinstance(value, float):
        value = f"{value:.6g}"
    elif isinstance(value, list):
        value = ", ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in value[:6])
    return str("" if value is None else value).replace("|", "\\|").replace("\n", " ")[:120]


def gallery(names: list[str]) -> None:
    """The pages of the experiments, and the wall of their pictures."""
    from contactdynamics.experiments import runner

    folder = SOURCE / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    wall = ["# All experiments", "", "Each of them run in its quick form by the version that this site belongs to.", "",
            '<div class="wall">']  # fmt: skip
    for name in names:
        (folder / f"{name}.md").write_text(experiment_page(name))
        picture = SOURCE / "_extra" / "wall" / f"{name}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        drawn = sorted((RUNS / name).glob("*.png"), key=lambda p: p.stem != "figure")
        if drawn:
            shutil.copy(drawn[0], picture)
        title = runner.load(name).title.replace("<", "&lt;")
        image = f'<img src="../wall/{name}.png" loading="lazy" alt="">'
        wall.append(f'<a href="{name}.html">{image}<span><b>{name}</b> {title}</span></a>')
    wall.append("</div>")
    (folder / "index.md").write_text("\n".join([*wall, "", toctree(names, hidden=True)]))
    shown = [line.replace('href="', 'href="experiments/').replace("../wall", "wall") for line in wall[4:]]
    with (SOURCE / "index.md").open("a") as file:
        file.write("\n## All experiments\n\n" + "\n".join(shown) + "\n")


def toctree(entries, caption: str = "", hidden: bool = False) -> str:
    """A table of contents for Sphinx."""
    options = [":maxdepth: 1", *([":hidden:"] if hidden else []), *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])


def pages() -> None:
    """The pages of docs/ and the root, with links that hold on the site."""
    shutil.copytree(ROOT / "docs", SOURCE)
    shutil.copytree(SOURCE / "images", SOURCE / "_extra" / "images")  # for pictures that stand in a page as HTML
    for name, target in ROOT_PAGES.items():
        text = (ROOT / name).read_text()
        (SOURCE / target).write_text(re.sub(r"\]\(docs/", "](", text))
    for page in SOURCE.rglob("*.md"):
        up = "../" * (len(page.relative_to(SOURCE).parts) - 1)
        text = page.read_text()
        for name, target in ROOT_PAGES.items():
            text = text.replace(f"]({up}../{name})", f"]({up}{target})").replace(f"]({name})", f"]({target})")
        # what is in the repository and not on the site is named, not linked
        text = re.sub(
            r"\[([^\]]*)\]\((?:\.\./)+((?:benchmarks|src|tests|examples|tools|viewer)/[^)]*)\)", r"\1 (`\2`)", text
        )
        page.write_text(text)


def reference() -> None:
    """The public names with their docstrings, functions and classes first, then the modules."""
    import contactdynamics as cd

    single, modules = [], []
    for name, place in cd._NAMES.items():
        found, path = getattr(cd, name), f"contactdynamics.{place}"
        if isinstance(found, ModuleType):
            own = getattr(found, "__all__", None) or [
                n
                for n, thing in vars(found).items()
                if n[0] != "_" and getattr(thing, "__module__", "") == found.__name__
            ]
            modules += [f"## cd.{name}", "", "```{eval-rst}", f".. automodule:: {path}", "```", ""]
            for n in own:
                if n in cd._NAMES:  # has an entry of its own
                    continue
                modules += entry(getattr(found, n), n)
        else:
            single += [f"## cd.{name}", "", *entry(found, name)]
    with (SOURCE / "api.md").open("a") as file:
        file.write("\n" + "\n".join(single + modules))


def entry(found, name: str) -> list[str]:
    """One class with its methods, or one function."""
    kind, path = ("class" if isinstance(found, type) else "function"), f"{found.__module__}.{name}"
    if not isinstance(found, type | FunctionType):
        return []
    members = ["   :members:", "   :inherited-members: tuple, TypedDict"] if kind == "class" else []
    return ["```{eval-rst}", f".. auto{kind}:: {path}", *members, "```", ""]


def contents() -> None:
    """The first page, with the table of contents of all."""
    index = (SOURCE / "index.md").read_text().replace("# Documentation", "# contactdynamics", 1)
    trees = []
    for caption, patterns in PARTS.items():
        found = []
        for pattern in patterns:
            matches = sorted(str(p.relative_to(SOURCE).with_suffix("")) for p in SOURCE.glob(f"{pattern}.md"))
            found += [m for m in matches if m not in found]
        trees.append(toctree(found, caption, hidden=True))
    (SOURCE / "index.md").write_text(index + "\n" + "\n".join(trees))


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=BUILD / "site")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    from contactdynamics.experiments import runner

    names = asked.only if asked.only is not None else runner.names()
    RUNS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(asked.out, ignore_errors=True)
    run_all(names, state())
    pages()
    gallery(names)
    reference()
    contents()
    return subprocess.call([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d",
                            str(BUILD / "doctrees"), str(SOURCE), str(asked.out)])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
