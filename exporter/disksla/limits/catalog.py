"""The terms disks are sold under, as data files: a file per provider, a row per type.

Quantities stand in the files as people write them (32GiB, 15MiB/s, 0.5ms) and are read as bytes,
bytes per second and seconds.
"""

import re
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from disksla.limits.terms import Catalog, Terms
from disksla.units import (
    BYTES_PER_UNIT,
    parse_bandwidth_bytes_per_second,
    parse_duration_s,
    parse_size_bytes,
)

_QUANTITY_TAG = "!quantity"
_SIZES = "|".join(BYTES_PER_UNIT)
_QUANTITY = re.compile(rf"[0-9]+(\.[0-9]+)?(({_SIZES})(/s)?|us|ms|s|m|h|d)$")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the catalogue."""

    terms: tuple[Terms, ...]
    common: Any = None
    """What the rows have in common, for YAML to merge into them."""


def load_catalog() -> Catalog:
    """Read all terms that come with this package."""
    paths = (
        path
        for path in files("disksla.limits").joinpath("providers").iterdir()
        if path.name.endswith(".yaml")
    )
    return Catalog(
        row
        for path in sorted(paths, key=lambda path: path.name)
        for row in parse_terms(path.read_text(encoding="utf-8"))
    )


def parse_terms(text: str) -> tuple[Terms, ...]:
    """Give the rows of one file's text.

    Raises yaml.YAMLError for what is no YAML and msgspec.ValidationError, with the place within
    the document, for what are no terms.
    """
    document = yaml.load(text, Loader=_Loader)  # noqa: S506 -- derived from the safe loader
    return msgspec.convert(document, _File).terms


def _quantity(loader: Any, node: yaml.ScalarNode) -> float:
    text: str = loader.construct_scalar(node)
    if text.endswith("/s"):
        return parse_bandwidth_bytes_per_second(text)
    if text.endswith("B"):
        return parse_size_bytes(text)
    return parse_duration_s(text)


# libyaml's parser, where PyYAML was built with it, is ten times as fast.
_Loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
_Loader.add_implicit_resolver(_QUANTITY_TAG, _QUANTITY, list("0123456789"))
_Loader.add_constructor(_QUANTITY_TAG, _quantity)
