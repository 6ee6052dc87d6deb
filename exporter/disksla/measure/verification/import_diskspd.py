"""Parse results of DiskSpd: its XML (-Rxml) and its text.

Source: ResultParser, XmlResultParser and Target of https://github.com/microsoft/diskspd, 2.0.20
and later. Older versions print sizes as 4096, newer ones as 4KiB. A text without its part "Input
parameters" has them in its command line
(https://github.com/microsoft/diskspd/wiki/Command-line-and-parameters).
"""

import re
from collections.abc import Collection, Iterator
from xml.etree import ElementTree as ET

import msgspec

from disksla.base.errors import DiskslaError
from disksla.measure.fio import NOTHING, DirectionResult, done_within
from disksla.measure.verification.diskspd_target import (
    Pool,
    command_target,
    directions,
    field,
    load_of,
    quantity,
    size_of,
    total_of_targets,
)
from disksla.measure.verification.measurement import Measurement, Percentile, not_judged

_TEXT_MARK = "Results for timespan"
_XML_MARK = "<Results>"
_DIRECT_TEXT = (
    "software cache disabled",
    "local software cache disabled, remote cache enabled",
    "software and hardware cache disabled",
)
_DIRECT_XML = ("DisableOSCache", "DisableAllCache", "DisableLocalCache")
_TEXT_SHARES = {"50th": 0.5, "90th": 0.9, "99th": 0.99, "3-nines": 0.999}
_XML_SHARES = {"50": 0.5, "90": 0.9, "99": 0.99, "99.9": 0.999}
_MS_PER_S = 1000
_OUTSTANDING = r"number of outstanding I/O operations(?: per thread)?: (\d{1,9})"


def is_diskspd(text: str) -> bool:
    """Return whether a text has a result of DiskSpd in it, valid or not."""
    return _TEXT_MARK in text or _XML_MARK in text


def parse_diskspd(text: str) -> tuple[Measurement, ...]:
    """Return one measurement for each timespan, with threads and targets added up.

    Raise DiskslaError if the text is not a result, the test was interrupted, or a timespan mixes
    kinds of requests.
    """
    text = text.replace("\r\n", "\n")
    parse = _parse_xml if _XML_MARK in text else _parse_text
    try:
        found = tuple(parse(text))
    except ValueError as error:
        raise DiskslaError(f"invalid result of DiskSpd: {error}") from None
    if not found:
        raise DiskslaError("invalid result of DiskSpd: found no timespan")
    return found


def _parse_xml(text: str) -> Iterator[Measurement]:
    begin, end = text.index(_XML_MARK), text.rfind("</Results>")
    if end < begin:
        raise ValueError("it is cut off: found no </Results>")
    root = _root(text[begin : end + len("</Results>")])
    tool = f"DiskSpd {root.findtext('System/Tool/Version') or '(unknown version)'}"
    profiles, spans = root.findall("Profile/TimeSpans/TimeSpan"), root.findall("TimeSpan")
    _check_spans(profiles, spans)
    for number, (profile, span) in enumerate(zip(profiles, spans, strict=True), start=1):
        pool = Pool(*(_optional(profile, name) for name in ("ThreadCount", "RequestCount")))
        targets = [_xml_target(each, pool) for each in profile.findall("Targets/Target")]
        target = total_of_targets(number, targets, pool)
        results = {each: _xml_result(span, each) for each in directions(target)}
        percentiles = _xml_percentiles(span, _column(target))
        load = _with_results(f"timespan {number}", target, results, percentiles)
        yield msgspec.structs.replace(load, tool=tool)


def _parse_text(text: str) -> Iterator[Measurement]:
    runs = [run for run in re.split(r"(?=Command Line: )", text) if _TEXT_MARK in run]
    for number, run in enumerate(runs, start=1):
        name = f"run {number}, timespan" if len(runs) > 1 else "timespan"
        try:
            yield from list(_parse_run(name, run))
        except ValueError as error:
            if len(runs) == 1:
                raise
            yield not_judged(name, "DiskSpd", str(error))


def _parse_run(name: str, text: str) -> Iterator[Measurement]:
    parameters, *spans = re.split(rf"{_TEXT_MARK} +\d+:", text)
    for number, (target, span) in enumerate(_text_spans(parameters, spans), start=1):
        results = {each: _text_result(span, each) for each in directions(target)}
        percentiles = _text_percentiles(span, _column(target))
        yield _with_results(f"{name} {number}", target, results, percentiles)


def _text_spans(parameters: str, spans: list[str]) -> Iterator[tuple[Measurement, str]]:
    _, *profiles = re.split(r"timespan: +\d+", parameters)
    command = re.search(r"Command Line: ([^\n]+)", parameters)
    if not profiles and len(spans) == 1 and command is not None:
        yield command_target(command[1]), spans[0]
        return
    _check_spans(profiles, spans)
    for number, (profile, span) in enumerate(zip(profiles, spans, strict=True), start=1):
        shared, *targets = re.split(r"(?m)^[ \t]*path: ", profile)
        pool = _text_pool(shared)
        yield total_of_targets(number, [_text_target(each, pool) for each in targets], pool), span


def _text_pool(shared: str) -> Pool:
    threads = re.search(r"^[ \t]*thread pool with (\d{1,9}) threads", shared, re.MULTILINE)
    depth = re.search(rf"^[ \t]*{_OUTSTANDING}", shared, re.MULTILINE)
    return Pool(int(threads[1]) if threads else 0, int(depth[1]) if threads and depth else 0)


def _column(target: Measurement) -> str:
    """Return the column of percentiles: of reads, of writes, or of both together."""
    used = directions(target)
    return used[0] if len(used) == 1 else "Total"


def _check_spans(profiles: Collection[object], spans: Collection[object]) -> None:
    if not spans or len(profiles) != len(spans):
        raise ValueError(f"found {len(profiles)} timespans and {len(spans)} results")


def _with_results(
    name: str,
    target: Measurement,
    results: dict[str, DirectionResult],
    percentiles: dict[float, float],
) -> Measurement:
    return msgspec.structs.replace(
        target,
        name=name,
        read=results.get("Read", NOTHING),
        write=results.get("Write", NOTHING),
        percentiles=tuple(Percentile(*each) for each in sorted(percentiles.items())),
    )


def _root(text: str) -> ET.Element:
    """Parse XML without declarations, so that there are no entities to expand.

    The text is decoded before, so that no encoding can hide a declaration.
    """
    if "<!" in text:
        raise ValueError("found a declaration, comment or CDATA, which DiskSpd does not write")
    try:
        root = ET.fromstring(text)  # noqa: S314 -- no DTD, as checked above
    except (ET.ParseError, RecursionError) as error:
        raise ValueError(f"invalid XML: {error}") from None
    return root


def _optional(element: ET.Element, name: str) -> int:
    return 0 if element.find(name) is None else round(_number(element, name))


def _xml_target(target: ET.Element, pool: Pool) -> Measurement:
    if target.find("RandomRatio") is not None:
        raise ValueError("found random and sequential requests at the same time")
    limit = target.find("Throughput")
    return load_of(
        pool.threads or _number(target, "ThreadsPerFile"),
        pool.depth or _number(target, "RequestCount"),
        _number(target, "BlockSize"),
        None if limit is None else (quantity(limit.text or ""), limit.get("unit")),
        [target.findtext("Path", "")],
        write_percent=round(_number(target, "WriteRatio")),
        is_random=target.find("Random") is not None,
        is_direct=any(target.findtext(each) == "true" for each in _DIRECT_XML)
        and target.findtext("MemoryMappedIo") != "true",
        is_paced=_optional(target, "ThinkTime") > 0,
    )


def _text_target(target: str, pool: Pool) -> Measurement:
    lines = [line.strip() for line in target.splitlines()]
    text = "\n".join(lines)
    order = field(r"^using (random|sequential|interlocked sequential) I/O", text)
    limit = re.search(r"^throughput rate-limited to (\d{1,12}) (IOPS|B/ms)$", text, re.MULTILINE)
    return load_of(
        pool.threads or int(field(r"^threads per file: (\d{1,9})$", text)),
        pool.depth or int(field(rf"^{_OUTSTANDING}$", text)),
        size_of(field(r"^block size: (\w+)$", text)),
        None if limit is None else (float(limit[1]), limit[2]),
        [target],
        write_percent=_write_percent(text),
        is_random=order == "random",
        is_direct=any(line in _DIRECT_TEXT for line in lines)
        and "memory mapped I/O enabled" not in text,
        is_paced=re.search(r"^think time: 0*[1-9]", text, re.MULTILINE) is not None,
    )


def _write_percent(text: str) -> int:
    if "performing read test" in text:
        return 0
    if "performing write test" in text:
        return 100
    # Versions before 2.0.17 print "write/read ratio: 30/100" for 30 % of writes.
    mix = r"performing mix test \((?:read/write ratio: \d{1,3}/|write/read ratio: )(\d{1,3})[)/]"
    return int(field(mix, text))


def _xml_result(span: ET.Element, direction: str) -> DirectionResult:
    targets = span.findall("Thread/Target")
    return _result(
        sum(round(_number(target, f"{direction}Count")) for target in targets),
        sum(round(_number(target, f"{direction}Bytes")) for target in targets),
        _number(span, "TestTimeSeconds"),
        span.findtext(f"Latency/Average{direction}Milliseconds"),
    )


def _text_result(span: str, direction: str) -> DirectionResult:
    seconds = quantity(field(r"actual test time:\s+([\d.]+)s", span))
    _, _, section = span.partition(f"{direction} IO\n")
    heading, _, rows = section.partition("\n")
    total = re.search(r"^[ \t]*total:(.*)$", rows, re.MULTILINE)
    if total is None:
        raise ValueError(f"found no total in section '{direction} IO'")
    names = [name.strip() for name in heading.split("|")][1:-1]  # without thread and file
    cells = total[1].split("|")
    if names[:2] != ["bytes", "I/Os"] or len(cells) != len(names):
        raise ValueError(f"found a total of {len(cells)} columns; expected {', '.join(names)}")
    mean_ms = cells[names.index("AvgLat")] if "AvgLat" in names else None
    return _result(round(quantity(cells[1])), round(quantity(cells[0])), seconds, mean_ms)


def _result(
    requests: int, transferred_bytes: int, seconds: float, mean_ms: str | None
) -> DirectionResult:
    if not seconds:
        raise ValueError("found a test time of 0 s")
    mean_s = quantity(mean_ms) / _MS_PER_S if mean_ms is not None and requests else None
    return done_within(requests, transferred_bytes, seconds, mean_s)


def _xml_percentiles(span: ET.Element, column: str) -> dict[float, float]:
    name = f"{column}Milliseconds"
    return {
        _XML_SHARES[label]: _number(bucket, name) / _MS_PER_S
        for bucket in span.findall("Latency/Bucket")
        if (label := bucket.findtext("Percentile", "")) in _XML_SHARES
        and bucket.find(name) is not None
    }


def _text_percentiles(span: str, name: str) -> dict[float, float]:
    """Read the last table, which is of all targets; those before it are of single targets."""
    column = ("Read", "Write", "Total").index(name) + 1
    _, _, table = span.rpartition("%-ile")
    rows = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
    return {
        _TEXT_SHARES[row[0]]: quantity(row[column]) / _MS_PER_S
        for row in rows
        if row[0] in _TEXT_SHARES and len(row) > column and row[column] != "N/A"
    }


def _number(element: ET.Element, name: str) -> float:
    text = element.findtext(name)
    if text is None:
        raise ValueError(f"found <{element.tag[:40]}> without <{name}>")
    return quantity(text)
