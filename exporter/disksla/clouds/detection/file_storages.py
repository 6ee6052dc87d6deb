"""File storages that are mounted: asked one by one, and their entries of the file of terms.

An entry names the mount point. A storage that cannot be asked now keeps its last entry, and the
file its old time; one that is denied costs itself only.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from disksla.clouds.detection.findings import OF_ONE_DISK, CloudDisk, Detected, Listing, problem
from disksla.clouds.detection.terms_file import DetectedTermsFile, entry_of
from disksla.clouds.http_client import ExchangeError, Exchanges
from disksla.kernel.nfs import FileStorage


def value_in(document: Any, *names: str) -> Any:
    """Return a value within a JSON document; None if it is absent."""
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


Describe = Callable[[FileStorage], Exchanges[CloudDisk]]
"""Returns the terms of a storage, in words of the catalogue, without its mount point."""


def each_storage(storages: Iterable[FileStorage], describe: Describe) -> Exchanges[Listing]:
    """Return the terms of storages; each is asked for once, wherever it is mounted.

    Raise ExchangeError only if the credentials have expired.
    """
    points: dict[FileStorage, list[str]] = {}
    for storage in storages:
        source = "" if storage.id is not None else storage.source
        same = msgspec.structs.replace(storage, mount_point="", source=source)
        points.setdefault(same, []).append(storage.mount_point)
    disks: list[CloudDisk] = []
    errors: list[ExchangeError] = []
    unanswered: list[str] = []
    for storage, at in points.items():
        try:
            terms = yield from describe(storage)
        except ExchangeError as error:
            if error.reason == "expired":
                raise
            errors.append(error)
            unanswered += at if error.reason not in OF_ONE_DISK else ()
        else:
            disks += [
                msgspec.structs.replace(terms, volume=point, is_mount_point=True) for point in at
            ]
    return Listing(
        tuple(disks),
        tuple(dict.fromkeys(problem("api", error) for error in errors)),
        frozenset(unanswered),
    )


def with_file_storages(
    detected: Exchanges[Detected],
    storages: tuple[FileStorage, ...],
    ask: Callable[[tuple[FileStorage, ...]], Exchanges[Listing]],
) -> Exchanges[Detected]:
    """Return what is found of disks, and then of the file storages that are mounted."""
    found = yield from detected
    try:
        listing = yield from ask(storages)
    except ExchangeError as error:
        points = frozenset(each.mount_point for each in storages)
        listing = Listing((), (problem("api", error),), points)
    new = (each for each in listing.problems if each not in found.problems)
    return msgspec.structs.replace(found, file_storages=listing, problems=(*found.problems, *new))


def with_storage_entries(
    file: DetectedTermsFile, detected: Detected, last: DetectedTermsFile | None
) -> DetectedTermsFile:
    """Return the file of an attempt, made from the `last` one, with entries of file storages."""
    found = detected.file_storages
    before = () if last is None or last.provider != file.provider else last.disks
    kept = [each for each in before if each.match.mountpoint in found.incomplete]
    disks = [each for each in file.disks if each.match.mountpoint is None]
    as_of_s = last.as_of_timestamp_s if last is not None and kept else file.as_of_timestamp_s
    entries = (*disks, *map(entry_of, found.disks), *kept)
    return msgspec.structs.replace(file, disks=entries, as_of_timestamp_s=as_of_s)
