"""The tables of the population bench, as text."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from disksla.verdict.throttling import Sign
from population.judging import Judged, Signs

NEAR_RATIO = 0.08
"""Time within which a run is right, as a share of the simulated time."""
FALSE_RATIO = 0.005
"""Time beyond which a disk without a limiter is accused."""
WINDOW_RATIO = 0.02
RATE_RATIO = 0.05
NAMED_RATIO = 0.9
"""Share of the found seconds that have the right limit."""
SEEN_RATIO = 0.05
"""Share of the time: windows, rates and names are compared where truth and result are above."""

_HEADINGS = ("runs", "truth s", "found s", "near", "false", "window", "rate", "named", "credits")
_WIDTHS = (5, 8, 8, 9, 7, 9, 9, 9, 13)


def is_near(run: Judged) -> bool:
    """Return whether the throttled time is within 8 points of the truth."""
    return abs(run.total_s - run.truth_s) <= NEAR_RATIO * run.seconds


def is_false(run: Judged) -> bool:
    """Return whether a disk without a limiter is accused for more than 0.5 % of the time."""
    return run.limit is None and run.total_s > FALSE_RATIO * run.seconds


def table(runs: Iterable[Judged], caption: str, key: Callable[[Judged], str]) -> Iterator[str]:
    """Yield the lines of one table, with a row for each value of the key."""
    yield ""
    yield _line(caption, _HEADINGS)
    for name, group in groupby(sorted(runs, key=key), key):
        yield _line(name, _cells(list(group)))


def report(runs: list[Judged], seed: int) -> Iterator[str]:
    """Yield the lines of all tables, and of the runs that are wrong."""
    limited = [run for run in runs if run.limit is not None]
    unlimited = [run for run in runs if run.limit is None]
    yield from table(
        limited, "limiter / terms", lambda run: f"{run.classes.limiter} / {run.terms}"
    )
    yield from table(limited, "load with limiter / terms", _load)
    yield from table(
        unlimited, "medium / terms", lambda run: f"{run.classes.medium} / {run.terms}"
    )
    yield from table(unlimited, "load without limiter / terms", _load)
    yield from table(runs, "all", lambda run: f"{_kind(run)} / {run.terms}")
    yield ""
    yield f"without a limiter, accused for more than {FALSE_RATIO:.1%} of the time:"
    yield from _wrong((run for run in unlimited if is_false(run)), seed)
    yield f"with a limiter, more than {NEAR_RATIO:.0%} of the time beside the truth:"
    yield from _wrong((run for run in limited if not is_near(run)), seed)


def sign_table(results: dict[Signs, list[Judged]]) -> Iterator[str]:
    """Yield what each sign gives and costs: without it, and alone."""
    every: Signs = frozenset[Sign]().union(*results)
    yield ""
    yield _line("signs", _HEADINGS)
    for signs, runs in results.items():
        for name, group in groupby(sorted(runs, key=_sign_key), _sign_key):
            yield _line(f"{_signs(signs, every)}: {name}", _cells(list(group)))


def _signs(signs: Signs, every: Signs) -> str:
    if signs == every:
        return "all"
    if len(signs) == 1:
        return f"only {next(iter(signs))}"
    return f"without {' and '.join(sorted(every - signs))}"


def _sign_key(run: Judged) -> str:
    return f"{_kind(run)}, {'no terms' if run.terms == 'none' else 'terms'}"


def _load(run: Judged) -> str:
    return f"{run.classes.load} / {run.terms}"


def _kind(run: Judged) -> str:
    return "no limiter" if run.limit is None else "limiter"


def _cells(runs: list[Judged]) -> tuple[str, ...]:
    seen = [run for run in runs if min(run.truth_s, run.total_s) > SEEN_RATIO * run.seconds]
    windowed = [run for run in seen if run.limit is not None and run.limit.window_s is not None]
    steady = [run for run in seen if run.limit is not None and run.limit.burst is None]
    with_terms = [run for run in seen if run.terms == "right"]
    unlimited = [run for run in runs if run.limit is None]
    credit_samples = sum(run.credit_samples for run in runs)
    return (
        str(len(runs)),
        f"{sum(run.truth_s for run in runs):.1f}",
        f"{sum(run.total_s for run in runs):.1f}",
        _of(sum(map(is_near, runs)), len(runs)),
        str(sum(map(is_false, unlimited))) if unlimited else "-",
        _of(sum(map(_has_window, windowed)), len(windowed)),
        _of(sum(map(_has_rate, steady)), len(steady)),
        _of(sum(map(_is_named, with_terms)), len(with_terms)),
        _of(credit_samples - sum(run.wrong_credits for run in runs), credit_samples),
    )


def _has_window(run: Judged) -> bool:
    true_s = run.limit and run.limit.window_s
    return bool(true_s and run.window_s and abs(run.window_s / true_s - 1) <= WINDOW_RATIO)


def _has_rate(run: Judged) -> bool:
    limit = run.limit
    return bool(limit and run.rate and abs(run.rate / limit.per_second - 1) <= RATE_RATIO)


def _is_named(run: Judged) -> bool:
    name = run.limit.name if run.limit is not None else ""
    return run.found_s.get(name, 0.0) >= NAMED_RATIO * run.total_s


def _wrong(runs: Iterable[Judged], seed: int) -> Iterator[str]:
    """Yield a line for each disk: how to repeat it, and what its wrong runs found."""
    for number, group in groupby(runs, lambda run: run.number):
        of_disk = list(group)
        first = of_disk[0]
        classes = f"{first.classes.limiter or first.classes.medium}, {first.classes.load}"
        truth = f"; truth {first.truth_s:.1f} s" if first.limit is not None else ""
        found = "; ".join(f"{run.terms} {_found(run)}" for run in of_disk)
        yield f"  --seed {seed} --only {number:<4} {classes}{truth}; found with terms {found}"


def _found(run: Judged) -> str:
    found = [f"{name} {found_s:.1f} s" for name, found_s in sorted(run.found_s.items())]
    return " ".join(found) or "0.0 s"


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else "-"


def _line(first: str, cells: tuple[str, ...]) -> str:
    columns = [f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)]
    return f"{first:<44}{''.join(columns)}"
