"""Short jobs of fio, and their failures."""

from pathlib import Path

import pytest

from disksla.base.units import KIB
from disksla.measure.fio.job import FioJob, Pattern
from disksla.measure.fio.result import FioError
from disksla.measure.fio.runner import Fio


def job(target: Path | str, pattern: Pattern = "randread", **more: object) -> FioJob:
    defaults: dict[str, object] = {"request_bytes": 4 * KIB, "runtime_s": 0.5}
    return FioJob(name="test", target=str(target), pattern=pattern, **{**defaults, **more})  # type: ignore[arg-type]


def failure(fio: Fio, what: FioJob, limit_s: float = 30, **more: object) -> FioError:
    with pytest.raises(FioError) as caught:
        fio.run(what, limit_s=limit_s, **more)  # type: ignore[arg-type]
    return caught.value
