"""The configuration: everything that files say, those of terms.d among them, as one record."""

from collections.abc import Mapping
from typing import Annotated, cast

import msgspec

from disksla.promise.catalogue import TERMS_SOURCES, Catalog, MachineChoice
from disksla.promise.configuration.custom_terms import CustomTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import CATALOG_ID, SoldDisk
from disksla.promise.terms_file import TermsFileOf

TermsFile = TermsFileOf[DiskEntry | None]  # None in place of an invalid entry


class FileEntry(SoldDisk, frozen=True):
    """The terms of the matching disks, or the provider's name of their type."""

    terms: Annotated[str, CATALOG_ID] | CustomTerms | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a type that is given twice or not at all, and as DiskEntry does."""
        super().__post_init__()
        if (self.terms is None) == (self.api_type is None):
            raise ValueError("found both or none of terms and api_type; expected one of them")
        self.used_as(None)

    def used_as(self, provider: str | None) -> DiskEntry:
        """Return the entry as that of the configuration; `provider` is that of the file."""
        terms = self.terms
        if self.api_type is not None:
            provider = self.provider or provider
            terms = f"{provider}.{self.api_type}" if provider else self.api_type
        values = msgspec.structs.asdict(self)
        values |= {name: values[name] or None for name in ("iops", "bytes_per_second")}
        del values["provider"], values["api_type"]
        return DiskEntry(**values | {"terms": terms})


def used_as(
    file: TermsFileOf[FileEntry | None], name: str, modified_timestamp_s: float
) -> TermsFile:
    """Return what the file `name` says, which was changed at a time in seconds since 1970.

    A type that the catalogue does not have is kept: the provider may have a new one.
    """
    as_of_s = file.as_of_timestamp_s
    if as_of_s is None and file.tried_timestamp_s is None:
        as_of_s = modified_timestamp_s
    used = msgspec.structs.replace(
        file,
        name=name,
        origin=file.origin or name,
        as_of_timestamp_s=as_of_s,
        disks=tuple(each and each.used_as(file.provider) for each in file.disks),
        volumes=tuple(filter(None, file.volumes)),
        problems=tuple(filter(None, file.problems)),
    )
    return cast(TermsFile, used)


def in_order(files: tuple[TermsFile, ...]) -> tuple[TermsFile, ...]:
    """Return files by precedence: those of people, then the API, then metadata; by name."""
    return tuple(sorted(files, key=lambda file: (TERMS_SOURCES.index(file.source), file.name)))


class ConfigurationText(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the operator wrote, for recordings: it is checked again when they are read."""

    settings: str = ""  # the configuration file; empty without one
    catalog: Mapping[str, str] = {}  # the files of `catalog.d`, by path


class Configuration(msgspec.Struct, frozen=True):
    """Settings, the catalogue with the operator's rows, the machine, and terms files."""

    settings: Settings
    catalog: Catalog
    machines: tuple[MachineChoice, ...] = ()
    """The machine that disksla runs on, for each provider of its disks that has limits of it."""
    machine_problem: str | None = None
    """Why the limits of the machine are not known although its type is."""
    unknown_machines: frozenset[str] = frozenset()
    """Providers whose machines have limits, where the type of this one is not known."""
    terms_files: tuple[TermsFile, ...] = ()  # what the files of terms.d say, the best source first
