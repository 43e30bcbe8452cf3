"""The combinations of a study: values as the user writes them, and the folders of their runs."""

import hashlib
import itertools
import math
import re

import numpy as np

from ..errors import InputError
from ..experiments import options, runner

MOST = 100_000  # runs of a study
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
LONGEST = 120  # characters of a folder's name


def values_of(key: str, text: str, default) -> list[str]:
    """The values of ``--set key=text``, as texts: ``a:b:n`` are n numbers from a to b, ``i..j`` whole ones.

    Several are parted by commas, where one value is itself a list by semicolons.
    """
    parts = text.split(";") if isinstance(default, list | tuple) else text.split(",")
    found = []
    for part in (part.strip() for part in parts):
        whole = RANGE.fullmatch(part)
        if whole and not isinstance(default, str):
            first, last = map(int, whole.groups())
            if last < first or last - first >= MOST:
                raise InputError(f"--set {key}={text}: {part} has no numbers, or too many; write for example 1..20.")
            found += [str(k) for k in range(first, last + 1)]
        elif part.count(":") == 2 and not isinstance(default, str):
            found += _spread(key, text, part, default)
        elif part:
            found.append(part)
    if not found:
        raise InputError(f"--set {key}={text} has no value; give one, several (1,2,3), 0.1:0.9:9 or 1..20.")
    return found


def _spread(key: str, text: str, part: str, default) -> list[str]:
    """``a:b:n`` as n texts."""
    try:
        first, last, count = (kind(x) for kind, x in zip((float, float, int), part.split(":"), strict=True))
    except ValueError:
        count = 0
    if not (0 < count <= MOST and math.isfinite(first) and math.isfinite(last)):
        raise InputError(f"--set {key}={text}: {part} is no spread FIRST:LAST:COUNT; write for example 0.1:0.9:9.")
    numbers = np.linspace(first, last, count)
    if isinstance(default, int) and not isinstance(default, bool):
        if not np.array_equal(numbers, np.round(numbers)):
            raise InputError(f"--set {key}={text}: {key} is a whole number; choose a COUNT that gives whole ones.")
        return [str(int(x)) for x in numbers]
    return [repr(float(f"{x:.12g}")) for x in numbers]  # 0.3, and not 0.30000000000000004


def texts_of(experiment, parameters: dict) -> dict[str, list[str]]:
    """``parameters`` of `study`, values or lists of values, as texts by key; known options alone."""
    defaults, found = experiment.module.PARAMETERS, {}
    for key, value in parameters.items():
        if key not in defaults:
            options.chosen(experiment.name, defaults, {}, {key: "1"})  # says which there are
        if isinstance(value, str) and not isinstance(defaults[key], str):
            found[key] = values_of(key, value, defaults[key])
            continue
        several = isinstance(value, list | tuple | range | np.ndarray) and not (
            isinstance(defaults[key], list | tuple) and not any(isinstance(v, list | tuple) for v in value)
        )
        found[key] = [options.shown(_plain(v)) for v in (value if several else [value])]
        if not found[key]:
            raise InputError(f"study got {key}={value!r}; give a value, or a list of some.")
    return found


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def combinations(experiment, texts: dict[str, list[str]], quick: bool) -> list[tuple[dict, dict]]:
    """All combinations: settings as texts, and the parameters of the run, each checked before anything is run."""
    total = math.prod(len(values) for values in texts.values())
    if total > MOST:
        raise InputError(f"The study has {total} runs; {MOST} are the most, give fewer values.")
    found = {}
    for chosen in itertools.product(*texts.values()):
        parameters = runner.parameters_of(experiment, dict(zip(texts, chosen, strict=True)), quick)
        settings = {key: options.shown(parameters[key]) for key in texts}  # 1 and 1.0 are one value
        found[tuple(settings.values())] = settings, runner.plain(parameters)
    return list(found.values())


def folder_name(settings: dict[str, str]) -> str:
    """The folder of a run, from its settings."""
    name = ",".join(f"{key}={value}" for key, value in settings.items()) or "run"
    plain = re.sub(r"[^\w=,.+-]", "_", name)
    if plain == name and len(name) <= LONGEST:
        return name
    return f"{plain[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
