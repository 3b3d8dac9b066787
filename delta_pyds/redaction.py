"""Redaction of text in errors, logs and reports.

Invariant: the result has no credentials of URLs, no character that controls a
terminal or starts a new line, and a limited length. Each function is
idempotent.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_SHOWN = 4_000
_HIDDEN = "***"

# Patterns are texts, which `re` compiles at first use and caches: every task imports this module, but few need it.
# All repetitions are bounded: the text may be hostile, and must not make the search quadratic.
_SCHEME = r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}:/{1,8}"
# schemes whose authority has no port: a colon in it starts a secret
_STORES = r"(?:s3[an]?|gcs|gs|abfss?|wasbs?|az|adl|oci|oss)"
# schemes with a container (bucket, namespace) before the "@", which is not secret
_WITH_CONTAINERS = r"(?:abfss?|wasbs?|az|oci)"
# ``user:secret@`` before a host. A secret may contain an unencoded slash; then the text before the first colon is a
# user, unless it is a host with a port.
_USER_AND_SECRET = (
    rf"(?P<scheme>{_SCHEME})[^/\s'\"@:]{{0,200}}:(?:[^/\s'\"@]{{0,400}}|(?!\d{{1,5}}/)[^\s'\"@]{{0,400}})@"
)
_OF_STORE = rf"(?i)(?P<scheme>\b{_STORES}:/{{1,8}})[^/\s'\"@:]{{0,200}}:[^\s'\"@]{{0,400}}@"
# the same pattern without a scheme, as in botocore's messages about a bucket
_BARE_USER_AND_SECRET = r"(?P<before>^|[\s'\"(<])[\w.%+~-]{1,200}:[^/\s'\"@:]{1,400}@(?=[\w.-])"
# only a user or a token before the "@"
_TOKEN = rf"(?i)(?P<scheme>\b(?!(?:{_WITH_CONTAINERS}|file):){_SCHEME})[^/\s'\"@]{{1,400}}@"
# In a text that is one URL, a secret may contain quotes and blanks too.
_ALONE = rf"(?s)(?P<scheme>{_STORES}://)[^/@:]*:.*@|(?P<other>[a-z][a-z0-9+.-]*://)(?:[^/]*@|[^/@:]*:(?!\d{{1,5}}/).*@)"
_CONTAINER = rf"{_WITH_CONTAINERS}://[\w$.-]{{1,100}}@[^@/:]*(?:/|$)"
_SECRET_NAME = (
    r"[\w.-]{0,40}(?:sig|signature|token|secret|passw(?:or)?d|credentials?|(?:access|account|api|private|shared|secret)[_-]?key"
    r"|connection[_-]?string|sas)[\w.-]{0,40}"
)
# ``?sig=...``, ``X-Amz-Signature=...``, ``AccountKey=...;``
_IN_QUERY = rf"(?i)(?P<name>[?&;#]{_SECRET_NAME}=)[^&\s'\";#]+"
_IN_CONNECTION_STRING = r"(?i)(?P<name>\b(?:AccountKey|SharedAccess\w*|SecretAccessKey)=)[^;\s'\"&]+"
# ``password=...``, ``password='a b'``: the value may be quoted and contain blanks
_PASSWORD = (
    r"(?i)(?P<name>\b(?:passw(?:or)?d|pwd|passphrase)[ \t]{0,4}=[ \t]{0,4})"
    r"(?:'[^'\n]{1,400}'?|\"[^\"\n]{1,400}\"?|[^\s'\";&,]+)"
)
# ``Authorization: Bearer ...``
_BEARER = r"(?i)(?P<name>\b(?:bearer|authorization:[ \t]{0,4}basic)[ \t]{1,4})(?P<quote>['\"]?)[\w.~+/=*-]{8,}"
_QUERY_ALONE = rf"(?is)(?P<name>[?&;#]{_SECRET_NAME}=).+"
_SECRET_OPTION = rf"(?i){_SECRET_NAME}|key|auth.*|user(?:name)?|login"

# Control, bidirectional, invisible and line-breaking characters; halves of surrogate pairs.
_ACTING = "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


# texts that this process never shows, longest first
_concealed: tuple[str, ...] = ()
# the expiring ones among them, oldest first
_passing: tuple[str, ...] = ()
_MOST_PASSING = 1_000


def conceal(secrets: Iterable[str], *, passing: bool = False) -> None:
    """Never show these secrets again in errors and logs.

    Args:
        secrets: the texts. Those of less than 6 characters are ignored, because they occur in other words.
        passing: the secrets expire; only the newest 1,000 such secrets are remembered, because each shown text is
            searched for all of them.
    """
    global _concealed, _passing
    found = {secret for secret in secrets if len(secret) >= 6 and secret.strip("*")}
    gone: set[str] = set()
    if passing:
        # permanent secrets stay permanent
        found -= set(_concealed) - set(_passing)
        waiting = (*(secret for secret in _passing if secret not in found), *found)
        _passing, gone = waiting[-_MOST_PASSING:], set(waiting[:-_MOST_PASSING])
    else:
        _passing = tuple(secret for secret in _passing if secret not in found)
    if gone or not found.issubset(_concealed):
        _concealed = tuple(sorted({*_concealed, *found} - gone, key=len, reverse=True))


def without_secrets(text: str) -> str:
    """The text without the credentials of the URLs in it."""
    if "@" in text:
        text = re.sub(_USER_AND_SECRET, rf"\g<scheme>{_HIDDEN}@", text)
        text = re.sub(_OF_STORE, rf"\g<scheme>{_HIDDEN}@", text)
        text = re.sub(_TOKEN, rf"\g<scheme>{_HIDDEN}@", text)
        text = re.sub(_BARE_USER_AND_SECRET, rf"\g<before>{_HIDDEN}@", text)
    for secret in _concealed:
        text = text.replace(secret, _HIDDEN)
    if "earer" in text or "asic" in text or "EARER" in text:
        text = re.sub(_BEARER, rf"\g<name>\g<quote>{_HIDDEN}", text)
    if "=" in text:
        text = re.sub(_PASSWORD, rf"\g<name>{_HIDDEN}", text)
        text = re.sub(_IN_QUERY, rf"\g<name>{_HIDDEN}", text)
        text = re.sub(_IN_CONNECTION_STRING, rf"\g<name>{_HIDDEN}", text)
    return text


def without_credentials(url: str) -> str:
    """A canonical URL without user, password and secrets in its query; unchanged if it has none.

    This is stricter than ``without_secrets``, which finds URLs in a text: here the whole text is one URL.
    """
    if "@" in url and re.match(_CONTAINER, url) is None:
        url = re.sub(_ALONE, lambda match: f"{match['scheme'] or match['other']}{_HIDDEN}@", url, count=1)
    return re.sub(_QUERY_ALONE, rf"\g<name>{_HIDDEN}", url)


def shown(text: str, *, multiline: bool = False, limit: int = MAX_SHOWN) -> str:
    """The redacted text, at most ``limit`` characters. ``multiline``: line breaks are ours and stay."""
    # characters that are cut off anyway are not searched
    if len(text) > 4 * limit:
        text = _cut(text, 4 * limit)
    text = re.sub(_ACTING, _escaped_but_lines if multiline else _escaped, without_secrets(text))
    return text if len(text) <= limit else _cut(text, limit)


def shown_value(value: Any, *, multiline: bool = False) -> Any:
    """The value with redacted texts, also in lists, tuples and sets; other objects are unchanged."""
    if isinstance(value, str):
        return shown(value, multiline=multiline)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(shown_value(item, multiline=multiline) for item in value)
    return value


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name contains a secret, such as ``fs.s3a.secret.key``."""
    return re.search(rf"(?i){_SECRET_NAME}", name[:MAX_SHOWN]) is not None


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets among a file system's options, longest first."""
    found: set[str] = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= set(secrets_of(value))
        elif isinstance(value, str) and len(value) >= 4 and re.fullmatch(_SECRET_OPTION, name):
            found.add(value)
    return tuple(sorted(found, key=len, reverse=True))


def safe_logger(name: str) -> logging.Logger:
    """The logger of a module; its messages and tracebacks are redacted as those of errors."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, _Shown) for one in logger.filters):
        logger.addFilter(_Shown())
    return logger


class _Shown(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = shown(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            # handlers use this text
            trace = logging.Formatter().formatException(record.exc_info)
            record.exc_text, record.exc_info = shown(trace, multiline=True), None
        return True


class Concealing:
    """A dataclass whose ``repr`` shows only the names of storage options, and paths without credentials.

    Plans, requests and states appear in logs, tracebacks and the ``repr`` of other objects.
    """

    def __repr__(self) -> str:
        fields = []
        for field in dataclasses.fields(cast(Any, self)):
            if not field.repr:
                continue
            value = getattr(self, field.name)
            if field.name == "storage_options":
                value = sorted(value or ())
            elif isinstance(value, str):
                value = without_secrets(value)
            fields.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(fields)})"


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _escaped_but_lines(match: re.Match[str]) -> str:
    return "\n" if match[0] == "\n" else _escaped(match)


def _cut(text: str, limit: int) -> str:
    """The text without its middle: a message starts with the problem and ends with the remedy."""
    note = f" ... [{len(text) - limit:,} characters left out] ... "
    kept = limit - len(note) - 8
    tail = kept // 3
    return text[: kept - tail] + note + text[len(text) - tail :]
