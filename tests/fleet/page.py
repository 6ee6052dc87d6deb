"""The page of a simulated host at a moment: the real page of its disks, with their numbers."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from fleet.history import Disk, disks_of, host_name, model_of, playing
from fleet.models import models
from fleet.reel import Reel, Sample

_PROBED_EVERY_S = 30
_BETWEEN = "\0"
"""Stands between the families of a template."""


class Template(NamedTuple):
    """A page of one disk without its numbers."""

    text: str
    """With `%s` where a number or the serial goes."""
    families: tuple[str, ...]
    whole: tuple[bool, ...]
    """Which counters count things."""
    order: tuple[int, ...]
    """Places of the numbers of the page among counters followed by gauges and the serial."""


@cache
def template_of(model: str, name: str, device: str) -> Template:
    """Give the template of a reel for a device."""
    reel = models()[model].reels[name]
    counters = {sample.text: place for place, sample in enumerate(reel.counters)}
    gauges = {
        sample.text: len(counters) + place
        for place, sample in enumerate(s for s in reel.samples if not s.is_cumulative)
    }
    serial = len(counters) + len(gauges)
    lines: dict[str, list[str]] = {}
    order: list[int] = []
    for sample in reel.samples:
        lines.setdefault(sample.family, []).append(_line(sample, device))
        order += [serial] * ("SERIAL" in sample.text) + [(counters | gauges)[sample.text]]
    return Template(
        _BETWEEN.join("".join(each) for each in lines.values()),
        tuple(lines),
        tuple(sample.is_whole for sample in reel.counters),
        tuple(order),
    )


def _line(sample: Sample, device: str) -> str:
    text = sample.text.replace("%", "%%").replace("DEVICE", device).replace("SERIAL", "%s")
    return f"{text} %s\n"


def page_at(seed: int, host: int, begun_s: float, now_s: float) -> str:
    """Give the page of a host of a fleet that was begun at one Unix time, at a later one."""
    heads = _heads()
    disks = _disks(seed, host, begun_s)
    told = [_disk_lines(disk, now_s) for disk in disks]
    told.append(_host_lines(disks[0].born_s, now_s))
    return (
        "".join(
            head + "".join(each[family] for each in told if family in each)
            for family, head in heads.items()
            if any(family in each for each in told)
        )
        + "# EOF\n"
    )


_disks: Callable[[int, int, float], tuple[Disk, ...]] = cache(disks_of)


def samples_at(seed: int, host: int, begun_s: float, now_s: float) -> Sequence[str]:
    """Give the lines of samples of such a page, with the labels and the time of a scrape."""
    labels = f'job="disksla",instance="{host_name(host)}:10056"'
    return [f"up{{{labels}}} 1 {now_s:.0f}\n"] + [
        f"{_labelled(named, labels)} {value} {now_s:.0f}\n"
        for line in page_at(seed, host, begun_s, now_s).splitlines()
        if not line.startswith("#")
        for named, _, value in (line.rpartition(" "),)
    ]


def _labelled(named: str, labels: str) -> str:
    name, bare, rest = named.partition("{")
    return f"{name}{{{labels},{rest}" if bare else f"{name}{{{labels}}}"


@cache
def _heads() -> dict[str, str]:
    """Give the heads of all families, in the order of a page that has everything."""
    reels = [reel for model in models().values() for reel in model.reels.values()]
    fullest = max(reels, key=lambda reel: len(reel.heads))
    heads = dict(fullest.heads)
    for reel in reels:
        heads |= {family: head for family, head in reel.heads.items() if family not in heads}
    return heads


def _disk_lines(disk: Disk, now_s: float) -> dict[str, str]:
    """Give the lines of one disk by family."""
    now = playing(disk, now_s)
    reels = model_of(disk).reels
    template = template_of(disk.model, now.reel, disk.device)
    risen = [reels[name].risen(played_s) for name, played_s in now.played_s.items()]
    numbers: list[object] = [
        float(math.floor(number)) if whole else number
        for number, whole in zip(map(sum, zip(*risen, strict=True)), template.whole, strict=True)
    ]
    standing = reels[now.reel].standing(now.played_s[now.reel])
    numbers += [_present(text, value, disk.born_s, now_s) for text, value in standing.items()]
    numbers.append(disk.serial)
    text = template.text % tuple(numbers[place] for place in template.order)
    return dict(zip(template.families, text.split(_BETWEEN), strict=True))


def _present(text: str, value: float, born_s: int, now_s: float) -> object:
    """Give a gauge as it is printed; times of the recording become times of the fleet."""
    if text.startswith(
        ("disksla_probe_last_run_timestamp", "disksla_probe_last_attempt_timestamp")
    ):
        return float(now_s - now_s % _PROBED_EVERY_S)
    if text.partition("{")[0].endswith(("_timestamp_seconds", "_start_time_seconds")):
        return float(born_s)
    return "+Inf" if math.isinf(value) else value


def _host_lines(born_s: int, now_s: float) -> dict[str, str]:
    """Give the lines of the sampler, the daemon and its process, by family."""
    reel = _usual_reel()
    lines: dict[str, str] = {}
    for sample in reel.host:
        value = sample.value
        if sample.is_cumulative:
            value = value * (now_s - born_s) / reel.seconds
            value = float(math.floor(value)) if sample.is_whole else value
        printed = _present(sample.text, value, born_s, now_s)
        lines[sample.family] = lines.get(sample.family, "") + f"{sample.text} {printed}\n"
    return lines


def _usual_reel() -> Reel:
    return models()["ssd"].reels["light"]
