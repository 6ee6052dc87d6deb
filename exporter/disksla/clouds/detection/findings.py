"""What a cloud reports of the disks of this machine: by its metadata, and by its API."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from disksla.base.errors import ExchangeReason
from disksla.clouds import http_client as http
from disksla.promise.disk_entry import Caching
from disksla.promise.terms_file import DetectionProblem, PersistentVolume

Item = TypeVar("Item")
Machine = TypeVar("Machine")

KUBERNETES = "kubernetes"  # in place of a provider: its API knows volumes of several
OF_ONE_DISK: tuple[ExchangeReason, ...] = ("denied", "not_found", "invalid")
"""Failures that concern one disk, or all alike. Others may be gone at the next run."""


class CloudDisk(msgspec.Struct, frozen=True):
    """One volume, as the cloud describes it; what it does not state is None."""

    volume: str  # the provider's key of the volume, by which the disk is recognized in the machine
    api_type: str  # the type in the provider's spelling; empty if the source does not state it
    size_bytes: int | None = None
    iops: int | None = None  # provisioned IOPS, where the customer chooses them
    bytes_per_second: int | None = None  # provisioned bandwidth, where the customer chooses it
    caching: Caching | None = None
    options: Mapping[str, str] = {}  # values of the options of the type in the catalogue
    provider: str | None = None  # None for that of the machine
    is_handle: bool = False
    """`volume` is the handle of a CSI driver of Kubernetes, not the provider's key."""
    is_mount_point: bool = False  # it is a file storage, and `volume` is where it is mounted


class Listing(msgspec.Struct, frozen=True):
    """The disks of this machine from one source."""

    disks: tuple[CloudDisk, ...]
    problems: tuple[DetectionProblem, ...] = ()  # of single disks
    incomplete: frozenset[str] = frozenset()
    """Volumes of which this source does not have the type, or the provisioned values. Their limits
    are unknown: those of the catalogue's defaults would be wrong."""


class Metadata(msgspec.Struct, Generic[Machine], frozen=True):
    """What a metadata service has."""

    machine: Machine  # ids that the API needs
    machine_type: str | None = None
    listing: Listing | None = None  # None if it does not list disks with their types
    problems: tuple[DetectionProblem, ...] = ()  # of what only the metadata service has


class Detected(msgspec.Struct, frozen=True):
    """Everything that one run found out."""

    provider: str
    service: str  # the name of the provider's service, for people
    machine_type: str | None = None
    metadata: Listing | None = None
    api: Listing | None = None  # None if it was not asked, or failed
    problems: tuple[DetectionProblem, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()  # of the node, in Kubernetes
    file_storages: Listing = Listing(())
    """Those that are mounted; `incomplete` has the mount points of those that did not answer."""


def detect(
    provider: str,
    service: str,
    metadata: http.Exchanges[Metadata[Machine]],
    api: Callable[[Machine], http.Exchanges[Listing]] | None = None,
) -> http.Exchanges[Detected]:
    """Return what the metadata service and then the API have. Failures are problems."""
    try:
        found = yield from metadata
    except http.ExchangeError as error:
        return Detected(provider, service, problems=(problem("metadata", error),))
    answer: Listing | None = None
    problems = found.problems
    try:
        if api is not None:
            answer = yield from api(found.machine)
            problems = (*found.problems, *answer.problems)
    except http.ExchangeError as error:
        of_metadata = found.listing.problems if found.listing is not None else ()
        problems = (problem("api", error), *found.problems, *of_metadata)
    return Detected(
        provider=provider,
        service=service,
        machine_type=found.machine_type,
        metadata=found.listing,
        api=answer,
        problems=problems,
    )


def problem(source: http.Source, error: http.ExchangeError) -> DetectionProblem:
    """Return the problem of an error."""
    return DetectionProblem(source, error.reason, str(error))


def no_provisioned_values(what: str, volume: str) -> DetectionProblem:
    """Return the problem that a metadata service lacks what the customer chose for a volume."""
    why = f"{what}: it has no provisioned IOPS and bandwidth of disk {volume}; permit the API"
    return DetectionProblem("metadata", "not_found", why)


def each_disk(
    items: Iterable[Item], describe: Callable[[Item], http.Exchanges[CloudDisk]]
) -> http.Exchanges[Listing]:
    """Return the disks that `describe` returns; one that is odd or denied hides no others.

    Raise ExchangeError if none could be described, or for a failure that may be gone at the next
    run: a listing without the disk would change its limits for a while.
    """
    disks: list[CloudDisk] = []
    errors: list[http.ExchangeError] = []
    for item in items:
        try:
            disks.append((yield from describe(item)))
        except http.ExchangeError as error:
            if error.reason not in OF_ONE_DISK:
                raise
            errors.append(error)
    if errors and not disks:
        raise errors[0]
    return Listing(tuple(disks), tuple(problem("api", error) for error in errors))


def part_of(what: str, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a mapping within a document; an empty one if it is absent.

    Raise ExchangeError for anything else.
    """
    return http.convert(what, document.get(name, {}), dict)


def needed_text(what: str, value: Any, characters: str, why: str) -> str:
    """Return plain text. Raise ExchangeError, which says why, for anything else."""
    text = http.plain_text(value, characters)
    if text is None:
        raise http.failure(what, "invalid", why)
    return text


def text_in(what: str, body: bytes, characters: str, why: str) -> str:
    """Return the only text of a body. Raise ExchangeError, which says why, for anything else."""
    return needed_text(what, body.decode("ascii", "replace").strip(), characters, why)


def amount(value: Any, unit: int = 1) -> int | None:
    """Return a number above zero in its unit; None if it is absent or no number."""
    number = http.whole_number(value)
    return None if number is None else number * unit
