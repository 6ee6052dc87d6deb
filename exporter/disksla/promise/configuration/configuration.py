"""The configuration: everything that files say, as one record."""

from collections.abc import Mapping

import msgspec

from disksla.promise.catalogue import Catalog, MachineChoice
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.terms_file import TermsFile


class ConfigurationText(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the operator wrote, for recordings: it is checked again when they are read."""

    settings: str = ""
    """The configuration file; empty without one."""
    catalog: Mapping[str, str] = {}
    """The files of `catalog.d`, by path."""


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
    terms_files: tuple[TermsFile, ...] = ()
    """What the files of terms.d say, the best source first."""
