"""Find the JSON documents of fio in a text: several runs, interim states of a run, clients.

With --status-interval fio prints the whole document again and again, with the sums so far.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from disksla.base.errors import DiskslaError
from disksla.measure.verification.fio_options import Options, merged, with_device
from disksla.measure.verification.places import UsedDisk

_START = re.compile(r'^[ \t]*\{(?=\s*["}])', re.MULTILINE)
_NEXT = re.compile(r'[\s,]*\{(?=\s*["}])')
"""Braces that may begin an object, since the message of an error costs a search of the text."""
_NO_NUMBER = re.compile(r"(:\s*)[+-]?(?:nan|inf)\b")
"""What fio prints for undefined values; JSON does not allow it."""
_SURROGATE = re.compile(r"(?<!\\)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character, which no text can hold."""
_LEAST_NEW_SHARE = 0.9
"""Share of its runtime that lies between a run and the end of the run before it."""

Entry = dict[str, Any]


class _Job(msgspec.Struct, frozen=True):
    """What identifies a job and its clones."""

    jobname: str
    groupid: int
    own_options: dict[str, Any] = msgspec.field(name="job options", default_factory=dict)
    hostname: str = ""


class FioDocument(msgspec.Struct, frozen=True):
    """What one run of fio printed, of all its clients."""

    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[Entry], msgspec.Meta(min_length=1)] | None = None
    clients: list[Entry] = msgspec.field(name="client_stats", default_factory=list)
    global_options: dict[str, Any] = msgspec.field(name="global options", default_factory=dict)
    disks: list[UsedDisk] = msgspec.field(name="disk_util", default_factory=list)
    timestamp_s: int = msgspec.field(name="timestamp", default=0)

    @property
    def entries(self) -> list[Entry]:
        """The results: of jobs, or of one client after another, without their sum."""
        found = [
            entry
            for entry in (*(self.jobs or ()), *self.clients)
            if "hostname" in entry or entry.get("jobname") != "All clients"
        ]
        return sorted(found, key=lambda entry: str(entry.get("hostname", "")))


class Job(msgspec.Struct, frozen=True):
    """A job with its clones: without group_reporting, each of them has an entry."""

    name: str
    group: int
    options: Options
    host: str
    entries: list[Entry]

    @property
    def runtime_s(self) -> float:
        """For how long it read or wrote."""
        return max(runtime_ms for runtime_ms, _ in _progress(self.entries)) / 1000


def fio_documents(text: str) -> tuple[list[FioDocument], list[str]]:
    """Return the documents, of each run the last one, and why others are none.

    Raise DiskslaError if there is no whole document.
    """
    decoded, errors = _decode(_SURROGATE.sub("?", _NO_NUMBER.sub(r"\1null", text)).rstrip())
    found = [document for value in decoded for document in _inside(value)]
    if not found and (errors or not decoded):
        raise DiskslaError(f"invalid JSON of fio: {errors[0] if errors else 'found no object'}")
    try:
        documents = [
            msgspec.convert(value, FioDocument, strict=False) for value in found or decoded
        ]
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise DiskslaError(f"invalid JSON of fio: {error}") from None
    if not any(document.entries for document in documents):
        raise DiskslaError("invalid JSON of fio: found no job, or only the sum of all clients")
    return _without_interim(documents), errors


def jobs_of(document: FioDocument) -> list[Job]:
    """Return each job of a document. Raise DiskslaError if an entry is not that of a job."""
    jobs: list[Job] = []
    for entry, found in zip(document.entries, _identities(document), strict=True):
        options = merged(document.global_options, found.own_options)
        options = with_device(options, found.jobname)
        job = Job(found.jobname, found.groupid, options, found.hostname, [entry])
        if jobs and msgspec.structs.replace(jobs[-1], entries=[entry]) == job:
            jobs[-1].entries.append(entry)
        else:
            jobs.append(job)
    return jobs


def _identities(document: FioDocument) -> list[_Job]:
    try:
        return [msgspec.convert(entry, _Job) for entry in document.entries]
    except msgspec.ValidationError as error:
        raise DiskslaError(f"invalid JSON of fio: {error}") from None


def _decode(text: str) -> tuple[list[Entry], list[str]]:
    """Return the objects that start a line or follow another one, and why others are none."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None)
    found: list[Entry] = []
    errors: list[str] = []
    start = _next_start(text, 0) if _START.search(text) else text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
            found.append(value)
            start = _next_start(text, end)
        except (ValueError, RecursionError) as error:
            if text[max(0, start - 1)] in "{\n":  # not an object in one that is cut off
                is_end = getattr(error, "pos", 0) >= len(text) - 1 or "Untermin" in str(error)
                errors.append("it is cut off" if is_end else str(error))
            start = _next_start(text, start + 1)
    return found, errors


def _next_start(text: str, place: int) -> int:
    """Return where the next object may start; -1 at the end."""
    found = _NEXT.match(text, place) or _START.search(text, place)
    return -1 if found is None else found.end() - 1


def _inside(value: Any) -> Iterator[Entry]:
    """Return the documents in what another program may have written around them."""
    if isinstance(value, dict) and "fio version" in value:
        yield value
    elif isinstance(value, str) and '"fio version"' in value:  # the output of a program
        yield from (document for each in _decode(value)[0] for document in _inside(each))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each)


def _object(pairs: list[tuple[str, Any]]) -> Entry:
    """Return an object. fio repeats the key `filename` for each line that adds files."""
    found = dict(pairs)
    if len(found) < len(pairs) and "filename" in found:
        found["filename"] = ":".join(str(value) for key, value in pairs if key == "filename")
    return found


def _without_interim(documents: Sequence[FioDocument]) -> list[FioDocument]:
    kept: list[FioDocument] = []
    for document in documents:
        if kept and _continues(kept[-1], document):
            kept.pop()
        kept.append(document)
    return kept


def _continues(earlier: FioDocument, later: FioDocument) -> bool:
    """Return whether a document is a later state of the same run.

    Its jobs are the same, and have run for longer and done no less. A run of its own has
    its whole runtime after the end of the one before it.
    """
    if (earlier.version, earlier.global_options) != (later.version, later.global_options):
        return False
    if _identities(earlier) != _identities(later):
        return False
    before, after = _progress(earlier.entries), _progress(later.entries)
    no_less = all(
        runtime_ms <= later_ms and requests <= later_requests
        for (runtime_ms, requests), (later_ms, later_requests) in zip(before, after, strict=True)
    )
    has_run = sum(each[0] for each in after) > sum(each[0] for each in before)
    longest_s = max(after, default=(0.0, 0.0))[0] / 1000
    is_new = later.timestamp_s - earlier.timestamp_s >= _LEAST_NEW_SHARE * longest_s
    return no_less and has_run and not is_new


def _progress(entries: Sequence[Entry]) -> list[tuple[float, float]]:
    """Return runtimes in ms, and numbers of requests."""
    directions = [
        direction if isinstance(direction := entry.get(name), dict) else {}
        for entry in entries
        for name in ("read", "write", "mixed")
    ]
    return [(number(each.get("runtime")), number(each.get("total_ios"))) for each in directions]


def number(value: Any) -> float:
    """Return a number; 0 for other values."""
    return float(value) if isinstance(value, int | float) and abs(value) < 2**63 else 0.0
