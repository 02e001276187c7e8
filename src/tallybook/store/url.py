"""Finds the url of a workspace's metadata store. A password comes from the environment or a file, never from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tallybook.errors import RunError, StoreError
from tallybook.secrets import HIDDEN, hide_secrets, names_secret, read_secret

DEFAULT_FILE = Path(".tallybook") / "store.sqlite3"
URL_VARIABLE = "TALLYBOOK_STORE"
CREDENTIAL_VARIABLE = "TALLYBOOK_STORE_CREDENTIAL"
_FORMS = "a store is `sqlite:///path/to/file` or `postgresql://user@host/database`"


def store_url(setting: str | None, root: Path, environ: Mapping[str, str]) -> URL:
    """Returns the url of the store: from the environment, else the setting, else the default file."""
    given = environ.get(URL_VARIABLE)
    text = given or setting
    if text is None:
        return _sqlite(root / DEFAULT_FILE)
    url = _parsed(text)
    if url.get_backend_name() == "sqlite":
        return _sqlite(root / url.database) if url.database else _refuse("the store url names no file", _FORMS)
    if url.get_backend_name() != "postgresql":
        return _refuse(f"'{url.drivername}' is not a kind of metadata store", _FORMS)
    url = url.set(drivername="postgresql+psycopg")
    if not given and hide_secrets(text) != text:
        _refuse(
            "the setting `store` contains a password",
            f"leave it out and set {CREDENTIAL_VARIABLE} to env:NAME or file:PATH, or give the url in {URL_VARIABLE}",
        )
    reference = environ.get(CREDENTIAL_VARIABLE)
    return url.set(password=_secret(reference, root, environ)) if reference else url


def shown(url: URL) -> str:
    """Returns the url for messages: as users write it, without secrets."""
    plain = url.set(drivername=url.get_backend_name())
    hidden = plain.update_query_dict({name: HIDDEN for name in plain.query if names_secret(name)})
    return hidden.render_as_string(hide_password=True)


def without_secrets(text: str, url: URL) -> str:
    """Returns a driver's message with the passwords of the url hidden."""
    for secret in (url.password, *(value for name, value in url.query.items() if names_secret(name))):
        if isinstance(secret, str) and secret:
            text = text.replace(secret, HIDDEN)
    return text


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise StoreError(message, hint)


def _parsed(text: str) -> URL:
    if text.startswith("postgres://"):
        text = text.replace("postgres://", "postgresql://", 1)
    try:
        url = make_url(text)
        url.get_backend_name()
    except (ArgumentError, ValueError):
        _refuse("the store url cannot be read", _FORMS)
    return url


def _sqlite(file: Path) -> URL:
    return URL.create("sqlite", database=str(file))


def _secret(reference: str, root: Path, environ: Mapping[str, str]) -> str:
    try:
        return read_secret(reference, root, environ).reveal()
    except RunError as error:
        raise StoreError(f"{CREDENTIAL_VARIABLE}: {error.problem.message}", error.problem.hint) from None
