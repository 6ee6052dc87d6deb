"""Who may use the web side, and how: the records of the web configuration file.

The format is that of Prometheus' exporter-toolkit, and a file means here what it means to
node_exporter. Where that cannot be had, or where a file asks for something and node_exporter
would not do it, it is refused.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Literal

import msgspec

from disksla.schema import FieldType, choice, close_match, pattern

ClientAuth = Literal[
    "NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
]
TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]

CIPHERS: Mapping[str, str] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
"""Go's names of the suites up to TLS 1.2 that it counts as secure, best first; and OpenSSL's."""
TLS13_CIPHERS = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""May be named and are always on: nobody lets them be chosen."""
CURVES: Mapping[str, str] = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}
"""Go's names, and OpenSSL's."""

_LONGEST_PEM = 256 * 1024
_LONGEST_HEADER = 8 * 1024
_GO_UNITS_S: Mapping[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\u00b5s": Fraction(1, 10**6),
    "\u03bcs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_GO_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_BCRYPT_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}", re.ASCII)


def _parse_flag(text: str) -> bool:
    """As YAML 1.1 has it, and so the toolkit."""
    for value, words in ((True, "y yes on true"), (False, "n no off false")):
        if any(text in {each, each.capitalize(), each.upper()} for each in words.split()):
            return value
    raise ValueError(f"found '{text}'; expected true or false")


def _parse_client_auth(text: str) -> str:
    if text in {"RequireAnyClientCert", "RequireClientCert"}:
        raise ValueError(
            f"'{text}' takes any certificate, whoever made it, and cannot be had here;"
            " expected RequireAndVerifyClientCert with client_ca_file"
        )
    return str(_CLIENT_AUTH_WORD.parse(text))


def _parse_cipher(text: str) -> str:
    known = (*CIPHERS, *TLS13_CIPHERS)
    if text not in known:
        raise ValueError(
            f"found '{text}'{close_match(text, known)}; expected one that Go counts as secure:"
            f" {', '.join(known)}"
        )
    return text


def _parse_header(text: str) -> str:
    if not re.fullmatch(r"[\x20-\x7e]*", text):
        raise ValueError("has characters that a header cannot have; expected printable ASCII")
    return text


def _parse_hash(text: str) -> bytes:
    if not _BCRYPT_HASH.fullmatch(text):
        raise ValueError(f"what was found is none; expected {_HASH_EXPECTED}")
    return text.encode()


def _parse_go_duration(text: str) -> float:
    """As Go has it, '1m30s', which is what the toolkit takes; raises ValueError."""
    if text == "0":
        return 0.0
    parts = _GO_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"found '{text}'; expected {_DURATION_EXPECTED}")
    return float(sum(Fraction(number) * _GO_UNITS_S[unit] for number, unit in parts))


def _parse_count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(f"found '{text}'; expected a whole number such as 10")
    return int(text)


_CLIENT_AUTH_WORD = choice(
    "NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
)
_CLIENT_AUTH = FieldType(_CLIENT_AUTH_WORD.expected, _parse_client_auth)
_HASH_EXPECTED = (
    "a bcrypt hash such as $2b$10$..., of 60 characters, as `htpasswd -nBC 10 ''` makes it"
)
_DURATION_EXPECTED = "a duration such as 1s, 100ms or 1m30s, or 0"

FILE = FieldType("a path of a file, relative to this one", str.strip)
"""Only whoever reads files can say whether it is there: a rule."""

_File = Annotated[str, FILE]
_Pem = Annotated[str, FieldType("certificates in PEM", str, longest=_LONGEST_PEM)]
_SecretPem = Annotated[
    str, FieldType("a private key in PEM", str, longest=_LONGEST_PEM, is_secret=True)
]
_Flag = Annotated[bool, FieldType("true or false", _parse_flag)]
_Version = Annotated[TlsVersion, choice("TLS10", "TLS11", "TLS12", "TLS13")]
_Cipher = Annotated[str, FieldType("a cipher suite by Go's name", _parse_cipher)]
_Curve = Annotated[str, choice(*CURVES)]
_Header = Annotated[
    str, FieldType("the value of a header, on one line", _parse_header, longest=_LONGEST_HEADER)
]
_Hash = Annotated[bytes, FieldType(_HASH_EXPECTED, _parse_hash, is_secret=True)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections."""


class TlsServer(_Strict, frozen=True):
    """What the server shows of itself, and asks of clients."""

    cert: _Pem = ""
    key: _SecretPem = ""
    client_ca: _Pem = ""
    cert_file: _File = ""
    """Where both are given, the file counts."""
    key_file: _File = ""
    client_auth: Annotated[ClientAuth, _CLIENT_AUTH] | None = msgspec.field(
        default=None, name="client_auth_type"
    )
    """None is as NoClientCert; and RequestClientCert too, since nothing is made of what comes."""
    client_ca_file: _File = ""
    client_allowed_sans: tuple[Annotated[str, pattern("a name")], ...] | None = None
    """One of them must stand in the client's certificate; None for no such wish."""
    min_version: _Version = "TLS12"
    max_version: _Version = "TLS13"
    cipher_suites: tuple[_Cipher, ...] = ()
    """For TLS 1.2 and older; none for those that Go takes by itself."""
    curve_preferences: tuple[_Curve, ...] = ()
    prefer_server_cipher_suites: _Flag = True

    def __post_init__(self) -> None:
        """Refuse what contradicts itself, and what would let nobody in, or anybody."""
        if all(getattr(self, each.name) == each.default for each in msgspec.structs.fields(self)):
            return
        asks = "expected client_auth_type: RequireAndVerifyClientCert"
        for is_wrong, text in (
            (not self.is_wanted, "no certificate; expected cert_file, or cert"),
            (not (self.key or self.key_file), "no private key; expected key_file, or key"),
            (
                bool(self.client_ca or self.client_ca_file)
                and self.client_auth in {None, "NoClientCert"},
                f"client_ca_file, but clients are asked for no certificate; {asks}",
            ),
            (
                self.client_allowed_sans is not None
                and self.client_auth != "RequireAndVerifyClientCert",
                f"client_allowed_sans, but a client may come without a certificate; {asks}",
            ),
            (
                self.min_version > self.max_version,
                f"min_version {self.min_version} is above max_version; expected no more than that",
            ),
            (
                not self.old_ciphers and self.max_version != "TLS13",
                f"cipher_suites has none for {self.max_version}; expected one for TLS 1.2",
            ),
            (
                len(self.curve_preferences) > 1,
                "curve_preferences: several cannot be had here; expected one, or none for all",
            ),
        ):
            if is_wrong:
                raise ValueError(text)

    @property
    def is_wanted(self) -> bool:
        """Whether TLS is spoken."""
        return bool(self.cert or self.cert_file)

    @property
    def old_ciphers(self) -> tuple[str, ...]:
        """OpenSSL's names of the suites for TLS 1.2 and older; none if none of those is wanted."""
        wanted = self.cipher_suites or CIPHERS
        return tuple(CIPHERS[name] for name in wanted if name in CIPHERS)


class Headers(_Strict, frozen=True):
    """Headers that every answer carries; the toolkit knows these and no others."""

    content_security_policy: _Header = msgspec.field(default="", name="Content-Security-Policy")
    frame_options: Annotated[str, choice("deny", "sameorigin")] = msgspec.field(
        default="", name="X-Frame-Options"
    )
    content_type_options: Annotated[str, choice("nosniff")] = msgspec.field(
        default="", name="X-Content-Type-Options"
    )
    xss_protection: _Header = msgspec.field(default="", name="X-XSS-Protection")
    strict_transport_security: _Header = msgspec.field(
        default="", name="Strict-Transport-Security"
    )

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """Names and values of those that are not left empty."""
        pairs = (
            (each.encode_name, str(getattr(self, each.name)))
            for each in msgspec.structs.fields(self)
        )
        return tuple((name, value) for name, value in pairs if value)


class HttpServer(_Strict, frozen=True):
    """How HTTP is spoken."""

    http2: _Flag | None = None
    """Taken, and without effect: HTTP/1.1 is spoken."""
    headers: Headers = Headers()


class RateLimit(_Strict, frozen=True):
    """How many requests are answered, whoever sends them."""

    interval_s: Annotated[float, FieldType(_DURATION_EXPECTED, _parse_go_duration)] = (
        msgspec.field(default=0.0, name="interval")
    )
    """Time between two requests in the long run; 0 for no limit."""
    burst: Annotated[int, FieldType("a whole number such as 10", _parse_count)] = 0
    """Requests that may come at once."""

    def __post_init__(self) -> None:
        """Refuse a limit that no request would pass."""
        if self.interval_s and not self.burst:
            raise ValueError("no burst, so that no request would pass; expected burst: 1 or more")


class WebConfig(_Strict, frozen=True):
    """A whole web configuration; the default is that of an empty file."""

    tls: TlsServer = msgspec.field(default=TlsServer(), name="tls_server_config")
    http: HttpServer = msgspec.field(default=HttpServer(), name="http_server_config")
    users: Mapping[str, _Hash] = msgspec.field(default={}, name="basic_auth_users")
    """bcrypt hashes of passwords by name of the user; none for no passwords."""
    rate_limit: RateLimit = RateLimit()


def describe(config: WebConfig) -> str:
    """Say in a few words what a configuration asks for."""
    tls = config.tls
    versions = f"TLS {_dotted(tls.min_version)} to {_dotted(tls.max_version)}"
    asked = {
        "VerifyClientCertIfGiven": ", client certificates verified if given",
        "RequireAndVerifyClientCert": ", client certificates required",
    }
    users = f"{len(config.users)} user{'' if len(config.users) == 1 else 's'}"
    return ", ".join(
        [
            versions + asked.get(tls.client_auth or "", "") if tls.is_wanted else "no TLS",
            users if config.users else "no passwords",
            *(["rate limit"] if config.rate_limit.interval_s else []),
        ]
    )


def _dotted(version: TlsVersion) -> str:
    return f"{version[3]}.{version[4]}"
