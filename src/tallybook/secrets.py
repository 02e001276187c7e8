"""Reads secrets by reference, and finds secrets that someone wrote into a file.

A reference is `env:NAME` or `file:PATH`. `read_secret` returns a `Secret`, which prints as `***`. `hide_secrets` finds
passwords, tokens and keys in urls and in settings whose name says that they are secret. It replaces each with stars of
the same length, so that positions in the text stay right.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallybook.errors import RunError, fail

REFERENCE = r"^(env|file):.+$"
HIDDEN = "***"
_LARGEST = 1_000_000


@dataclass(frozen=True)
class Secret:
    """A secret value. Only `reveal` returns it."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


def read_secret(reference: str, root: Path, environ: Mapping[str, str]) -> Secret:
    """Reads the secret that a reference names; a relative path is below `root`. Raises `CredentialNotFound` if there is
    none.

    A file that others may read is accepted: Kubernetes and Docker usually mount secrets as such files. Line breaks at
    the end of the file are removed.
    """
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        value = environ.get(name)
        if value is None:
            raise _not_found(
                f"the environment variable {name} is not set", f"set it, or correct the reference {reference}"
            )
    elif kind == "file" and name:
        value = _content(root / name, reference)
    else:
        raise _not_found("a reference to a secret must be env:NAME or file:PATH")
    if not value:
        raise _not_found(f"the secret {reference} is empty")
    return Secret(value)


def _content(path: Path, reference: str) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _not_found(f"the secret {reference} is not a regular file")
        if status.st_size > _LARGEST:
            raise _not_found(f"the secret {reference} is a file of more than {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise _not_found(f"the secret {reference} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _not_found(f"the secret {reference} is not UTF-8 text") from None


def _not_found(message: str, hint: str | None = None) -> RunError:
    return fail("CredentialNotFound", message, hint=hint)


_SECRET_PART = re.compile(
    r"password|passwd|passphrase|secret|credential|jaasconfig|signature"
    r"|(?:access|account|api|auth|encryption|master|private|shared|signing|storage|subscription)key"
)
_SECRET_WORDS = {"pass", "pwd", "token", "tokens", "sig", "sas"}
_PARAMETER_WORDS = {"key", "auth"}
_HARMLESS_ENDS = re.compile(
    r"algorithm|bits|cache|class(es)?|count|dir(ectory)?|(dis|en)abled|endpoint|expiration|expiry|file|header|id|interval"
    r"|length|location|max|mechanism|min|mode|names?|path|period|providers?|ratio|ref|regex|renewal|renewer|required|size"
    r"|timeout|ttl|type|ur[il]|version"
)
"""The last words of names of settings that are about a secret but do not contain it."""
_HARMLESS = re.compile(r"(?i)\.secrets\.|secretKeyRef|tokenSecret\.|^spark\.kerberos\.renewal\.credentials$")
"""Settings that name a secret of Kubernetes, and one whose value is one of two words."""


def names_secret(setting: str) -> bool:
    """True if the name of a setting, such as `fs.s3a.secret.key`, says that its value is a secret."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", setting)]
    if not words or _HARMLESS_ENDS.fullmatch(words[-1]) or _HARMLESS.search(setting):
        return False
    return bool(_SECRET_WORDS.intersection(words) or _SECRET_PART.search("".join(words)))


def hide_secrets(text: str) -> str:
    """Returns the text with stars instead of every password, token and key in a url, a connection string or a Java
    option (`-Djavax.net.ssl.keyStorePassword=...`)."""
    kept, at = [], 0
    for start, end in sorted(_secret_spans(text)):
        if end > at:
            kept += [text[at:start], "*" * (end - max(start, at))]
            at = end
    return "".join([*kept, text[at:]])


_PARAMETER = re.compile(r"[?&;#]([\w.%-]+)=([^&;#\s\"'<>]+)")
_OPTION = re.compile(r"[\"']?-D([\w.-]+)=([^\s\"']+)")
_CONNECTION = re.compile(r"(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature)=([^;\s\"']+)")
_ORACLE = re.compile(r"(?i)[\"']?jdbc:oracle:\w+:[^/@\s]+/([^@\s]+)@")
_AUTHORITY_END = re.compile(r"[/?#]|$")
_PORTS = re.compile(r"\d{0,5}(,[^@]*)?")


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each secret. Looks at each word separately, and at each character only a few times: a
    file of two megabytes must not take minutes."""
    if ":" not in text and "=" not in text:
        return
    for stretch in re.finditer(r"\S+", text):
        token, at = stretch[0], stretch.start()
        for start, end in _spans_of_token(token):
            yield at + start, at + end


def _spans_of_token(token: str) -> Iterator[tuple[int, int]]:
    is_url = "://" in token or "jdbc:" in token.lower()
    if is_url:
        yield from _userinfo(token)
        if oracle := _ORACLE.match(token):
            yield oracle.span(1)
        for pair in _PARAMETER.finditer(token):
            if names_secret(pair[1]) or pair[1].lower() in _PARAMETER_WORDS:
                yield pair.span(2)
    if (option := _OPTION.match(token)) and names_secret(option[1]):
        yield option.span(2)
    for pair in _CONNECTION.finditer(token):
        yield pair.span(2)


def _userinfo(token: str) -> Iterator[tuple[int, int]]:
    """Yields the passwords before the `@` of urls, also those that should have been percent-encoded and were not."""
    last_at = token.rfind("@")
    start = token.find("://")
    while 0 <= start < last_at:
        start += len("://")
        authority_end = _AUTHORITY_END.search(token, start)
        authority = token[start : authority_end.start() if authority_end else None]
        user, colon, rest = authority.partition(":")
        end = authority.rfind("@")
        if end < 0 and colon and not user.startswith("[") and not _PORTS.fullmatch(rest):
            end = last_at - start
        if colon and end > len(user) + 1:
            yield start + len(user) + 1, start + end
        start = token.find("://", start)
