"""What DiskSpd prints, as measurements: its XML (-Rxml) and its text.

Source: ResultParser, XmlResultParser and Target of https://github.com/microsoft/diskspd, 2.0.20
and later; older ones write sizes as 4096, newer ones as 4KiB.
"""

import re
from typing import NamedTuple
from xml.etree import ElementTree as ET

from disksla.errors import DiskslaError
from disksla.fio import DirectionResult, Pattern
from disksla.units import parse_size_bytes
from disksla.verification.measurement import SHOWN_SHARES, Measurement, Percentile

_TEXT_MARK = "Results for timespan"
_UNCACHED = ("software cache disabled", "local software cache disabled, remote cache enabled")
_TEXT_NAMES = {0.5: "50th", 0.9: "90th", 0.99: "99th", 0.999: "3-nines"}
_XML_NAMES = {0.5: "50", 0.9: "90", 0.99: "99", 0.999: "99.9"}
_LARGEST = 2**63
_LEAST_COLUMNS = 4
_LATENCY_COLUMN = 4
_MS_PER_S = 1000
_ALL = 100


class _Target(NamedTuple):
    """What was asked of one file or disk."""

    pattern: Pattern
    request_bytes: int
    is_direct: bool
    inflight: int
    rate_iops: float | None


class _Total(NamedTuple):
    """What was done in one direction, by all threads on all targets."""

    requests: int
    bytes: int
    mean_latency_s: float | None


def is_diskspd(text: str) -> bool:
    """Tell whether a text claims to be a result of DiskSpd."""
    return _TEXT_MARK in text or text.lstrip().startswith("<")


def parse_diskspd(text: str) -> tuple[Measurement, ...]:
    """Give one measurement for each timespan, threads and targets added up.

    Raises Refusal for what is no result, was interrupted, or mixes kinds of requests.
    """
    lines = text.replace("\r\n", "\n")
    try:
        return _parse_xml(lines) if lines.lstrip().startswith("<") else _parse_text(lines)
    except ValueError as error:
        raise DiskslaError(f"not a result of DiskSpd: {error}") from None


def _parse_xml(text: str) -> tuple[Measurement, ...]:
    root = _root(text)
    tool = f"DiskSpd {root.findtext('System/Tool/Version') or '(version not told)'}"
    asked = root.findall("Profile/TimeSpans/TimeSpan")
    spans = root.findall("TimeSpan")
    if not spans or len(spans) != len(asked):
        raise ValueError(f"{len(asked)} timespans in the profile, {len(spans)} in the results")
    return tuple(
        _trial(
            f"timespan {number}",
            tool,
            [_xml_target(target) for target in told.findall("Targets/Target")],
            _number(span, "TestTimeSeconds"),
            {way: _xml_total(span, way) for way in ("Read", "Write")},
            {way: _xml_percentiles(span, way) for way in ("Read", "Write")},
        )
        for number, (told, span) in enumerate(zip(asked, spans, strict=True), start=1)
    )


def _root(text: str) -> ET.Element:
    """Read XML that declares nothing: without a DTD there are no entities to expand.

    The text is already decoded, so that no encoding could hide a declaration.
    """
    if "<!" in text:
        raise ValueError("a declaration, comment or CDATA, which DiskSpd does not write")
    try:
        root = ET.fromstring(text)  # noqa: S314 -- no DTD, as checked above
    except (ET.ParseError, RecursionError) as error:
        raise ValueError(f"not XML: {error}") from None
    if root.tag != "Results":
        raise ValueError(f"XML of something else, <{root.tag[:40]}>")
    return root


def _xml_target(target: ET.Element) -> _Target:
    is_random = target.find("Random") is not None
    if target.find("RandomRatio") is not None:
        raise ValueError("random and sequential requests at the same time")
    request_bytes = _some("BlockSize", round(_number(target, "BlockSize")))
    threads = _some("ThreadsPerFile", round(_number(target, "ThreadsPerFile")))
    uncached = ("DisableOSCache", "DisableAllCache", "DisableLocalCache")
    throughput = target.find("Throughput")
    return _Target(
        _pattern(round(_number(target, "WriteRatio")), is_random=is_random),
        request_bytes,
        any(target.findtext(each) == "true" for each in uncached)
        and target.findtext("MemoryMappedIo") != "true",
        threads * _some("RequestCount", round(_number(target, "RequestCount"))),
        None
        if throughput is None or not (limit := _number(target, "Throughput"))
        else _rate(limit, throughput.get("unit") or "B/ms", request_bytes) * threads,
    )


def _xml_total(span: ET.Element, way: str) -> _Total:
    targets = span.findall("Thread/Target")
    mean = span.findtext(f"Latency/Average{way}Milliseconds")
    return _Total(
        sum(round(_number(target, f"{way}Count")) for target in targets),
        sum(round(_number(target, f"{way}Bytes")) for target in targets),
        None if mean is None else _quantity(mean) / _MS_PER_S,
    )


def _xml_percentiles(span: ET.Element, way: str) -> dict[str, float]:
    return {
        bucket.findtext("Percentile") or "": _number(bucket, f"{way}Milliseconds") / _MS_PER_S
        for bucket in span.findall("Latency/Bucket")
        if bucket.find(f"{way}Milliseconds") is not None
    }


def _number(element: ET.Element, name: str) -> float:
    text = element.findtext(name)
    if text is None:
        raise ValueError(f"<{element.tag[:40]}> without <{name}>")
    return _quantity(text)


def _parse_text(text: str) -> tuple[Measurement, ...]:
    inputs, *results = re.split(rf"{_TEXT_MARK} +\d+:", text)
    _, *asked = re.split(r"timespan: +\d+", inputs)
    if not results or len(asked) != len(results):
        raise ValueError(f"{len(asked)} timespans in the parameters, {len(results)} in results")
    return tuple(
        _trial(
            f"timespan {number}",
            "DiskSpd",
            [_text_target(_lines(target)) for target in re.split(r"(?m)^[ \t]*path: ", told)[1:]],
            _quantity(_found(r"actual test time:\s+([\d.]+)s", result)),
            {way: _text_total(result, way) for way in ("Read", "Write")},
            {"Read": _text_percentiles(result, 1), "Write": _text_percentiles(result, 2)},
        )
        for number, (told, result) in enumerate(zip(asked, results, strict=True), start=1)
    )


def _text_target(lines: list[str]) -> _Target:
    text = "\n".join(lines)
    request_bytes = _some("block size", _size(_found(r"^block size: (\w+)$", text)))
    threads = _some("threads", int(_found(r"^threads per file: (\d{1,9})$", text)))
    outstanding = _found(
        r"^number of outstanding I/O operations(?: per thread)?: (\d{1,9})$", text
    )
    order = _found(r"^using (random|sequential|interlocked sequential) I/O", text)
    rate = re.search(r"^throughput rate-limited to (\d{1,12}) (IOPS|B/ms)$", text, re.MULTILINE)
    return _Target(
        _pattern(_write_percent(text), is_random=order == "random"),
        request_bytes,
        any(line in _UNCACHED for line in lines) and "memory mapped I/O enabled" not in text,
        threads * _some("outstanding", int(outstanding)),
        None if rate is None else _rate(float(rate[1]), rate[2], request_bytes) * threads,
    )


def _write_percent(text: str) -> int:
    if "performing read test" in text:
        return 0
    if "performing write test" in text:
        return _ALL
    return int(_found(r"performing mix test \(read/write ratio: \d{1,3}/(\d{1,3})\)", text))


def _text_total(result: str, way: str) -> _Total:
    _, found, section = result.partition(f"{way} IO\n")
    heading, _, rest = section.partition("\n")
    total = re.search(r"^total:(.*)$", rest, re.MULTILINE)
    if not found or total is None:
        raise ValueError(f"no section '{way} IO' with a total")
    columns = [column.strip() for column in total[1].split("|")]
    if len(columns) < _LEAST_COLUMNS:
        raise ValueError(f"a total of {len(columns)} columns, where 4 or more are right")
    latency = None
    if "AvgLat" in heading and len(columns) > _LATENCY_COLUMN:
        latency = _quantity(columns[_LATENCY_COLUMN]) / _MS_PER_S
    return _Total(round(_quantity(columns[1])), round(_quantity(columns[0])), latency)


def _text_percentiles(result: str, column: int) -> dict[str, float]:
    """Read the last table: those before it are of single targets."""
    _, _, table = result.rpartition("%-ile")
    rows = ([cell.strip() for cell in line.split("|")] for line in _lines(table))
    return {
        row[0]: _quantity(row[column]) / _MS_PER_S
        for row in rows
        if len(row) == len(("name", "read", "write", "total"))
        and row[0] in _TEXT_NAMES.values()
        and row[column] != "N/A"
    }


def _trial(
    name: str,
    tool: str,
    targets: list[_Target],
    seconds: float,
    totals: dict[str, _Total],
    percentiles: dict[str, dict[str, float]],
) -> Measurement:
    kinds = {target[:3] for target in targets}
    if len(kinds) != 1:
        raise ValueError(f"{name} mixes {len(kinds)} kinds of requests; expected one")
    if not seconds:
        raise ValueError(f"{name} took no time")
    first = targets[0]
    way = "Write" if first.pattern in {"write", "randwrite"} else "Read"
    total = totals[way]
    rates = [target.rate_iops for target in targets if target.rate_iops is not None]
    known = percentiles[way]
    return Measurement(
        name=name,
        tool=tool,
        pattern=first.pattern,
        request_bytes=first.request_bytes,
        inflight=sum(target.inflight for target in targets),
        measured=DirectionResult(
            total.requests,
            total.bytes,
            seconds,
            total.requests / seconds,
            total.bytes / seconds,
            total.mean_latency_s if total.requests else None,
        ),
        percentiles=tuple(
            Percentile(share, known[label])
            for share in SHOWN_SHARES
            for label in (_TEXT_NAMES[share], _XML_NAMES[share])
            if label in known
        ),
        rate_iops=sum(rates) if rates else None,
        is_direct=first.is_direct,
    )


def _pattern(write_percent: int, *, is_random: bool) -> Pattern:
    patterns: dict[int, Pattern] = {0: "read", _ALL: "write"}
    random: dict[int, Pattern] = {0: "randread", _ALL: "randwrite"}
    if is_random:
        return random.get(write_percent, "randrw")
    return patterns.get(write_percent, "rw")


def _rate(limit: float, unit: str, request_bytes: int) -> float:
    """Give requests per second of one thread."""
    return limit if unit == "IOPS" else limit * _MS_PER_S / request_bytes


def _size(text: str) -> int:
    return int(text) if text.isdecimal() else parse_size_bytes(text)


def _quantity(text: str) -> float:
    """Read a number as printf writes it, and nothing that Python only calls one."""
    if re.fullmatch(r"\s*\d{1,20}(?:\.\d{1,20})?\s*", text, re.ASCII) is None:
        raise ValueError(f"'{text[:40]}' where a number should be")
    number = float(text)
    if number >= _LARGEST:
        raise ValueError(f"{text[:40]} is beyond what can be counted")
    return number


def _some(what: str, number: int) -> int:
    """Give a number that cannot be none."""
    if not number:
        raise ValueError(f"{what} is 0")
    return number


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE | re.ASCII)
    if found is None:
        raise ValueError(f"nothing like /{pattern}/")
    return found[1]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]
