"""The text of a scenario, whose random numbers follow from a seed. Pure functions.

`$name` stands for the value of a name in the section `random`:

- `name: [CHOICE, CHOICE]`: one of these numbers or words;
- `name: {from: LEAST, to: MOST}`: a whole number from LEAST to MOST;
- `name: {of: OTHER, times: FACTOR}`: the number of a name above, times a factor, rounded;
- `name: {of: OTHER, from: LEAST, to: MOST}`: the same, with a random factor.
"""

import random
from string import Template
from typing import Any

import msgspec
import yaml

_EXPECTED = (
    "[CHOICE, CHOICE], {from: LEAST, to: MOST} in whole numbers, {of: NAME, times: FACTOR}"
    " or {of: NAME, from: LEAST, to: MOST}"
)


class _Sections(msgspec.Struct, frozen=True):
    random: dict[str, Any] = {}


def filled(name: str, text: str, seed: int) -> str:
    """Return the text of a scenario with the random numbers of its name and of a seed.

    Raise ValueError if the section `random` is invalid, or a name is missing there.
    """
    generator = random.Random(f"{seed} {name}")
    values: dict[str, Any] = {}
    for key, rule in msgspec.convert(yaml.safe_load(text), _Sections).random.items():
        try:
            values[key] = _value(rule, values, generator)
        except ValueError as error:
            raise ValueError(f"{name}: random: {key}: {error}") from None
    try:
        return Template(text).substitute(values)
    except KeyError as error:
        raise ValueError(f"{name}: ${error.args[0]}: not in the section `random`") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _value(rule: Any, values: dict[str, Any], generator: random.Random) -> Any:
    match rule:
        case [_, *_]:
            return generator.choice(rule)
        case {"from": int(least), "to": int(most), **rest} if not rest and least <= most:
            return round(generator.uniform(least, most))
        case {"of": str(other), "times": int() | float() as factor, **rest} if not rest:
            return round(factor * _number(other, values))
        case {
            "of": str(other),
            "from": int() | float() as least,
            "to": int() | float() as most,
            **rest,
        } if not rest and least <= most:
            return round(generator.uniform(least, most) * _number(other, values))
        case _:
            raise ValueError(f"found {rule}; expected {_EXPECTED}")


def _number(name: str, values: dict[str, Any]) -> float:
    match values.get(name):
        case int() | float() as number:
            return number
        case _:
            raise ValueError(f"of: found {name}; expected a name above that has a number")
