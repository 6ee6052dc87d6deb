"""Parse fio results that were made elsewhere: each job with its options and measurements.

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
"""What fio prints for undefined values; JSON does not allow it."""
_SIZE = re.compile(r"(\d{1,15})(?:b|([kmg])(ib|[ib])?)?", re.IGNORECASE | re.ASCII)
_PATTERNS: dict[str, Pattern] = {
    "read": "read",
    "write": "write",
    "randread": "randread",
    "randwrite": "randwrite",
    "rw": "rw",
    "readwrite": "rw",
    "randrw": "randrw",
}
_EXPONENTS = {"k": 1, "m": 2, "g": 3}
_OFF = {"0", "false"}

_Options = dict[str, str]


class _Job(msgspec.Struct, frozen=True):
    """What identifies a job and its clones."""

    jobname: str
    groupid: int
    options: _Options = msgspec.field(name="job options", default_factory=dict)


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    global_options: _Options = msgspec.field(name="global options", default_factory=dict)


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each job of a fio result, with the clones of a job added up.

    Raise DiskslaError if the text is not a result, a job failed or its requests are unknown, or
    different jobs ran at the same time, so that none of them measured the disk alone.
    """
    document = _decode(text)
    groups = _groups(document)
    for (earlier, _), (later, _) in pairwise(groups):
        if earlier.groupid == later.groupid:  # `stonewall` starts a new group
            raise DiskslaError(
                f"jobs '{earlier.jobname}' and '{later.jobname}' ran at the same time; use"
                " `stonewall` between jobs, or run fio once for each"
            )
    return tuple(_measurement(document.version, job, entries) for job, entries in groups)


def _decode(text: str) -> _Document:
    """Parse from the first brace to the last; fio prints notes before and after."""
    body = _NO_NUMBER.sub(r"\1null", text[text.find("{") : text.rfind("}") + 1])
    try:
        return msgspec.json.decode(body, type=_Document)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DiskslaError(f"invalid JSON of fio: {error}") from None


def _groups(document: _Document) -> list[tuple[_Job, list[dict[str, Any]]]]:
    """Return each job with its entries: without group_reporting every clone has one."""
    groups: list[tuple[_Job, list[dict[str, Any]]]] = []
    for raw in document.jobs:
        try:
            job = msgspec.convert(raw, _Job)
        except msgspec.ValidationError as error:
            raise DiskslaError(f"invalid JSON of fio: {error}") from None
        job = msgspec.structs.replace(job, options=document.global_options | job.options)
        if groups and groups[-1][0] == job:
            groups[-1][1].append(raw)
        else:
            groups.append((job, [raw]))
    return groups


def _measurement(version: str, job: _Job, entries: list[dict[str, Any]]) -> Measurement:
    options, name = job.options, job.jobname
    pattern = _PATTERNS.get(_first(_option(options, "rw", "readwrite", default="read")))
    if pattern is None or not options:
        raise DiskslaError(f"job '{name}': its requests are unknown; expected option rw")
    workers = _count(name, options, "numjobs", 1)
    if len(entries) not in {1, workers}:
        raise DiskslaError(
            f"job '{name}': found {len(entries)} results; expected 1 or {workers}, one per clone"
        )
    rate = options.get("rate_iops")
    measured = _result(version, entries)
    direction = "write" if pattern in {"write", "randwrite"} else "read"
    result = measured.write if direction == "write" else measured.read
    return Measurement(
        name=name,
        tool=measured.version,
        pattern=pattern,
        request_bytes=_size(job, _option(options, "bs", "blocksize", default="4k")),
        inflight=workers * _count(name, options, "iodepth", 1),
        measured=result,
        percentiles=percentiles_of(result.bins) or _percentiles(entries, direction),
        rate_iops=None if rate is None else float(_size(job, _part(rate, direction))) * workers,
        is_direct=_is_direct(options),
    )


def _result(version: str, entries: list[dict[str, Any]]) -> FioResult:
    """Parse the entries of one job as the result of a run of only this job."""
    document = {"fio version": version, "jobs": [entry | {"groupid": 0} for entry in entries]}
    try:
        return parse_fio(msgspec.json.encode(document).decode())
    except FioError as failure:
        raise DiskslaError(str(failure)) from None


def _percentiles(entries: list[dict[str, Any]], direction: str) -> tuple[Percentile, ...]:
    """Return the percentiles that fio computed; those of several clones cannot be combined."""
    known = entries[0][direction]["clat_ns"].get("percentile") if len(entries) == 1 else None
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
        raise DiskslaError(f"job '{name}': found {option}='{text[:40]}'; expected a number")
    return int(text)


def _size(job: _Job, text: str) -> int:
    """Parse a size or a number as fio does.

    With its default, `kb_base=1024`, 4k, 4kb and 4Ki are 4096 and 4KiB is 4000: for compatibility
    with old scripts. With `kb_base=1000` it is the other way round.
    """
    found = _SIZE.fullmatch(_first(text))
    if found is None or not int(found[1]):
        raise DiskslaError(f"job '{job.jobname}': found '{text[:40]}'; expected a size such as 4k")
    prefix, suffix = (found[2] or "").lower(), (found[3] or "").lower()
    is_decimal = (suffix == "ib") != (job.options.get("kb_base") == "1000")
    factor: int = (1000 if is_decimal else 1024) ** _EXPONENTS.get(prefix, 0)
    return int(found[1]) * factor


def _part(text: str, direction: str) -> str:
    """Return the part of `100,50` for reads or writes; a single number is for both."""
    parts = text.split(",")
    return parts[1] if direction == "write" and len(parts) > 1 and parts[1] else parts[0]


def _first(text: str) -> str:
    """Return the text before a comma or colon, as in bs=4k,4k and rw=randread:8."""
    return re.split("[,:]", text.strip())[0]
