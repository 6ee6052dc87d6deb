"""Terms files: what people, tools or `disksla detect` say of the disks of this machine.

A file of `terms.d` has entries as `disks` of the configuration has, and says when it was true. It
is written by Terraform, Ansible or a person, or by `disksla detect` from the provider's API or
metadata service.
"""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec

from disksla.base.errors import ExchangeReason
from disksla.base.schema import FieldType, Text, duration, rate
from disksla.base.units import parse_bandwidth_bytes_per_second
from disksla.promise.catalogue import TERMS_SOURCES, Catalog, TermsSource
from disksla.promise.configuration.custom_terms import CustomTerms
from disksla.promise.configuration.fields import CATALOG_ID
from disksla.promise.configuration.settings import DiskEntry, DiskValues, Strict


def _parse_time(text: str) -> float:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(f"found '{text}'; expected {_TIME}")
    return time.timestamp()


_TIME = "a time with its zone such as 2026-08-21T10:30:00Z"
Time = Annotated[float, FieldType(_TIME, _parse_time)]
"""Seconds since 1970."""
_Source = Literal["file", "api", "metadata"]
_BANDWIDTH = FieldType("a bandwidth such as 25MB/s or 240MiB/s", parse_bandwidth_bytes_per_second)
_ApiType = Annotated[str, CATALOG_ID]


class _Entry(DiskValues, frozen=True):
    """The terms of the matching disks, or the provider's name of their type."""

    iops: Annotated[float, rate(0, 10**9)] | None = None
    """0 for none, as Terraform writes it; so for bandwidth."""
    bytes_per_second: Annotated[float, _BANDWIDTH] | None = msgspec.field(
        default=None, name="bandwidth"
    )
    terms: Annotated[str, CATALOG_ID] | CustomTerms | None = None
    provider: Text | None = None
    """The provider of the type; None for that of the file."""
    api_type: _ApiType | None = None
    """As the provider's API spells it."""

    def __post_init__(self) -> None:
        """Raise ValueError for a type that is given twice or not at all."""
        super().__post_init__()
        if (self.terms is None) == (self.api_type is None):
            raise ValueError("found both or none of terms and api_type; expected one of them")


class _Machine(Strict, frozen=True):
    type: Text | None = None


class TermsProblem(Strict, frozen=True):
    """What `disksla detect` could not find out, and why."""

    source: _Source
    reason: ExchangeReason
    message: Text


class KubernetesVolume(Strict, frozen=True):
    """A PersistentVolume, as the API of Kubernetes describes it."""

    driver: Text
    volume_handle: Text
    persistent_volume: Text | None = None
    claim: Text | None = None
    namespace: Text | None = None
    storage_class: Text | None = None


class TermsContent(Strict, frozen=True):
    """The content of a file, as it is written."""

    source: _Source = "file"
    origin: Text | None = None
    as_of_timestamp_s: Time | None = msgspec.field(default=None, name="as_of")
    tried_timestamp_s: Time | None = msgspec.field(default=None, name="tried_at")
    max_age_s: Annotated[float, duration("1s", "3650d", "2h")] | None = msgspec.field(
        default=None, name="max_age"
    )
    provider: Text | None = None
    machine: _Machine = _Machine()
    disks: tuple[_Entry, ...] = ()
    volumes: tuple[KubernetesVolume, ...] = ()
    problems: tuple[TermsProblem, ...] = ()
    common: Any = None

    def to_file(self, name: str, catalog: Catalog, modified_timestamp_s: float) -> "TermsFile":
        """Return what the file `name` says, which was changed at a time in seconds since 1970.

        A type that the catalogue does not have is kept: the provider may have a new one.
        """
        as_of_s = self.as_of_timestamp_s
        if as_of_s is None and self.tried_timestamp_s is None:
            as_of_s = modified_timestamp_s
        return TermsFile(
            name=name,
            source=self.source,
            origin=self.origin or name,
            as_of_timestamp_s=as_of_s,
            tried_timestamp_s=self.tried_timestamp_s,
            max_age_s=self.max_age_s,
            provider=self.provider,
            machine_type=self.machine.type,
            entries=tuple(_entry(entry, self.provider, catalog) for entry in self.disks),
            problems=self.problems,
            volumes=self.volumes,
        )


class TermsFile(msgspec.Struct, frozen=True):
    """What a file says."""

    name: str
    """Its path."""
    source: TermsSource
    origin: str
    """Who says it, for people: 'EC2 API', or the path."""
    as_of_timestamp_s: float | None
    """When it was true, in seconds since 1970; None if nothing was found out yet."""
    tried_timestamp_s: float | None = None
    """Of the last attempt to find it out; None for files of people."""
    max_age_s: float | None = None
    """Age from which it may have changed; None if that is not known."""
    provider: str | None = None
    """Whose disks they are, where the file says it once."""
    machine_type: str | None = None
    entries: tuple[DiskEntry, ...] = ()
    problems: tuple[TermsProblem, ...] = ()
    volumes: tuple[KubernetesVolume, ...] = ()

    @property
    def expiry_timestamp_s(self) -> float | None:
        """Until when it may be relied on, in seconds since 1970; None if that is not known."""
        if self.max_age_s is None or self.as_of_timestamp_s is None:
            return None
        return self.as_of_timestamp_s + self.max_age_s


def in_order(files: tuple[TermsFile, ...]) -> tuple[TermsFile, ...]:
    """Return files by precedence: those of people, then the API, then metadata; by name."""
    return tuple(sorted(files, key=lambda file: (TERMS_SOURCES.index(file.source), file.name)))


def _entry(entry: _Entry, provider: str | None, catalog: Catalog) -> DiskEntry:
    """Return an entry as that of the configuration, with the catalogue's id of its type."""
    terms = entry.terms
    if entry.api_type is not None:
        provider = entry.provider or provider
        terms = f"{provider}.{entry.api_type}" if provider else entry.api_type
    if isinstance(terms, str):
        row = catalog.find(terms)
        terms = terms if row is None else row.id
    values = msgspec.structs.asdict(entry)
    values |= {name: values[name] or None for name in ("iops", "bytes_per_second")}
    del values["provider"], values["api_type"]
    return DiskEntry(**values | {"terms": terms})
