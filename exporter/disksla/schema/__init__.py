"""YAML files to typed records, with every problem and its line."""

from disksla.schema.fields import (
    Bytes,
    BytesPerSecond,
    Date,
    Flag,
    LongText,
    Number,
    Seconds,
    Text,
    choice,
    duration,
    number,
    pattern,
    percentage,
    rate,
    size,
    whole_number,
)
from disksla.schema.reader import FieldType, InvalidFieldsError, Overrides, close_match
