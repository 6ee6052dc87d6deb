"""Reading the configuration file: YAML in, settings or a list of problems out."""

from pathlib import Path

from apscheduler.triggers.cron import CronTrigger

from disksla.config.fields import CATALOG_ID, CRONTAB
from disksla.config.matching import provision_of
from disksla.config.settings import DiskEntry, Settings
from disksla.errors import DiskslaError
from disksla.limits import Catalog, derive_limits
from disksla.schema import Overrides
from disksla.schema.yaml_file import open_file, parse_record, read_bounded
from disksla.units import TIB

_LARGEST_DISK_BYTES = 1024 * TIB
"""Bounds of provisioning widen with the size: what is refused at this size is refused at all."""


def read_settings(path: Path | None, catalog: Catalog) -> Settings:
    """Give the settings that a file states, or the defaults where there is no file.

    Raises one Refusal that names every problem, a line each, as `FILE:LINE: KEY: what was found;
    what would be right`.
    """
    if path is None:
        return Settings()
    try:
        with open_file(path) as file:
            data = read_bounded(file)
    except OSError as error:
        raise DiskslaError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DiskslaError(f"{path} {error}; expected a configuration file") from error
    return parse_settings(data, str(path), catalog)


def parse_settings(data: bytes, name: str, catalog: Catalog) -> Settings:
    """Give the settings that the content of a file states; `name` stands before each problem."""
    return parse_record(data, name, Settings, _overrides(catalog))


def _overrides(catalog: Catalog) -> Overrides:
    """Give what only others know: ids of the catalogue and what they need, and times of jobs."""

    def known(text: str) -> str:
        try:
            return catalog[CATALOG_ID.parse(text)].id
        except DiskslaError as error:
            raise ValueError(str(error)) from error

    def derivable(entry: DiskEntry) -> None:
        if isinstance(entry.terms, str):
            size_bytes = entry.size_bytes or _LARGEST_DISK_BYTES
            try:
                derive_limits(catalog[entry.terms], size_bytes, provision_of(entry))
            except DiskslaError as error:
                raise ValueError(str(error)) from error

    return {CATALOG_ID: known, DiskEntry: derivable, CRONTAB: _schedulable}


def _schedulable(text: str) -> str:
    """Give a crontab line that whoever runs the jobs understands."""
    line: str = CRONTAB.parse(text)
    try:
        CronTrigger.from_crontab(line, timezone="UTC")
    except ValueError as error:
        raise ValueError(f"found '{text}' ({error}); expected {CRONTAB.expected}") from error
    return line
