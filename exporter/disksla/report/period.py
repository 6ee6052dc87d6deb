"""The period of a report: two moments and the offset from UTC in which times are written."""

import datetime as dt

import msgspec

from disksla.errors import DiskslaError

_DAY_S = 86_400
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
        """Return a moment in the zone of the period."""
        zone = dt.timezone(dt.timedelta(seconds=self.utc_offset_s))
        return dt.datetime.fromtimestamp(timestamp_s, zone)

    def text(self, timestamp_s: float) -> str:
        """Return a moment, such as '2026-10-01 12:00:05'."""
        return f"{self.time(timestamp_s):%Y-%m-%d %H:%M:%S}"

    def day_of(self, timestamp_s: float) -> str:
        """Return the date of the day that ends with a moment, or that it is in.

        Midnight belongs to the day before: what is counted at that moment happened there.
        """
        return f"{self.time(timestamp_s - 1e-3):%Y-%m-%d}"

    def days(self) -> dict[str, int]:
        """Return the seconds of each day of the period, by its date."""
        start_s = self.start_timestamp_s + self.utc_offset_s
        end_s = self.end_timestamp_s + self.utc_offset_s
        return {
            f"{dt.datetime.fromtimestamp(day_s, dt.UTC):%Y-%m-%d}": min(day_s + _DAY_S, end_s)
            - max(day_s, start_s)
            for day_s in range(start_s - start_s % _DAY_S, end_s, _DAY_S)
        }


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
