"""YAML files to typed records, with every problem and its line."""

from disksla.base.schema.field_types import (
    Bytes,
    BytesPerSecond,
    Date,
    Flag,
    LongText,
    Number,
    Seconds,
    Text,
    duration,
    number,
    pattern,
    percentage,
    rate,
    size,
    whole_number,
)
from disksla.base.schema.reader import InvalidFieldsError, Node, Overrides, read_record
from disksla.base.schema.shape import FieldType, choice, close_match
