"""YAML files into typed records, with every problem and its line."""

from disksla.schema.fields import Text, choice, duration, pattern, percentage, quantity, rate, size
from disksla.schema.reader import FieldType, Overrides, close_match

__all__ = [
    "FieldType",
    "Overrides",
    "Text",
    "choice",
    "close_match",
    "duration",
    "pattern",
    "percentage",
    "quantity",
    "rate",
    "size",
]
