"""Parse results of DiskSpd: its XML (-Rxml) and its text.

Source: ResultParser, XmlResultParser and Target of https://github.com/microsoft/diskspd, 2.0.20
and later. Older versions print sizes as 4096, newer ones as 4KiB. A text without its part "Input
parameters" has them in its command line
(https://github.com/microsoft/diskspd/wiki/Command-line-and-parameters).
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.base.units import parse_size_bytes
from disksla.measure.fio import NOTHING, DirectionResult, Pattern, done_within
from disksla.measure.verification.measurement import (
    Measurement,
    Percentile,
    not_judged,
    windows_place,
)

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
_PATTERNS: dict[tuple[bool, int], Pattern] = {
    (False, 0): "read",
    (False, 100): "write",
    (True, 0): "randread",
    (True, 100): "randwrite",
}
_LARGEST = 2**63
_DEFAULT_BYTES = 64 * 1024
_DEFAULT_DEPTH = 2


class _Pool(NamedTuple):
    """Threads that all targets of a timespan share (-F), and their requests in flight (-O)."""

    threads: int = 0
    """0: each target has threads of its own."""
    depth: int = 0
    """Requests in flight of a thread; 0: those of each target."""


class _Target(NamedTuple):
    """What a target is asked for."""

    threads: int
    depth: int
    request_bytes: int
    limit: tuple[float, str | None] | None
    """Rate of each thread, in IOPS or in bytes per ms."""
    path: str
    """It begins with the path."""
    write_percent: int
    is_random: bool
    is_direct: bool
    is_paced: bool

    @property
    def pattern(self) -> Pattern:
        """Order and direction of the requests."""
        mix: Pattern = "randrw" if self.is_random else "rw"
        return _PATTERNS.get((self.is_random, self.write_percent), mix)

    @property
    def rate_iops(self) -> float:
        """The requested rate of all threads; 0 for as many requests as possible."""
        rate, unit = self.limit or (0.0, None)
        return rate * (1 if unit == "IOPS" else _MS_PER_S / self.request_bytes) * self.threads


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


def _measurement(
    name: str,
    targets: Sequence[_Target],
    pool: _Pool,
    result: Callable[[str], DirectionResult],
    percentiles: Callable[[str], Mapping[float, float]],
) -> Measurement:
    """Return the load of targets with the same kind of request, and what came of it.

    `result` is that of Read or Write, `percentiles` those of Read, Write or Total.
    """
    for target in targets:
        numbers = zip(("threads", "requests in flight", "bytes in a block"), target, strict=False)
        if zero := [what for what, number in numbers if not number]:
            raise ValueError(f"found 0 {zero[0]}; expected 1 or more")
    kinds = {(each.pattern, each.request_bytes, each.is_direct) for each in targets}
    if len(kinds) != 1:
        raise ValueError(f"found {len(kinds)} kinds of requests in {name}; expected 1")
    [(pattern, request_bytes, is_direct)] = kinds
    used = "Write" if pattern in {"write", "randwrite"} else "Read"
    is_mix = pattern in {"rw", "randrw"}
    found = percentiles("Total" if is_mix else used)
    places = {windows_place(target.path.removeprefix("'")) for target in targets}
    return Measurement(
        name=name,
        tool="DiskSpd",
        pattern=pattern,
        request_bytes=request_bytes,
        inflight=pool.threads * pool.depth or sum(each.threads * each.depth for each in targets),
        read=result("Read") if is_mix or used == "Read" else NOTHING,
        write=result("Write") if is_mix or used == "Write" else NOTHING,
        percentiles=tuple(Percentile(*each) for each in sorted(found.items())),
        rate_iops=sum(target.rate_iops for target in targets) or None,
        is_direct=is_direct,
        targets=tuple(sorted(filter(None, places))),
        is_paced=any(target.is_paced for target in targets),
    )


def _result(
    requests: float, transferred_bytes: float, seconds: float, mean_ms: str | None
) -> DirectionResult:
    if not seconds:
        raise ValueError("found a test time of 0 s")
    mean_s = _quantity(mean_ms) / _MS_PER_S if mean_ms is not None and requests else None
    return done_within(round(requests), round(transferred_bytes), seconds, mean_s)


def _check_spans(profiles: Collection[object], spans: Collection[object]) -> None:
    if not spans or len(profiles) != len(spans):
        raise ValueError(f"found {len(profiles)} timespans and {len(spans)} results")


def _parse_xml(text: str) -> Iterator[Measurement]:
    """Parse XML without declarations, so that there are no entities to expand.

    The text is decoded before, so that no encoding can hide a declaration.
    """
    begin, end = text.index(_XML_MARK), text.rfind("</Results>")
    if end < begin:
        raise ValueError("it is cut off: found no </Results>")
    text = text[begin : end + len("</Results>")]
    if "<!" in text:
        raise ValueError("found a declaration, comment or CDATA, which DiskSpd does not write")
    try:
        root = ET.fromstring(text)  # noqa: S314 -- no DTD, as checked above
    except (ET.ParseError, RecursionError) as error:
        raise ValueError(f"invalid XML: {error}") from None
    tool = f"DiskSpd {root.findtext('System/Tool/Version') or '(unknown version)'}"
    profiles, spans = root.findall("Profile/TimeSpans/TimeSpan"), root.findall("TimeSpan")
    _check_spans(profiles, spans)
    for number, (profile, span) in enumerate(zip(profiles, spans, strict=True), start=1):
        pool = _Pool(_optional(profile, "ThreadCount"), _optional(profile, "RequestCount"))
        targets = [_xml_target(each, pool) for each in profile.findall("Targets/Target")]
        load = _measurement(
            f"timespan {number}",
            targets,
            pool,
            partial(_xml_result, span),
            partial(_xml_percentiles, span),
        )
        yield replace(load, tool=tool)


def _xml_target(target: ET.Element, pool: _Pool) -> _Target:
    if target.find("RandomRatio") is not None:
        raise ValueError("found random and sequential requests at the same time")
    limit = target.find("Throughput")
    return _Target(
        threads=pool.threads or round(_number(target, "ThreadsPerFile")),
        depth=pool.depth or round(_number(target, "RequestCount")),
        request_bytes=round(_number(target, "BlockSize")),
        limit=None if limit is None else (_quantity(limit.text or ""), limit.get("unit")),
        path=target.findtext("Path", ""),
        write_percent=round(_number(target, "WriteRatio")),
        is_random=target.find("Random") is not None,
        is_direct=any(target.findtext(each) == "true" for each in _DIRECT_XML)
        and target.findtext("MemoryMappedIo") != "true",
        is_paced=_optional(target, "ThinkTime") > 0,
    )


def _xml_result(span: ET.Element, direction: str) -> DirectionResult:
    targets = span.findall("Thread/Target")
    requests, transferred = (
        sum(round(_number(target, f"{direction}{what}")) for target in targets)
        for what in ("Count", "Bytes")
    )
    mean_ms = span.findtext(f"Latency/Average{direction}Milliseconds")
    return _result(requests, transferred, _number(span, "TestTimeSeconds"), mean_ms)


def _xml_percentiles(span: ET.Element, column: str) -> dict[float, float]:
    name = f"{column}Milliseconds"
    return {
        _XML_SHARES[label]: _number(bucket, name) / _MS_PER_S
        for bucket in span.findall("Latency/Bucket")
        if (label := bucket.findtext("Percentile", "")) in _XML_SHARES
        and bucket.find(name) is not None
    }


def _number(element: ET.Element, name: str) -> float:
    text = element.findtext(name)
    if text is None:
        raise ValueError(f"found <{element.tag[:40]}> without <{name}>")
    return _quantity(text)


def _optional(element: ET.Element, name: str) -> int:
    return 0 if element.find(name) is None else round(_number(element, name))


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
    _, *profiles = re.split(r"timespan: +\d+", parameters)
    command = re.search(r"Command Line: ([^\n]+)", parameters)
    asked = []
    if not profiles and len(spans) == 1 and command is not None:
        asked.append(_of_command(command[1]))
    else:
        _check_spans(profiles, spans)
    for profile in profiles:
        shared, *paths = re.split(r"(?m)^[ \t]*path: ", profile)
        threads = re.search(r"^[ \t]*thread pool with (\d{1,9}) threads", shared, re.MULTILINE)
        depth = re.search(rf"^[ \t]*{_OUTSTANDING}", shared, re.MULTILINE) if threads else None
        pool = _Pool(int(threads[1]) if threads else 0, int(depth[1]) if depth else 0)
        asked.append(([_text_target(each, pool) for each in paths], pool))
    for number, ((targets, pool), span) in enumerate(zip(asked, spans, strict=True), start=1):
        yield _measurement(
            f"{name} {number}",
            targets,
            pool,
            partial(_text_result, span),
            partial(_text_percentiles, span),
        )


def _text_target(target: str, pool: _Pool) -> _Target:
    lines = [line.strip() for line in target.splitlines()]
    text = "\n".join(lines)
    order = _field(r"^using (random|sequential|interlocked sequential) I/O", text)
    limit = re.search(r"^throughput rate-limited to (\d{1,12}) (IOPS|B/ms)$", text, re.MULTILINE)
    size = _field(r"^block size: (\w+)$", text)
    write_percent = {"read": 0, "write": 100}.get(_field(r"performing (\w+) test", text))
    if write_percent is None:
        # Versions before 2.0.17 print "write/read ratio: 30/100" for 30 % of writes.
        ratio = r"performing mix test \((?:read/write ratio: \d{1,3}/|write/read ratio: )"
        write_percent = int(_field(rf"{ratio}(\d{{1,3}})[)/]", text))
    return _Target(
        threads=pool.threads or int(_field(r"^threads per file: (\d{1,9})$", text)),
        depth=pool.depth or int(_field(rf"^{_OUTSTANDING}$", text)),
        request_bytes=int(size) if size.isdecimal() else parse_size_bytes(size),
        limit=None if limit is None else (float(limit[1]), limit[2]),
        path=target,
        write_percent=write_percent,
        is_random=order == "random",
        is_direct=any(line in _DIRECT_TEXT for line in lines)
        and "memory mapped I/O enabled" not in text,
        is_paced=re.search(r"^think time: 0*[1-9]", text, re.MULTILINE) is not None,
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
    return _result(_quantity(cells[1]), _quantity(cells[0]), seconds, mean_ms)


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


def _quantity(text: str) -> float:
    """Parse a number as printf writes it; `float` would accept 1e9, nan and 1_0 too."""
    if re.fullmatch(r"\s*\d{1,20}(?:\.\d{1,20})?\s*", text, re.ASCII) is None:
        raise ValueError(f"found '{text[:40]}'; expected a number")
    number = float(text)
    if number >= _LARGEST:
        raise ValueError(f"found {text[:40]}; expected a number below 2^63")
    return number


def _field(pattern: str, text: str) -> str:
    """Return the group of a pattern. Raise ValueError if no line matches."""
    found = re.search(pattern, text, re.MULTILINE | re.ASCII)
    if found is None:
        raise ValueError(f"found no text that matches /{pattern}/")
    return found[1]


def _of_command(command: str) -> tuple[list[_Target], _Pool]:
    """Return the targets of a command line."""
    words = [word.strip("\"'") for word in re.findall(r"\"[^\"]*\"|\S+", command)]
    places = [place for place, word in enumerate(words) if place and word[0:1] in {"-", "/"}]
    options = [words[place][1:] for place in places]
    paths = words[max(places, default=0) + 1 :]
    if not paths or any(option.startswith("X") for option in options):
        raise ValueError("found neither input parameters nor a command line with its targets")
    if any(option.startswith("rs") for option in options):
        raise ValueError("found random and sequential requests at the same time")

    def value(name: str, pattern: str = r"(\d{1,9})") -> re.Match[str] | None:
        """Return the value of the last option of a name, which follows it without a blank."""
        found = (re.fullmatch(name + pattern, option, re.ASCII) for option in reversed(options))
        return next(filter(None, found), None)

    def count(name: str, default: int = 0) -> int:
        found = value(name)
        return default if found is None else int(found[1])

    size, limit = value("b", r"(\d{1,12})([KMGTkmgt]?)"), value("g", r"(\d{1,12})(i?)")
    request_bytes = _DEFAULT_BYTES
    if size is not None:
        request_bytes = int(size[1]) * 1024 ** " KMGT".index(size[2].upper() or " ")
    # The software cache is disabled by -S, -Su, -Sh, -Sr and -h, also with w.
    modes = [option[1:] for option in options if re.fullmatch("S[bhmruw]*", option)]
    is_disabled = "h" in options or any(mode == "" or set(mode) & set("hru") for mode in modes)
    pool = _Pool(count("F"), count("O"))
    target = _Target(
        threads=pool.threads or count("t", 1),
        depth=count("o", _DEFAULT_DEPTH),
        request_bytes=request_bytes,
        limit=None if limit is None else (float(limit[1]), "IOPS" if limit[2] else None),
        path="",
        write_percent=count("w"),
        is_random=any(re.match(r"r\d*[KMGTb]?$", option) for option in options),
        is_direct=is_disabled and not any("m" in mode for mode in modes),
        is_paced=count("j") > 0,
    )
    return [target._replace(path=path) for path in paths], pool
