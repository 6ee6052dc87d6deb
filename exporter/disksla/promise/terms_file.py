"""Terms files: what people, tools or `disksla detect` say of the disks of this machine.

A file of `terms.d` has entries as `disks` of the configuration has, and says when it was true. It
is written by Terraform, Ansible or a person, or by `disksla detect` from the provider's API or
metadata service. There is one record, one reader and one writer, for the daemon and for `disksla
detect`, which loads neither the catalogue nor YAML.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError, ExchangeReason
from disksla.base.schema import FieldType, Node, Text, duration, read_record
from disksla.base.units import GIB, MB, MIB
from disksla.promise.disk_entry import SoldDisk, Strict

Entry_co = TypeVar("Entry_co", covariant=True)
T = TypeVar("T")

_Source = Literal["file", "api", "metadata"]
LISTS = ("disks", "volumes", "problems")  # an invalid item of them costs that item, not the file
_TIME = "a time with its zone such as 2026-08-21T10:30:00Z"


def _parse_time(text: str) -> float:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(f"found '{text}'; expected {_TIME}")
    return time.timestamp()


Time = Annotated[float, FieldType(_TIME, _parse_time)]  # seconds since 1970


class MachineTerms(Strict, frozen=True, omit_defaults=True):
    """What is said of the machine."""

    type: Text | None = None


class DetectionProblem(Strict, frozen=True, kw_only=False):
    """Something that `disksla detect` could not find out."""

    source: _Source
    reason: ExchangeReason
    message: Text


class PersistentVolume(Strict, frozen=True, kw_only=False, omit_defaults=True):
    """A PersistentVolume, as the API of Kubernetes describes it."""

    driver: Text
    volume_handle: Text
    persistent_volume: Text | None = None
    claim: Text | None = None
    namespace: Text | None = None
    storage_class: Text | None = None


class TermsFileOf(Strict, Generic[Entry_co], frozen=True, kw_only=False):
    """What a file says."""

    name: str = ""  # its path
    source: _Source = "file"
    origin: Text = ""  # who says it, for people: 'EC2 API'; without it, the path
    as_of_timestamp_s: Time | None = msgspec.field(default=None, name="as_of")
    """When it was true, in seconds since 1970; None if nothing was found out yet. Of a file that
    does not say it, when it was written."""
    tried_timestamp_s: Time | None = msgspec.field(default=None, name="tried_at")
    """Of the last attempt to find it out; None for files of people."""
    max_age_s: Annotated[float, duration("1s", "3650d", "2h")] | None = msgspec.field(
        default=None, name="max_age"
    )
    """Age from which it may have changed; None if that is not known."""
    provider: Text | None = None  # whose disks they are, where the file says it once
    machine: MachineTerms = MachineTerms()
    disks: tuple[Entry_co, ...] = ()
    """None for an invalid one, where those are spared: the others keep their places."""
    volumes: tuple[PersistentVolume, ...] = ()
    problems: tuple[DetectionProblem, ...] = ()
    common: Any = None
    """Anchors, for aliases and merge keys elsewhere in the file; always None here."""

    @property
    def expiry_timestamp_s(self) -> float | None:
        """Until when it may be relied on, in seconds since 1970; None if that is not known."""
        if self.max_age_s is None or self.as_of_timestamp_s is None:
            return None
        return self.as_of_timestamp_s + self.max_age_s

    def entries(self: "TermsFileOf[T | None]") -> Iterator[tuple[int, T]]:
        """Yield the valid entries with their places in the file, counted from 0."""
        return ((place, each) for place, each in enumerate(self.disks) if each is not None)


def encode_terms_file(file: TermsFileOf[SoldDisk]) -> bytes:
    """Return a file as `disksla detect` writes it: JSON, indented, with a newline at the end."""
    content = {
        "source": file.source,
        "origin": file.origin,
        "as_of": _time_text(file.as_of_timestamp_s),
        "tried_at": _time_text(file.tried_timestamp_s),
        "max_age": _quantity(file.max_age_s, {"h": 3600}, "s"),
        "provider": file.provider,
        "machine": file.machine,
        "disks": [_written(entry) for entry in file.disks],
        "volumes": file.volumes or None,
        "problems": file.problems,
    }
    known = {key: value for key, value in content.items() if value is not None}
    return msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n"


def decode_terms_file(data: bytes) -> TermsFileOf[SoldDisk]:
    """Return what a file of `disksla detect` says. Raise DiskslaError for any other file."""
    try:
        root = _node(msgspec.json.decode(data))
    except DECODE_ERRORS as error:
        raise DiskslaError(f"found another file than that of disksla detect: {error}") from error
    file, problems = read_record(root, TermsFileOf[SoldDisk])
    if file is None or file.source == "file" or file.provider is None:
        why = "; ".join(f"{each.path}: {each.text}" for each in problems[:1]) or "no provider"
        raise DiskslaError(f"found another file than that of disksla detect: {why}")
    return file


def _node(value: Any) -> Node:
    """Return a JSON value as the reader of files takes it, where every value is text."""
    if isinstance(value, dict):
        return Node(1, {key: _node(each) for key, each in value.items()})
    if isinstance(value, list):
        return Node(1, [_node(each) for each in value])
    return Node(1, None if value is None else str(value))


def _written(entry: SoldDisk) -> dict[str, Any]:
    """Return an entry with its quantities as people write them."""
    quantities = {
        "size": _quantity(entry.size_bytes(), {"GiB": GIB}, "B"),
        "iops": None if entry.iops is None else int(entry.iops),
        "bandwidth": _quantity(entry.bytes_per_second, {"MiB/s": MIB, "MB/s": MB}, "B/s"),
    }
    content: dict[str, Any] = msgspec.to_builtins(entry)
    return content | {key: text for key, text in quantities.items() if text is not None}


def _quantity(amount: float | None, units: Mapping[str, int], smallest: str) -> str | None:
    """Return an exact quantity in the first unit of which it is a multiple."""
    if amount is None:
        return None
    for unit, factor in units.items():
        if amount % factor == 0:
            return f"{int(amount) // factor}{unit}"
    return f"{int(amount)}{smallest}"


def _time_text(timestamp_s: float | None) -> str | None:
    if timestamp_s is None:
        return None
    return dt.datetime.fromtimestamp(timestamp_s, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
