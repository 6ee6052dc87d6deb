"""What kernel.perf_event_paranoid permits."""

_UPSTREAM = 2
"""Highest value that kernels without a patch know; Debian's set 3, and Ubuntu's 4."""


def describe_refusal(paranoia: int | None) -> str:
    """Return why the kernel refuses events of all processes; None if the value is not known.

    Above 2, the kernels of Debian and Ubuntu do not accept CAP_PERFMON.
    """
    if paranoia is None:
        return "kernel.perf_event_paranoid cannot be read"
    needed = "CAP_PERFMON" if paranoia <= _UPSTREAM else "CAP_SYS_ADMIN"
    return f"kernel.perf_event_paranoid is {paranoia}, at which this kernel requires {needed}"
