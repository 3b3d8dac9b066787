"""Text that may be shown to anybody who sees an error, a log or a report.

Invariant: what comes out holds no credentials that a URL spells out, no
character that acts on a terminal or begins a line of its own, and is not long.
Each function returns its own results unchanged.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_SHOWN = 4_000
_HIDDEN = "***"

# Patterns are texts, which `re` compiles when they are first used and keeps: every task imports this module, and few
# have anything to show.
# All repetitions are bounded: the text may be hostile, and must not make the search quadratic.
_SCHEME = r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}:/{1,8}"
# Whose authority has no port: what a colon begins there is a secret.
_STORES = r"(?:s3[an]?|gcs|gs|abfss?|wasbs?|az|adl|oci|oss)"
# Where the container (bucket, namespace) stands before the "@", which is no secret.
_WITH_CONTAINERS = r"(?:abfss?|wasbs?|az|oci)"
# ``user:secret@`` in front of a host. A secret may hold a slash that nobody encoded; then what stands before the first
# colon is a user, unless it is a host with its port.
_USER_AND_SECRET = (
    rf"(?P<scheme>{_SCHEME})[^/\s'\"@:]{{0,200}}:(?:[^/\s'\"@]{{0,400}}|(?!\d{{1,5}}/)[^\s'\"@]{{0,400}})@"
)
_OF_STORE = rf"(?i)(?P<scheme>\b{_STORES}:/{{1,8}})[^/\s'\"@:]{{0,200}}:[^\s'\"@]{{0,400}}@"
# The same where the scheme was taken off before the text was made, as botocore does with a bucket's name.
_BARE_USER_AND_SECRET = r"(?P<before>^|[\s'\"(<])[\w.%+~-]{1,200}:[^/\s'\"@:]{1,400}@(?=[\w.-])"
# Nothing but a user or a token.
_TOKEN = rf"(?i)(?P<scheme>\b(?!(?:{_WITH_CONTAINERS}|file):){_SCHEME})[^/\s'\"@]{{1,400}}@"
# In a text that is nothing but a URL, a secret may hold quotes and blanks too.
_ALONE = rf"(?s)(?P<scheme>{_STORES}://)[^/@:]*:.*@|(?P<other>[a-z][a-z0-9+.-]*://)(?:[^/]*@|[^/@:]*:(?!\d{{1,5}}/).*@)"
_CONTAINER = rf"{_WITH_CONTAINERS}://[\w$.-]{{1,100}}@[^@/:]*(?:/|$)"
_SECRET_NAME = (
    r"[\w.-]{0,40}(?:sig|signature|token|secret|passw(?:or)?d|credentials?|(?:access|account|api|private|shared|secret)[_-]?key"
    r"|connection[_-]?string|sas)[\w.-]{0,40}"
)
# ``?sig=...``, ``X-Amz-Signature=...``, ``AccountKey=...;``
_IN_QUERY = rf"(?i)(?P<name>[?&;#]{_SECRET_NAME}=)[^&\s'\";#]+"
_IN_CONNECTION_STRING = r"(?i)(?P<name>\b(?:AccountKey|SharedAccess\w*|SecretAccessKey)=)[^;\s'\"&]+"
# ``password=...``, ``password='a b'``; what may be quoted and hold blanks
_PASSWORD = (
    r"(?i)(?P<name>\b(?:passw(?:or)?d|pwd|passphrase)[ \t]{0,4}=[ \t]{0,4})"
    r"(?:'[^'\n]{1,400}'?|\"[^\"\n]{1,400}\"?|[^\s'\";&,]+)"
)
# ``Authorization: Bearer ...``
_BEARER = r"(?i)(?P<name>\b(?:bearer|authorization:[ \t]{0,4}basic)[ \t]{1,4})(?P<quote>['\"]?)[\w.~+/=*-]{8,}"
_QUERY_ALONE = rf"(?is)(?P<name>[?&;#]{_SECRET_NAME}=).+"
_SECRET_OPTION = rf"(?i){_SECRET_NAME}|key|auth.*|user(?:name)?|login"

# Controls; what turns the direction of writing around, is invisible, or ends a line; halves of surrogate pairs.
_ACTING = "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


# What is never shown by this process, wherever it comes up: longest first.
_concealed: tuple[str, ...] = ()
# of these what holds for some time alone, oldest first
_passing: tuple[str, ...] = ()
_MOST_PASSING = 1_000


def conceal(secrets: Iterable[str], *, passing: bool = False) -> None:
    """Show these texts no more: neither in errors nor in logs. Short ones could be a part of anything, and are left.

    ``passing``: they hold for some time alone, and the newest of their kind are kept: each text that is shown is
    searched for all.
    """
    global _concealed, _passing
    found = {secret for secret in secrets if len(secret) >= 6 and secret.strip("*")}
    gone: set[str] = set()
    if passing:
        # what is concealed for good stays so
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
    """A whole URL, in its one spelling, without user, secret and what a query says about keys; as it is without them.

    Stricter than ``without_secrets``, which finds URLs in a text: here all of the text is one.
    """
    if "@" in url and re.match(_CONTAINER, url) is None:
        url = re.sub(_ALONE, lambda match: f"{match['scheme'] or match['other']}{_HIDDEN}@", url, count=1)
    return re.sub(_QUERY_ALONE, rf"\g<name>{_HIDDEN}", url)


def shown(text: str, *, multiline: bool = False, limit: int = MAX_SHOWN) -> str:
    """The text as it may be shown: see the module. ``multiline``: line ends in it are our own and stay."""
    # what is cut out anyway is not looked at
    if len(text) > 4 * limit:
        text = _cut(text, 4 * limit)
    text = re.sub(_ACTING, _escaped_but_lines if multiline else _escaped, without_secrets(text))
    return text if len(text) <= limit else _cut(text, limit)


def shown_value(value: Any, *, multiline: bool = False) -> Any:
    """The same for the texts in a value: lists, tuples and sets are gone through, other objects stay."""
    if isinstance(value, str):
        return shown(value, multiline=multiline)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(shown_value(item, multiline=multiline) for item in value)
    return value


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret, as ``fs.s3a.secret.key`` does."""
    return re.search(rf"(?i){_SECRET_NAME}", name[:MAX_SHOWN]) is not None


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts among a file system's options that nobody must see, longest first."""
    found: set[str] = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= set(secrets_of(value))
        elif isinstance(value, str) and len(value) >= 4 and re.fullmatch(_SECRET_OPTION, name):
            found.add(value)
    return tuple(sorted(found, key=len, reverse=True))


def safe_logger(name: str) -> logging.Logger:
    """The logger of a module: what it says is shown as the text of errors is."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, _Shown) for one in logger.filters):
        logger.addFilter(_Shown())
    return logger


class _Shown(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = shown(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            # a handler shows it as it stands here
            trace = logging.Formatter().formatException(record.exc_info)
            record.exc_text, record.exc_info = shown(trace, multiline=True), None
        return True


class Concealing:
    """A dataclass whose ``repr`` names its storage options only, and shows paths without credentials.

    Plans, requests and states end up in logs, tracebacks and the ``repr`` of whatever holds them.
    """

    def __repr__(self) -> str:
        fields = []
        for field in dataclasses.fields(cast(Any, self)):
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
    """The text without its middle: a message begins with what happened, and ends with what to do."""
    note = f" ... [{len(text) - limit:,} characters left out] ... "
    kept = limit - len(note) - 8
    tail = kept // 3
    return text[: kept - tail] + note + text[len(text) - tail :]
