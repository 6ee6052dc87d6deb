"""Quantities of scenarios, written as in the configuration of disksla: 256MiB, 25MB/s, 20ms."""

from disksla.base.units import parse_bandwidth_bytes_per_second, parse_duration_s, parse_size_bytes


class Size(int):
    """Bytes."""


class Bandwidth(float):
    """Bytes per second."""


class Duration(float):
    """Seconds."""


def decode(kind: type, value: object) -> object:
    """Parse a quantity of a kind (a `dec_hook` of msgspec)."""
    if kind is Size:
        return Size(parse_size_bytes(str(value)))
    if kind is Bandwidth:
        return Bandwidth(parse_bandwidth_bytes_per_second(str(value)))
    if kind is Duration:
        return Duration(0.0 if value == 0 else parse_duration_s(str(value)))
    raise NotImplementedError(kind)
