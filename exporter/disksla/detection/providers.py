"""The providers that can be asked, by their ids in the catalogue."""

import datetime as dt
from collections.abc import Callable
from functools import partial

from disksla.detection.aws import detect_aws
from disksla.detection.azure import detect_azure
from disksla.detection.findings import Detected
from disksla.detection.google import detect_google
from disksla.detection.machine_type import detect_alibaba, detect_oracle
from disksla.detection.openstack import SERVICES, OpenstackCredentials, detect_openstack
from disksla.detection.yandex import detect_yandex
from disksla.exchange import Exchanges

WITH_CREDENTIALS_FILE = tuple(SERVICES)
"""Providers whose API needs a credential that the machine does not have by itself."""
PROVIDERS = ("alibaba", "aws", "azure", "gcp", *sorted(SERVICES), "oracle", "yandex")


def exchanges_of(
    provider: str,
    *,
    now: dt.datetime,
    endpoint: str | None = None,
    credentials: OpenstackCredentials | None = None,
) -> Exchanges[Detected]:
    """Return what is to be asked of a provider in PROVIDERS, as exchanges that were not begun.

    `endpoint` replaces the public address of its API, where it is used.
    """
    detectors: dict[str, Callable[[], Exchanges[Detected]]] = {
        "alibaba": detect_alibaba,
        "aws": partial(detect_aws, endpoint, now),
        "azure": partial(detect_azure, endpoint),
        "gcp": partial(detect_google, endpoint),
        "oracle": detect_oracle,
        "yandex": partial(detect_yandex, endpoint),
        **{name: partial(detect_openstack, name, credentials, endpoint) for name in SERVICES},
    }
    return detectors[provider]()
