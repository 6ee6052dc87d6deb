"""Sentences about an array on several disks: what it is promised, and which disk binds it."""

from collections.abc import Iterator

from disksla.base.units import format_percent
from disksla.kernel.disks import Layer
from disksla.promise.array_promise import layers_of
from disksla.promise.catalogue import Rates
from disksla.state.history import total_slot
from disksla.state.pipeline import ArraySnapshot
from disksla.tell.explanation.past import HistoryView
from disksla.tell.explanation.words import describe_rates, seconds_text

_UNEVEN_LOAD = 1.5
"""Times the requests that a disk of a stripe has if all have the same."""
_LEAST_IOPS = 10.0
"""Of an array with fewer requests, it is not said on which disks they were."""
_LEAST_WAIT_S = 1.0
_RATE_NAMES = {
    "read_iops": "IOPS of reads",
    "write_iops": "IOPS of writes",
    "read_bytes_per_second": "bandwidth of reads",
    "write_bytes_per_second": "bandwidth of writes",
}


def array_name(snapshot: ArraySnapshot) -> str:
    """Return where the array is mounted, or else its name, with that of its device."""
    device = snapshot.array.device
    name = device.layer.name if device.layer is not None else None
    places = ", ".join(device.mount_points) or name or device.name
    others = [each for each in (name, device.name) if each and each != places]
    return f"{places} ({', '.join(others)})" if others else places


def explain_array(snapshot: ArraySnapshot, past: HistoryView) -> list[str]:
    """Return sentences about an array: how it is made, its promise, and the last minutes."""
    return [_made(snapshot), *_promise(snapshot), *_lately(snapshot, past)]


def _made(snapshot: ArraySnapshot) -> str:
    layers = ", over ".join(map(_describe_layer, layers_of(snapshot.array.tree)))
    return f"It is on {', '.join(snapshot.array.disks)}{layers and f': {layers}'}."


def _describe_layer(layer: Layer) -> str:
    count = len(layer.members)
    if layer.how == "striped":
        copies = f", {layer.copies} copies" if layer.copies > 1 else ""
        chunk = f", chunks of {layer.chunk_bytes >> 10} KiB" if layer.chunk_bytes else ""
        return f"{layer.title}, striped over {count}{copies}{chunk}"
    if layer.how == "mirrored":
        return f"{layer.title}, mirrored on {count}"
    is_joined = layer.how == "linear" and count > 1
    return f"{layer.title}, one after another" if is_joined else layer.title


def _promise(snapshot: ArraySnapshot) -> Iterator[str]:
    """Yield what is promised, what binds it, and whether a stripe is uneven."""
    array, promise = snapshot.array, snapshot.promise
    if promise is None:
        yield f"What it is promised is not known: {_why_not(snapshot)}."
        return
    layers = [layer for layer in layers_of(array.tree) if len(layer.members) > 1]
    hows = {layer.how for layer in layers}
    words = [describe_rates(promise.rates) or "no rate"]
    if "striped" in hows:
        words.append("a request above a chunk counts for several")
    is_copied = "mirrored" in hows or any(layer.copies > 1 for layer in layers)
    if is_copied and array.device.rotational is not False:
        words.append("one copy may serve all reads of rotational disks")
    if "linear" in hows:
        words.append("a load on one part of it gets no more than its disk")
    yield f"It is promised {'; '.join(words)}."
    by_binding: dict[tuple[str, ...], list[str]] = {}
    for field, names in promise.binding.items():
        if set(names) != set(array.disks):
            by_binding.setdefault(names, []).append(field)
    for names, fields in by_binding.items():
        named = " and ".join(_RATE_NAMES[field] for field in fields)
        everything = len(by_binding) == 1 and len(fields) == len(promise.binding)
        bind = "bind" if len(names) > 1 else "binds"
        yield f"What {bind} {'it' if everything else f'its {named}'}: {', '.join(names)}."
    if promise.is_uneven:
        by_rates: dict[Rates, list[str]] = {}
        for each in snapshot.disks:
            by_rates.setdefault(each.assignment.limits.rates, []).append(each.disk.name)
        shares = "; ".join(
            f"{describe_rates(rates)} on {', '.join(names)}" for rates, names in by_rates.items()
        )
        yield f"The stripe is uneven, so all its disks count as the slowest: {shares}."


def _why_not(snapshot: ArraySnapshot) -> str:
    """Return why no promise follows."""
    array = snapshot.array
    known = {each.disk.name for each in snapshot.disks if each.assignment.limits.budget}
    if missing := [name for name in array.disks if name not in known]:
        return f"the limits of {', '.join(missing)} are not known"
    return "sysfs does not say which part of it is on which disk, or it computes parity"


def _lately(snapshot: ArraySnapshot, past: HistoryView) -> Iterator[str]:
    """Yield on which disks of an array requests waited, and whether their loads differ."""
    slots = {each.disk.name: total_slot(past.seconds(each)) for each in snapshot.disks}
    seconds = max((slot.seconds for slot in slots.values()), default=0.0)
    waited = {name: slot.bad_s for name, slot in slots.items()}
    if max(waited.values(), default=0.0) >= _LEAST_WAIT_S:
        each = ", ".join(f"{name} {seconds_text(bad_s)} s" for name, bad_s in waited.items())
        yield f"In the last {seconds_text(seconds)} s, requests waited at its disks: {each}."
    is_striped = any(layer.how == "striped" for layer in layers_of(snapshot.array.tree))
    requests = {name: slot.requests for name, slot in slots.items()}
    whole = sum(requests.values())
    most = max(requests, key=lambda name: requests[name], default="")
    is_loaded = seconds and whole >= _LEAST_IOPS * seconds
    if is_striped and is_loaded and requests[most] > _UNEVEN_LOAD * whole / len(requests):
        share = format_percent(round(requests[most] / whole, 2))
        yield (
            f"Its load is uneven: {share} of the requests were on {most}, one of {len(requests)}"
            " disks; other arrays on it, or a file that is used more, may cause that."
        )
