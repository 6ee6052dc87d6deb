"""Short jobs of fio, and their failures."""

from pathlib import Path

import pytest

from disksla.fio.job import FioJob, Pattern
from disksla.fio.result import FioError
from disksla.fio.runner import Fio
from disksla.units import KIB


def job(target: Path | str, pattern: Pattern = "randread", **more: object) -> FioJob:
    defaults: dict[str, object] = {"request_bytes": 4 * KIB, "runtime_s": 0.5}
    return FioJob(name="test", target=str(target), pattern=pattern, **{**defaults, **more})  # type: ignore[arg-type]


def failure(fio: Fio, what: FioJob, limit_s: float = 30, **more: object) -> FioError:
    with pytest.raises(FioError) as caught:
        fio.run(what, limit_s=limit_s, **more)  # type: ignore[arg-type]
    return caught.value
