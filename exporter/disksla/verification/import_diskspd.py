"""Parse results of DiskSpd: its XML (-Rxml) and its text.

Source: ResultParser, XmlResultParser and Target of https://github.com/microsoft/diskspd, 2.0.20
and later. Older versions print sizes as 4096, newer ones as 4KiB. A text without its part "Input
parameters" has them in its command line
(https://github.com/microsoft/diskspd/wiki/Command-line-and-parameters).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from disksla.errors import DiskslaError
from disksla.fio import DirectionResult, Pattern
from disksla.units import parse_size_bytes
from disksla.verification.measurement import NOTHING, Measurement, Percentile, done_within

_TEXT_MARK = "Results for timespan"
_DIRECT_TEXT = (
    "software cache disabled",
    "local software cache disabled, remote cache enabled",
    "software and hardware cache disabled",
)
_DIRECT_XML = ("DisableOSCache", "DisableAllCache", "DisableLocalCache")
_TEXT_SHARES = {"50th": 0.5, "90th": 0.9, "99th": 0.99, "3-nines": 0.999}
_XML_SHARES = {"50": 0.5, "90": 0.9, "99": 0.99, "99.9": 0.999}
_PATTERNS: dict[tuple[bool, int], Pattern] = {
    (False, 0): "read",
    (False, 100): "write",
    (True, 0): "randread",
    (True, 100): "randwrite",
}
_DEFAULT_BYTES = 64 * 1024
_DEFAULT_DEPTH = 2
_LARGEST = 2**63
_MS_PER_S = 1000


class _Target(NamedTuple):
    """The load on one file or disk."""

    pattern: Pattern
    request_bytes: int
    is_direct: bool
    inflight: int
    rate_iops: float | None
    disks: tuple[str, ...] = ()
    """Drive letters and numbers of physical drives."""

    @property
    def directions(self) -> tuple[str, ...]:
        """The parts of a result that have requests."""
        if self.pattern in {"rw", "randrw"}:
            return ("Read", "Write")
        return ("Write",) if self.pattern in {"write", "randwrite"} else ("Read",)


def is_diskspd(text: str) -> bool:
    """Return whether a text looks like a result of DiskSpd, valid or not."""
    return _TEXT_MARK in text or text.lstrip().startswith("<")


def parse_diskspd(text: str) -> tuple[Measurement, ...]:
    """Return one measurement for each timespan, with threads and targets added up.

    Raise DiskslaError if the text is not a result, the test was interrupted, or a timespan mixes
    kinds of requests.
    """
    text = text.replace("\r\n", "\n")
    parse = _parse_xml if text.lstrip().startswith("<") else _parse_text
    try:
        found = tuple(parse(text))
    except ValueError as error:
        raise DiskslaError(f"invalid result of DiskSpd: {error}") from None
    if not found:
        raise DiskslaError("invalid result of DiskSpd: found no timespan")
    return found


def _parse_xml(text: str) -> Iterator[Measurement]:
    root = _root(text)
    tool = f"DiskSpd {root.findtext('System/Tool/Version') or '(unknown version)'}"
    profiles, spans = root.findall("Profile/TimeSpans/TimeSpan"), root.findall("TimeSpan")
    _check_spans(profiles, spans)
    for number, (profile, span) in enumerate(zip(profiles, spans, strict=True), start=1):
        target = _sum(number, [_xml_target(each) for each in profile.findall("Targets/Target")])
        results = {each: _xml_result(span, each) for each in target.directions}
        percentiles = _xml_percentiles(span, _column(target))
        yield _measurement(f"timespan {number}", tool, target, results, percentiles)


def _parse_text(text: str) -> Iterator[Measurement]:
    runs = [run for run in re.split(r"(?=Command Line: )", text) if _TEXT_MARK in run]
    for number, run in enumerate(runs, start=1):
        name = f"run {number}, timespan" if len(runs) > 1 else "timespan"
        yield from _parse_run(name, run)


def _parse_run(name: str, text: str) -> Iterator[Measurement]:
    parameters, *spans = re.split(rf"{_TEXT_MARK} +\d+:", text)
    for number, (target, span) in enumerate(_text_spans(parameters, spans), start=1):
        results = {each: _text_result(span, each) for each in target.directions}
        percentiles = _text_percentiles(span, _column(target))
        yield _measurement(f"{name} {number}", "DiskSpd", target, results, percentiles)


def _text_spans(parameters: str, spans: list[str]) -> Iterator[tuple[_Target, str]]:
    _, *profiles = re.split(r"timespan: +\d+", parameters)
    command = re.search(r"Command Line: ([^\n]+)", parameters)
    if not profiles and len(spans) == 1 and command is not None:
        yield _command_target(command[1]), spans[0]
        return
    _check_spans(profiles, spans)
    for number, (profile, span) in enumerate(zip(profiles, spans, strict=True), start=1):
        _, *targets = re.split(r"(?m)^[ \t]*path: ", profile)
        yield _sum(number, [_text_target(each) for each in targets]), span


def _column(target: _Target) -> str:
    """Return the column of percentiles: of reads, of writes, or of both together."""
    return target.directions[0] if len(target.directions) == 1 else "Total"


def _check_spans(profiles: Collection[object], spans: Collection[object]) -> None:
    if not spans or len(profiles) != len(spans):
        raise ValueError(f"found {len(profiles)} timespans and {len(spans)} results")


def _sum(number: int, targets: list[_Target]) -> _Target:
    """Add up the requests in flight and the rates of targets with the same kind of request."""
    kinds = {target[:3] for target in targets}
    if len(kinds) != 1:
        raise ValueError(f"found {len(kinds)} kinds of requests in timespan {number}; expected 1")
    rates = [target.rate_iops for target in targets if target.rate_iops is not None]
    return targets[0]._replace(
        inflight=sum(target.inflight for target in targets),
        rate_iops=sum(rates) if rates else None,
        disks=tuple(sorted({disk for target in targets for disk in target.disks})),
    )


def _measurement(
    name: str,
    tool: str,
    target: _Target,
    results: dict[str, DirectionResult],
    percentiles: dict[float, float],
) -> Measurement:
    return Measurement(
        name=name,
        tool=tool,
        pattern=target.pattern,
        request_bytes=target.request_bytes,
        inflight=target.inflight,
        read=results.get("Read", NOTHING),
        write=results.get("Write", NOTHING),
        percentiles=tuple(Percentile(*each) for each in sorted(percentiles.items())),
        rate_iops=target.rate_iops,
        is_direct=target.is_direct,
        targets=target.disks,
    )


def _command_target(command: str) -> _Target:
    """Return the load of a command line, of all its targets together."""
    words = [word.strip("\"'") for word in re.findall(r"\"[^\"]*\"|\S+", command)]
    places = [place for place, word in enumerate(words) if place and word[0:1] in {"-", "/"}]
    options = [words[place][1:] for place in places]
    targets = words[max(places, default=0) + 1 :]
    if not targets or any(option.startswith("X") for option in options):
        raise ValueError("found neither input parameters nor a command line with its targets")
    if any(option.startswith("rs") for option in options):
        raise ValueError("found random and sequential requests at the same time")
    request_bytes = _positive("-b", _command_size(options))
    depth = _positive("-o", _count(options, "o", _DEFAULT_DEPTH))
    fixed = _count(options, "F", 0)
    threads = fixed or _positive("-t", _count(options, "t", 1))
    streams = threads * len(targets)
    of_thread = _count(options, "O", 0)
    inflight = fixed * of_thread if fixed and of_thread else streams * depth
    limit = _value(options, "g", r"(\d{1,12})(i?)")
    is_random = any(re.match(r"r\d*[KMGTb]?$", option) for option in options)
    return _Target(
        pattern=_pattern(_count(options, "w", 0), is_random=is_random),
        request_bytes=request_bytes,
        is_direct=_is_direct_command(options),
        inflight=inflight,
        rate_iops=None
        if limit is None
        else _rate_iops(float(limit[1]), "IOPS" if limit[2] else None, request_bytes, streams),
        disks=tuple(sorted({disk for target in targets for disk in _disks(target)})),
    )


def _command_size(options: Sequence[str]) -> int:
    found = _value(options, "b", r"(\d{1,12})([KMGTkmgt]?)")
    if found is None:
        return _DEFAULT_BYTES
    exponent = " KMGT".index(found[2].upper() or " ")
    size: int = int(found[1]) * 1024**exponent
    return size


def _count(options: Sequence[str], name: str, default: int) -> int:
    found = _value(options, name, r"(\d{1,9})")
    return default if found is None else int(found[1])


def _value(options: Sequence[str], name: str, pattern: str) -> re.Match[str] | None:
    """Return the value of the last option of a name, whose value follows it without a blank."""
    found = (re.fullmatch(name + pattern, option, re.ASCII) for option in reversed(options))
    return next((each for each in found if each is not None), None)


def _is_direct_command(options: Sequence[str]) -> bool:
    """Return whether the software cache is disabled: -S, -Su, -Sh, -Sr, -h, also with w."""
    modes = [option[1:] for option in options if re.fullmatch("S[bhmruw]*", option)]
    is_disabled = any(mode == "" or set(mode) & set("hru") for mode in modes)
    return (is_disabled or "h" in options) and not any("m" in mode for mode in modes)


def _disks(path: str) -> tuple[str, ...]:
    """Return the drive of a target: C:, or #1 for a physical drive; nothing for other paths."""
    found = re.match(r"'?([A-Za-z]:|#\d{1,4})", path)
    return () if found is None else (found[1].upper(),)


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
    if root.tag != "Results":
        raise ValueError(f"found XML element <{root.tag[:40]}>; expected <Results>")
    return root


def _xml_target(target: ET.Element) -> _Target:
    if target.find("RandomRatio") is not None:
        raise ValueError("found random and sequential requests at the same time")
    request_bytes = _positive("BlockSize", _number(target, "BlockSize"))
    threads = _positive("ThreadsPerFile", _number(target, "ThreadsPerFile"))
    limit = target.find("Throughput")
    return _Target(
        pattern=_pattern(
            round(_number(target, "WriteRatio")), is_random=target.find("Random") is not None
        ),
        request_bytes=request_bytes,
        is_direct=any(target.findtext(each) == "true" for each in _DIRECT_XML)
        and target.findtext("MemoryMappedIo") != "true",
        inflight=threads * _positive("RequestCount", _number(target, "RequestCount")),
        rate_iops=None
        if limit is None
        else _rate_iops(_quantity(limit.text or ""), limit.get("unit"), request_bytes, threads),
        disks=_disks(target.findtext("Path", "")),
    )


def _text_target(target: str) -> _Target:
    lines = [line.strip() for line in target.splitlines()]
    text = "\n".join(lines)
    request_bytes = _positive("block size", _size(_field(r"^block size: (\w+)$", text)))
    threads = _positive("threads per file", int(_field(r"^threads per file: (\d{1,9})$", text)))
    depth = int(_field(r"^number of outstanding I/O operations(?: per thread)?: (\d{1,9})$", text))
    order = _field(r"^using (random|sequential|interlocked sequential) I/O", text)
    limit = re.search(r"^throughput rate-limited to (\d{1,12}) (IOPS|B/ms)$", text, re.MULTILINE)
    return _Target(
        pattern=_pattern(_write_percent(text), is_random=order == "random"),
        request_bytes=request_bytes,
        is_direct=any(line in _DIRECT_TEXT for line in lines)
        and "memory mapped I/O enabled" not in text,
        inflight=threads * _positive("outstanding I/O operations", depth),
        rate_iops=None
        if limit is None
        else _rate_iops(float(limit[1]), limit[2], request_bytes, threads),
        disks=_disks(target),
    )


def _write_percent(text: str) -> int:
    if "performing read test" in text:
        return 0
    if "performing write test" in text:
        return 100
    # Versions before 2.0.17 print "write/read ratio: 30/100" for 30 % of writes.
    mix = r"performing mix test \((?:read/write ratio: \d{1,3}/|write/read ratio: )(\d{1,3})[)/]"
    return int(_field(mix, text))


def _pattern(write_percent: int, *, is_random: bool) -> Pattern:
    return _PATTERNS.get((is_random, write_percent), "randrw" if is_random else "rw")


def _rate_iops(limit: float, unit: str | None, request_bytes: int, threads: int) -> float | None:
    """Return the rate of all threads; DiskSpd limits each one, in IOPS or bytes per ms."""
    rate_iops = limit if unit == "IOPS" else limit * _MS_PER_S / request_bytes
    return rate_iops * threads or None


def _xml_result(span: ET.Element, direction: str) -> DirectionResult:
    targets = span.findall("Thread/Target")
    return _result(
        sum(round(_number(target, f"{direction}Count")) for target in targets),
        sum(round(_number(target, f"{direction}Bytes")) for target in targets),
        _number(span, "TestTimeSeconds"),
        span.findtext(f"Latency/Average{direction}Milliseconds"),
    )


def _text_result(span: str, direction: str) -> DirectionResult:
    seconds = _quantity(_field(r"actual test time:\s+([\d.]+)s", span))
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
    return _result(round(_quantity(cells[1])), round(_quantity(cells[0])), seconds, mean_ms)


def _result(
    requests: int, transferred_bytes: int, seconds: float, mean_ms: str | None
) -> DirectionResult:
    if not seconds:
        raise ValueError("found a test time of 0 s")
    mean_s = _quantity(mean_ms) / _MS_PER_S if mean_ms is not None and requests else None
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
        _TEXT_SHARES[row[0]]: _quantity(row[column]) / _MS_PER_S
        for row in rows
        if row[0] in _TEXT_SHARES and len(row) > column and row[column] != "N/A"
    }


def _number(element: ET.Element, name: str) -> float:
    text = element.findtext(name)
    if text is None:
        raise ValueError(f"found <{element.tag[:40]}> without <{name}>")
    return _quantity(text)


def _quantity(text: str) -> float:
    """Parse a number as printf writes it; `float` would accept 1e9, nan and 1_0 too."""
    if re.fullmatch(r"\s*\d{1,20}(?:\.\d{1,20})?\s*", text, re.ASCII) is None:
        raise ValueError(f"found '{text[:40]}'; expected a number")
    number = float(text)
    if number >= _LARGEST:
        raise ValueError(f"found {text[:40]}; expected a number below 2^63")
    return number


def _positive(name: str, number: float) -> int:
    whole = round(number)
    if not whole:
        raise ValueError(f"{name} is 0")
    return whole


def _size(text: str) -> int:
    return int(text) if text.isdecimal() else parse_size_bytes(text)


def _field(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE | re.ASCII)
    if found is None:
        raise ValueError(f"found no text that matches /{pattern}/")
    return found[1]
