"""Reads the files of the operator: the configuration file, and the catalogue files beside it."""

from datetime import UTC
from pathlib import Path
from typing import NamedTuple

import msgspec
from apscheduler.triggers.cron import CronTrigger

from disksla.base.errors import DiskslaError
from disksla.base.schema import Overrides
from disksla.base.schema.yaml_file import MAX_FILE_BYTES, parse_record, read_file
from disksla.base.units import TIB
from disksla.promise.catalogue import (
    Catalog,
    MachineChoice,
    beyond_bounds,
    beyond_sizes,
    derive_limits,
)
from disksla.promise.catalogue.catalog import catalog_with, load_catalog, operator_files
from disksla.promise.catalogue.machine_tables import (
    load_machine_rules,
    providers_with_machines,
    read_machine,
)
from disksla.promise.configuration.configuration import Configuration, ConfigurationText, TermsFile
from disksla.promise.configuration.matching import machine_type_of, provision_of, require_kind
from disksla.promise.configuration.settings import CRONTAB, DiskEntry, Settings, detected_directory
from disksla.promise.disk_entry import CATALOG_ID

DEFAULT_DIRECTORY = Path("/etc/disksla")
DEFAULT_FILE = DEFAULT_DIRECTORY / "disksla.yml"
TERMS_DIRECTORY = "terms.d"  # beside the configuration file

_LARGEST_DISK_BYTES = 1024 * TIB
"""Where the size of a disk is not known: a disk of this size may have any option, and bounds of
provisioned values grow with the size."""


class TermsDirectory(NamedTuple):
    """A directory with terms files."""

    path: Path
    follows_links: bool = True  # whether a file may be a link, as those are that Kubernetes mounts


def file_in_force(config_file: Path | None, default: Path = DEFAULT_FILE) -> Path | None:
    """Return the configuration file that applies: the one that is named, else the default one.

    None if none is named and the default one does not exist. One that cannot be examined is
    returned, so that reading it says why.
    """
    if config_file is not None:
        return config_file
    try:
        default.stat()
    except FileNotFoundError:
        return None
    except OSError:
        pass
    return default


def catalog_directory(config_file: Path | None) -> Path:
    """Return `catalog.d` beside the configuration file, or in the default directory."""
    return (config_file.parent if config_file is not None else DEFAULT_DIRECTORY) / "catalog.d"


def terms_directories(
    config_file: Path | None, settings: Settings
) -> tuple[TermsDirectory, TermsDirectory]:
    """Return where terms files are: those of people, and those of `disksla detect`.

    Each belongs to another user than the state directory, who could otherwise replace it.
    """
    beside = config_file.parent if config_file is not None else DEFAULT_DIRECTORY
    return (
        TermsDirectory(beside / TERMS_DIRECTORY),
        TermsDirectory(Path(detected_directory(settings.state.directory)), follows_links=False),
    )


def read_configuration(config_file: Path | None) -> Configuration:
    """Read the configuration file in force, if any, and the catalogue with the operator's rows.

    Raise one DiskslaError that lists every problem of all files, a line each.
    """
    config_file = file_in_force(config_file)
    catalog: Catalog | None = None
    problems = []
    try:
        catalog = load_catalog(catalog_directory(config_file))
    except DiskslaError as error:
        problems.append(str(error))
    try:
        settings = read_settings(config_file, catalog)
    except DiskslaError as error:
        problems.append(str(error))
    else:
        try:
            machines, unknown, problem = _read_machines(settings)
        except DiskslaError as error:
            problems.append(f"{config_file}: machine.type: {error}")
        else:
            if catalog is not None:
                return Configuration(settings, catalog, machines, problem, unknown)
    raise DiskslaError("\n".join(problems))


def read_text(config_file: Path | None) -> ConfigurationText:
    """Return the content of the files of `read_configuration`; raise DiskslaError as it does."""
    config_file = file_in_force(config_file)
    rows = operator_files(catalog_directory(config_file))
    return ConfigurationText(
        "" if config_file is None else read_file(config_file).decode(),
        {str(path): read_file(path).decode() for path in rows},
    )


def parse_text(text: ConfigurationText, name: str) -> Configuration:
    """Return the settings and the catalogue of a text that is in the file `name`.

    Raise DiskslaError as `read_configuration` does.
    """
    for content in (text.settings, *text.catalog.values()):
        if len(content) > MAX_FILE_BYTES:
            raise DiskslaError(f"{name}: found a configuration above 1 MiB; expected less")
    catalog = catalog_with(text.catalog)
    settings = parse_settings(text.settings.encode(), f"{name}: configuration", catalog)
    return Configuration(settings, catalog)


def with_terms_files(
    configuration: Configuration, terms_files: tuple[TermsFile, ...]
) -> Configuration:
    """Return the configuration with other terms files, and the machine that follows from them."""
    machines, unknown, problem = _read_machines(configuration.settings, terms_files)
    return msgspec.structs.replace(
        configuration,
        machines=machines,
        machine_problem=problem,
        unknown_machines=unknown,
        terms_files=terms_files,
    )


def _read_machines(
    settings: Settings, terms_files: tuple[TermsFile, ...] = ()
) -> tuple[tuple[MachineChoice, ...], frozenset[str], str | None]:
    """Return how the limits of this machine are found, for each provider of the disks.

    Return also for which providers they are not known, and why its type is not found: that of a
    terms file may be new. Raise DiskslaError if the provider of a disk does not have the type that
    is configured.
    """
    name = machine_type_of(settings, terms_files)
    machines, errors, unknown = [], [], set()
    for provider in sorted(_providers(settings, terms_files)):
        rules = load_machine_rules(provider)
        if rules is None:
            continue
        if rules.key == "vcpus":
            machines.append(MachineChoice(rules, None))
            continue
        unknown.add(provider)
        if name is not None:
            try:
                machines.append(MachineChoice(rules, read_machine(rules, name, None)))
                unknown.remove(provider)
            except DiskslaError as error:
                errors.append(str(error))
    if settings.machine.limits is not None:
        unknown.clear()
    is_found = any(choice.machine is not None for choice in machines)
    if name is None or is_found or settings.machine.limits is not None:
        return tuple(machines), frozenset(unknown), None
    if errors and settings.machine.type is not None:
        raise DiskslaError("; ".join(errors))
    if not errors:
        expected = f"terms of {', '.join(providers_with_machines())} for a disk"
        errors = [f"machine type: found '{name}'; expected {expected}, or machine.limits"]
    return tuple(machines), frozenset(unknown), "; ".join(errors)


def _providers(settings: Settings, terms_files: tuple[TermsFile, ...]) -> set[str]:
    entries = [*settings.disks, *(each for file in terms_files for _, each in file.entries())]
    terms = [entry.terms for entry in entries if isinstance(entry.terms, str)]
    of_files = {file.provider for file in terms_files if file.provider is not None}
    return {each.partition(".")[0] for each in terms} | of_files


def read_settings(path: Path | None, catalog: Catalog | None) -> Settings:
    """Return the settings of a file, or the defaults without a file.

    Raise one DiskslaError that lists every problem, a line each, as
    `FILE:LINE: PLACE: found X; expected Y`. Without a catalogue, its ids are not checked.
    """
    return Settings() if path is None else parse_settings(read_file(path), str(path), catalog)


def parse_settings(data: bytes, name: str, catalog: Catalog | None) -> Settings:
    """Return the settings in the content of the file `name`, as `read_settings` does."""
    return parse_record(data, name, Settings, _overrides(catalog))


def beyond_catalog(configuration: Configuration) -> list[str]:
    """Return a sentence for each entry of `disks` that the catalogue does not expect."""
    notes = []
    for index, entry in enumerate(configuration.settings.disks):
        if isinstance(entry.terms, str):
            row = configuration.catalog[entry.terms]
            size_bytes = entry.size_bytes(binary_gb=row.binary_gb)
            beyond = beyond_bounds(row, size_bytes or _LARGEST_DISK_BYTES, provision_of(entry))
            if size_bytes is not None:
                beyond += beyond_sizes(row, size_bytes)
            notes += [f"disks[{index}]: {text}" for text in beyond]
    return notes


def _overrides(catalog: Catalog | None) -> Overrides:
    """Return the checks that need the catalogue or the scheduler."""
    if catalog is None:
        return {CRONTAB: _parse_crontab}

    def parse_id(text: str) -> str:
        try:
            return catalog[CATALOG_ID.parse(text)].id
        except DiskslaError as error:
            raise ValueError(str(error)) from error

    def check_limits(entry: DiskEntry) -> None:
        if isinstance(entry.terms, str):
            row = catalog[entry.terms]
            size_bytes = entry.size_bytes(binary_gb=row.binary_gb) or _LARGEST_DISK_BYTES
            try:
                if entry.match.is_of_mount is not None:
                    require_kind(row, is_mount=entry.match.is_of_mount)
                derive_limits(row, size_bytes, provision_of(entry))
            except DiskslaError as error:
                raise ValueError(str(error)) from error

    return {CATALOG_ID: parse_id, DiskEntry: check_limits, CRONTAB: _parse_crontab}


def _parse_crontab(text: str) -> str:
    """Return a crontab line that the scheduler accepts."""
    line: str = CRONTAB.parse(text)
    try:
        CronTrigger.from_crontab(line, timezone=UTC)
    except ValueError as error:
        raise ValueError(f"found '{text}' ({error}); expected {CRONTAB.expected}") from error
    return line
