"""All fuzz targets by name."""

from fuzz.target import Target
from fuzz.targets import (
    access,
    events,
    groups,
    kept,
    kernel,
    provider,
    results,
    settings,
    web,
    words,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (settings, kernel, groups, events, provider, kept, results, web, access, words)
    for target in module.TARGETS
}
