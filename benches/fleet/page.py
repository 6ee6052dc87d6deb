"""Metrics page of a simulated host at a moment: real pages of disks with computed values."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from fleet.models import models
from fleet.playback import UNITS, Playback, Sample
from fleet.schedule import Disk, disks_of, host_name, model_of, progress_of

_PROBED_EVERY_S = 30
_SEPARATOR = "\0"
"""Separates the families of a template."""


class Template(NamedTuple):
    """A page of one disk without its values."""

    text: str
    """With `%s` for each value and the serial number."""
    families: tuple[str, ...]
    whole: tuple[bool, ...]
    """Which counters have integer values."""
    order: tuple[int, ...]
    """Index of each value of the page in: counters, gauges, serial number."""


@cache
def template_of(model: str, name: str, device: str) -> Template:
    """Return the template of a playback for a device."""
    playback = models()[model].playbacks[name]
    counters = {sample.text: index for index, sample in enumerate(playback.counters)}
    gauges = {
        sample.text: len(counters) + index
        for index, sample in enumerate(s for s in playback.samples if not s.is_cumulative)
    }
    serial = len(counters) + len(gauges)
    lines: dict[str, list[str]] = {}
    order: list[int] = []
    for sample in playback.samples:
        lines.setdefault(sample.family, []).append(_line(sample, device))
        order += [serial] * ("SERIAL" in sample.text) + [(counters | gauges)[sample.text]]
    return Template(
        _SEPARATOR.join("".join(each) for each in lines.values()),
        tuple(lines),
        tuple(sample.is_whole for sample in playback.counters),
        tuple(order),
    )


def _line(sample: Sample, device: str) -> str:
    text = sample.text.replace("%", "%%").replace("DEVICE", device).replace("SERIAL", "%s")
    return f"{text} %s\n"


def page_at(seed: int, host: int, fleet_start_s: float, now_s: float) -> str:
    """Return the page of a host at `now_s`, in a fleet that started at an earlier Unix time."""
    heads = _heads()
    disks = _disks(seed, host, fleet_start_s)
    lines = [_disk_lines(disk, now_s) for disk in disks]
    lines.append(_host_lines(disks[0].born_s, now_s))
    return (
        "".join(
            head + "".join(each[family] for each in lines if family in each)
            for family, head in heads.items()
            if any(family in each for each in lines)
        )
        + "# EOF\n"
    )


_disks: Callable[[int, int, float], tuple[Disk, ...]] = cache(disks_of)


def samples_at(seed: int, host: int, fleet_start_s: float, now_s: float) -> Sequence[str]:
    """Return the samples of such a page, with the labels and the timestamp of a scrape."""
    labels = f'job="disksla",instance="{host_name(host)}:10056"'
    return [f"up{{{labels}}} 1 {now_s:.0f}\n"] + [
        f"{labelled(series, labels)} {value} {now_s:.0f}\n"
        for line in page_at(seed, host, fleet_start_s, now_s).splitlines()
        if not line.startswith("#")
        for series, _, value in (line.rpartition(" "),)
    ]


def labelled(series: str, labels: str) -> str:
    """Return a series of a page with the labels of its target."""
    name, brace, rest = series.partition("{")
    return f"{name}{{{labels},{rest}" if brace else f"{name}{{{labels}}}"


@cache
def _heads() -> dict[str, str]:
    """Return the HELP and TYPE lines of all families, in the order of the page with the most."""
    playbacks = [playback for model in models().values() for playback in model.playbacks.values()]
    longest = max(playbacks, key=lambda playback: len(playback.heads))
    heads = dict(longest.heads)
    for playback in playbacks:
        heads |= {family: head for family, head in playback.heads.items() if family not in heads}
    return heads


def _disk_lines(disk: Disk, now_s: float) -> dict[str, str]:
    """Return the samples of one disk by family."""
    now = progress_of(disk, now_s)
    playbacks = model_of(disk).playbacks
    template = template_of(disk.model, now.playback, disk.device)
    increases = [playbacks[name].increases(played_s) for name, played_s in now.played_s.items()]
    values: list[object] = [
        float(value // UNITS) if whole else value / UNITS
        for value, whole in zip(
            map(sum, zip(*increases, strict=True)), template.whole, strict=True
        )
    ]
    gauges = playbacks[now.playback].gauge_values(now.played_s[now.playback])
    values += [_printed(text, value, disk.born_s, now_s) for text, value in gauges.items()]
    values.append(disk.serial)
    text = template.text % tuple(values[index] for index in template.order)
    return dict(zip(template.families, text.split(_SEPARATOR), strict=True))


def _printed(text: str, value: float, born_s: int, now_s: float) -> object:
    """Return the printed value of a gauge; timestamps are those of the fleet."""
    if text.startswith(
        ("disksla_probe_last_run_timestamp", "disksla_probe_last_attempt_timestamp")
    ):
        return float(now_s - now_s % _PROBED_EVERY_S)
    if text.partition("{")[0].endswith(("_timestamp_seconds", "_start_time_seconds")):
        return float(born_s)
    return "+Inf" if math.isinf(value) else value


def _host_lines(born_s: int, now_s: float) -> dict[str, str]:
    """Return the samples of the sampler, the daemon and its process, by family."""
    playback = _light_load()
    lines: dict[str, str] = {}
    for sample in playback.host:
        value = sample.value
        if sample.is_cumulative:
            value = value * (now_s - born_s) / playback.seconds
            value = float(math.floor(value)) if sample.is_whole else value
        printed = _printed(sample.text, value, born_s, now_s)
        lines[sample.family] = lines.get(sample.family, "") + f"{sample.text} {printed}\n"
    return lines


def _light_load() -> Playback:
    return models()["ssd"].playbacks["light"]
