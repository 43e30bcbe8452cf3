"""The options of an experiment: default, meaning, unit and the values that make sense, told once.

    PARAMETERS = Options(
        grains=Option(14_000, "grains poured", least=20),
        step=Option(2e-4, "time step", "s", above=0, most=2e-3),
    )

`Options` is a dict of the plain defaults, so that ``PARAMETERS["grains"]`` is 14000; a plain dict does as well where
nothing is to be explained. Every run is checked here, at one door; `build` checks only what links several options.
"""

import json
import math
import operator
from difflib import get_close_matches
from typing import Any, NamedTuple

from contactdynamics.errors import InputError

BOUNDS = {"above": operator.gt, "least": operator.ge, "below": operator.lt, "most": operator.le}
PAIRS = (("above", "least"), ("below", "most"))
WORDS = {"above": "above", "least": "at least", "below": "below", "most": "at most"}
KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


class Option(NamedTuple):
    """One option. The bounds hold for each number of a list; ``unit`` is "1" for a pure number."""

    default: Any
    meaning: str
    unit: str = ""
    above: float | None = None  # value > above
    least: float | None = None  # value >= least
    below: float | None = None  # value < below
    most: float | None = None  # value <= most
    numbers: tuple[int, ...] = ()  # how many a list may have; any where empty

    @property
    def possible(self) -> str:
        """The bounds in words."""
        low, high = (next((k for k in pair if getattr(self, k) is not None), None) for pair in PAIRS)
        if (low, high) == ("least", "most"):
            bounds = f"{_number(self.least)} to {_number(self.most)}"
        else:
            bounds = " and ".join(f"{WORDS[k]} {_number(getattr(self, k))}" for k in (low, high) if k)
        count = f"{' or '.join(map(str, self.numbers))} numbers" if self.numbers else ""
        return ", each ".join(part for part in (count, bounds) if part)

    def holds(self, value) -> bool:
        """Whether ``value`` is within the bounds."""
        if isinstance(value, list | tuple):
            return (not self.numbers or len(value) in self.numbers) and all(map(self.holds, value))
        bounds = {key: getattr(self, key) for key in BOUNDS if getattr(self, key) is not None}
        return all(BOUNDS[key](value, bound) for key, bound in bounds.items())


class Options(dict):
    """The defaults of an experiment by name; ``told`` has the `Option` of each."""

    def __init__(self, **told: Option):
        super().__init__({key: option.default for key, option in told.items()})
        self.told = told


def option_of(parameters: dict, key: str) -> Option:
    """What is known of an option; of a plain dict only the default."""
    told = getattr(parameters, "told", {})
    return told[key] if key in told else Option(parameters[key], "")


def chosen(name: str, defaults: dict, quick: dict, settings: dict[str, str]) -> dict:
    """The parameters of a run: defaults, then the quick values, then the user's settings, read by type and checked."""
    parameters = dict(defaults) | quick
    for key, text in settings.items():
        if key not in parameters:
            near = get_close_matches(key, parameters, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(parameters) or 'none'}."
            raise InputError(f"{name} has no option {key!r}; {hint}")
        option = option_of(defaults, key)
        parameters[key] = parsed(key, text, option.default)
        if not option.holds(parameters[key]):
            unit = f" ({option.unit})" if option.unit not in ("", "1") else ""
            raise InputError(
                f"The option {key}={text} of {name} ({option.meaning}) is out of range; give {option.possible}{unit}, "
                f"for example {key}={shown(quick.get(key, option.default))}."
            )
    return parameters


def parsed(key: str, text: str, default):
    """Read ``text`` as a value of the type of ``default``."""
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}[text.lower()]
        if isinstance(default, int):
            return _whole(text)
        if isinstance(default, float):
            return _finite(text)
        if isinstance(default, str) or default is None:
            return text
        values = json.loads(text if text.startswith("[") else f"[{text}]", parse_constant=_finite)
        if not all(isinstance(value, int | float) and _finite(value) == value for value in values):
            raise ValueError
        return type(default)(values)
    except (ValueError, KeyError, TypeError, OverflowError):
        kind = KINDS.get(type(default), "a list like 1,2,3")
        raise InputError(f"The option {key}={text} is not {kind}; give for example {key}={shown(default)}.") from None


def _finite(text) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) >= 2**63:  # what arrays can hold
        raise ValueError
    return value


def shown(value) -> str:
    """A value as the user types it."""
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value))
    return str(value)


def _number(value) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def listing(defaults: dict, quick: dict) -> list[tuple[str, str, str, str, str]]:
    """(name, default, quick value, meaning with its unit, bounds) of every option."""
    lines = []
    for key, default in defaults.items():
        option = option_of(defaults, key)
        unit = f", {option.unit}" if option.unit not in ("", "1") else ""
        fast = shown(quick[key]) if key in quick else ""
        lines.append((key, shown(default), fast, option.meaning + unit, option.possible))
    return lines
