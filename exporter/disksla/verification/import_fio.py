"""The jobs of a fio result that somebody else made, each with the options that it was run with.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, JSON output of fio 3.1 and later.
"""

import re
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from disksla.errors import DiskslaError
from disksla.fio import FioError, FioResult, Pattern, parse_fio
from disksla.verification.measurement import SHOWN_SHARES, Measurement, Percentile, percentiles_of

_NO_NUMBER = re.compile(r"(:\s*)[+-]?(?:nan|inf)\b")
_SIZE = re.compile(r"(\d{1,15})([kmgKMG]?)(?:i?[bB])?")
_PATTERNS: dict[str, Pattern] = {
    "read": "read",
    "write": "write",
    "randread": "randread",
    "randwrite": "randwrite",
    "rw": "rw",
    "readwrite": "rw",
    "randrw": "randrw",
}
_FACTORS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_OFF = {"0", "false"}

_Options = dict[str, str]


class _Job(msgspec.Struct, frozen=True):
    """What a job says of itself."""

    jobname: str
    groupid: int
    options: _Options = msgspec.field(name="job options", default_factory=dict)


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    global_options: _Options = msgspec.field(name="global options", default_factory=dict)


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Give a measurement for each job of a fio result; clones of one job are added up.

    Raises Refusal for what is no result, for jobs that failed or do not say what they did, and
    for jobs that ran at the same time as others, of which none measured the disk alone.
    """
    document = _decode(text)
    groups = _groups(document)
    for (earlier, _), (later, _) in pairwise(groups):
        if earlier.groupid == later.groupid:  # fio begins a group with every stonewall
            raise DiskslaError(
                f"jobs '{earlier.jobname}' and '{later.jobname}' ran at the same time;"
                " expected `stonewall` between jobs, or a result for each"
            )
    return tuple(_trial(document.version, job, entries) for job, entries in groups)


def _decode(text: str) -> _Document:
    """Read from the first brace to the last: notes may stand before and after."""
    body = _NO_NUMBER.sub(r"\1null", text[text.find("{") : text.rfind("}") + 1])
    try:
        return msgspec.json.decode(body, type=_Document)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DiskslaError(f"not the JSON of fio: {error}") from None


def _groups(document: _Document) -> list[tuple[_Job, list[dict[str, Any]]]]:
    """Give the different jobs; without group_reporting each clone has an entry of its own."""
    groups: list[tuple[_Job, list[dict[str, Any]]]] = []
    for raw in document.jobs:
        try:
            told = msgspec.convert(raw, _Job)
        except msgspec.ValidationError as error:
            raise DiskslaError(f"not the JSON of fio: {error}") from None
        options = document.global_options | told.options
        job = msgspec.structs.replace(told, options=options)
        if groups and groups[-1][0] == job:
            groups[-1][1].append(raw)
        else:
            groups.append((job, [raw]))
    return groups


def _trial(version: str, job: _Job, entries: list[dict[str, Any]]) -> Measurement:
    options, name = job.options, job.jobname
    pattern = _PATTERNS.get(_first(_option(options, "rw", "readwrite", default="read")))
    if pattern is None or not options:
        raise DiskslaError(f"job '{name}' does not tell which requests it made (option rw)")
    workers = _count(name, options, "numjobs", 1)
    if len(entries) not in {1, workers}:
        raise DiskslaError(f"job '{name}' has {len(entries)} results of {workers} clones")
    rate = options.get("rate_iops")
    measured = _result(version, entries)
    way = "write" if pattern in {"write", "randwrite"} else "read"
    one_way = measured.write if way == "write" else measured.read
    return Measurement(
        name=name,
        tool=measured.version,
        pattern=pattern,
        request_bytes=_size(name, _option(options, "bs", "blocksize", default="4k")),
        inflight=workers * _count(name, options, "iodepth", 1),
        measured=one_way,
        percentiles=percentiles_of(one_way.bins) or _percentiles(entries, way),
        rate_iops=None if rate is None else float(_size(name, _of_way(rate, way))) * workers,
        is_direct=_is_direct(options),
    )


def _result(version: str, entries: list[dict[str, Any]]) -> FioResult:
    """Read the entries of one job as fio's result of nothing else."""
    alone = {"fio version": version, "jobs": [entry | {"groupid": 0} for entry in entries]}
    try:
        return parse_fio(msgspec.json.encode(alone).decode())
    except FioError as failure:
        raise DiskslaError(str(failure)) from None


def _percentiles(entries: list[dict[str, Any]], way: str) -> tuple[Percentile, ...]:
    """Read fio's own percentiles; those of several clones cannot be put together."""
    known = entries[0][way]["clat_ns"].get("percentile") if len(entries) == 1 else None
    if not isinstance(known, dict):
        return ()
    found = ((share, known.get(f"{100 * share:.6f}")) for share in SHOWN_SHARES)
    return tuple(
        Percentile(share, value / 1e9)
        for share, value in found
        if isinstance(value, int) and value >= 0
    )


def _is_direct(options: _Options) -> bool:
    if "buffered" in options:
        return options["buffered"] in _OFF
    return options.get("direct", "0") not in _OFF


def _option(options: _Options, *names: str, default: str) -> str:
    return next((options[name] for name in names if name in options), default)


def _count(name: str, options: _Options, option: str, default: int) -> int:
    text = options.get(option, str(default))
    if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) is None:
        raise DiskslaError(f"job '{name}': {option} is '{text[:40]}'; expected a number")
    return int(text)


def _size(name: str, text: str) -> int:
    """Read a size or a number as fio's `kb_base=1024` has it, the default."""
    found = _SIZE.fullmatch(_first(text))
    if found is None or not int(found[1]):
        raise DiskslaError(f"job '{name}': '{text[:40]}' where a size such as 4k should be")
    return int(found[1]) * _FACTORS[found[2].lower()]


def _of_way(text: str, way: str) -> str:
    """Give the part for one direction of `100,50`; a single number is for both."""
    parts = text.split(",")
    return parts[1] if way == "write" and len(parts) > 1 and parts[1] else parts[0]


def _first(text: str) -> str:
    """Give what stands before a comma or a colon: bs=4k,4k, rw=randread:8."""
    return re.split("[,:]", text.strip())[0]
