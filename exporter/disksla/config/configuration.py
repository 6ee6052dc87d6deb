"""The configuration: everything that files say, as one record."""

import msgspec

from disksla.config.settings import Settings
from disksla.config.terms_file import TermsFile
from disksla.limits import Catalog, MachineChoice


class Configuration(msgspec.Struct, frozen=True):
    """Settings, the catalogue with the operator's rows, the machine, and terms files."""

    settings: Settings
    catalog: Catalog
    machines: tuple[MachineChoice, ...] = ()
    """The machine that disksla runs on, for each provider of its disks that has limits of it."""
    machine_problem: str | None = None
    """Why the limits of the machine are not known although its type is."""
    terms_files: tuple[TermsFile, ...] = ()
    """What the files of terms.d say, the best source first."""
