"""The period of a report: two moments and the offset from UTC in which times are written."""

import datetime as dt

import msgspec

from disksla.base.errors import DiskslaError

_DAY_S = 86_400
_HOUR_S = 3600
_MOST_HOURS = 72
"""A longer period is divided into days, not hours."""
_SOON_S = 1e-3
_LAST_S = 253_402_128_000.0
"""A day before the end of the year 9999."""
_DATE_LENGTH = len("2026-10-01")
_EXPECTED = "a date such as 2026-10-01, or a time with its zone such as 2026-10-01T12:00:00+03:00"


class Period(msgspec.Struct, frozen=True):
    """The time between two moments in seconds since 1970; the end is exclusive."""

    start_timestamp_s: int
    end_timestamp_s: int
    utc_offset_s: int = 0
    """Seconds east of UTC, of the times and days that are written."""

    @property
    def seconds(self) -> int:
        """The length."""
        return self.end_timestamp_s - self.start_timestamp_s

    @property
    def zone(self) -> str:
        """The offset from UTC, such as 'UTC' or 'UTC+03:00'."""
        return dt.timezone(dt.timedelta(seconds=self.utc_offset_s)).tzname(None)

    def time(self, timestamp_s: float) -> dt.datetime:
        """Return a moment in the zone of the period; one that no calendar has is the nearest."""
        zone = dt.timezone(dt.timedelta(seconds=self.utc_offset_s))
        return dt.datetime.fromtimestamp(min(max(timestamp_s, 0.0), _LAST_S), zone)

    def text(self, timestamp_s: float) -> str:
        """Return a moment, such as '2026-10-01 12:00:05'."""
        return f"{self.time(timestamp_s):%Y-%m-%d %H:%M:%S}"

    def slices(self) -> dict[str, int]:
        """Return the seconds of each day of the period, or hour of a short one, by its start."""
        start_s, end_s = (
            each_s + self.utc_offset_s for each_s in (self.start_timestamp_s, self.end_timestamp_s)
        )
        return {
            self._slice(slice_s): min(slice_s + self._slice_s, end_s) - max(slice_s, start_s)
            for slice_s in range(start_s - start_s % self._slice_s, end_s, self._slice_s)
        }

    def slice_of(self, timestamp_s: float) -> str:
        """Return the slice that a moment is in, or that ends with it.

        What is counted at the end of a slice happened in it.
        """
        return self._slice(timestamp_s - _SOON_S + self.utc_offset_s)

    @property
    def _slice_s(self) -> int:
        return _HOUR_S if self.seconds <= _MOST_HOURS * _HOUR_S else _DAY_S

    def _slice(self, local_s: float) -> str:
        """Return the start of the slice of a moment in local seconds."""
        moment = dt.datetime.fromtimestamp(local_s // self._slice_s * self._slice_s, dt.UTC)
        return f"{moment:%Y-%m-%d %H:00}" if self._slice_s == _HOUR_S else f"{moment:%Y-%m-%d}"


def parse_period(start: str, end: str, now_s: float) -> Period:
    """Return the period between two dates or times; a date is its midnight in UTC.

    Raise DiskslaError if one is invalid, or the end is not after the start or in the future: the
    same report could not be made again.
    """
    start_at, end_at = _moment("--from", start), _moment("--to", end)
    offset = start_at.utcoffset() or dt.timedelta()
    period = Period(
        int(start_at.timestamp()), int(end_at.timestamp()), int(offset.total_seconds())
    )
    if period.seconds <= 0:
        raise DiskslaError(f"found --to {end}; expected a moment after --from {start}")
    if period.end_timestamp_s > now_s:
        raise DiskslaError(
            f"found --to {end}, which is in the future; expected the end of a period that is over"
        )
    return period


def _moment(option: str, text: str) -> dt.datetime:
    try:
        if len(text) == _DATE_LENGTH:
            return dt.datetime.combine(dt.date.fromisoformat(text), dt.time(), dt.UTC)
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise DiskslaError(f"found {option} '{text}'; expected {_EXPECTED}") from None
    if moment.tzinfo is None or moment.microsecond:
        raise DiskslaError(f"found {option} '{text}'; expected {_EXPECTED}")
    return moment
