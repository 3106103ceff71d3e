# SPDX-License-Identifier: Apache-2.0
"""Writes messages into hikyaku's outbox, inside your own transaction.

    from hikyaku_outbox import Message, enqueue

    with connection.transaction():
        order = ...
        enqueue(connection, Message("OrderCreated", {"orderId": order}, destination="billing", message_key=f"order-{order}"))

`enqueue` runs one INSERT on your connection. It neither begins nor commits: the relay sends the message if, and only if, your
transaction commits. It takes any DB-API 2.0 connection or cursor (psycopg 2 and 3, sqlite3), and SQLAlchemy's Connection and
Session; `enqueue_async` takes psycopg's AsyncConnection and SQLAlchemy's AsyncConnection and AsyncSession.
"""
from __future__ import annotations

import base64
import datetime
import json
import re
import sys
import uuid
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

__all__ = ["Message", "Place", "enqueue", "enqueue_async"]

_VISIBLE = re.compile(r"[\x21-\x7e]{1,256}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_SEALED = re.compile(r"hk1\.[A-Za-z0-9_-]{1,32}\.[0-9a-f]{8}\.[A-Za-z0-9+/]+={0,2}")
_TEXTS = ("destination", "event_type", "message_key", "content_type", "correlation_id", "traceparent", "idempotency_key", "policy")


@dataclass(frozen=True)
class Place:
    """Where the outbox is: `schema` and `prefix` of the relay's store URL."""

    schema: Optional[str] = None
    prefix: str = ""

    def table(self) -> str:
        for name in (self.schema, self.prefix or None):
            if name is not None and not _WORD.fullmatch(name):
                raise ValueError(f"schema and prefix have letters, digits and '_' only, not {name!r}")
        return (f'"{self.schema}".' if self.schema else "") + f'"{self.prefix}outbox"'


@dataclass(frozen=True)
class Message:
    """A message. Only event_type is required; docs/outbox.md explains every member."""

    event_type: str
    #: What the receiver gets. A str goes out as it is. bytes go out as they are, too, and are stored as base64. A dict or a list becomes JSON.
    payload: Union[str, bytes, Mapping[str, Any], list[Any], None] = None
    destination: Optional[str] = None  #: None: the relay's routes choose
    message_id: Optional[str] = None  #: None: a new UUID
    message_key: Optional[str] = None  #: order within a destination
    headers: Optional[Mapping[str, str]] = None
    content_type: Optional[str] = None
    correlation_id: Optional[str] = None
    traceparent: Optional[str] = None
    idempotency_key: Optional[str] = None
    not_before: Optional[datetime.datetime] = None  #: with a time zone
    expires_at: Optional[datetime.datetime] = None  #: with a time zone
    policy: Optional[str] = None
    max_attempts: Optional[int] = None
    #: A payload that you have sealed already (docs/sealed-format.md), in place of `payload`; it needs a message_id.
    sealed: Optional[str] = None

    def columns(self) -> dict[str, Any]:
        """What is written, by the names of outbox's columns. ValueError names the member that is wrong."""
        row: dict[str, Any] = {"message_id": self._id()}
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None:
                row[name] = _text(name, value)
        if not row["event_type"]:
            raise ValueError("event_type is empty")
        row.update(self._payload())
        if self.headers is not None:
            row["headers"] = _headers(self.headers)
        for name in ("not_before", "expires_at"):
            if getattr(self, name) is not None:
                row[name] = _time(name, getattr(self, name))
        if self.max_attempts is not None:
            if not 0 <= self.max_attempts <= 2147483647:
                raise ValueError("max_attempts is not a count of attempts")
            row["max_attempts"] = self.max_attempts
        return row

    def _id(self) -> str:
        if self.message_id is None:
            if self.sealed is not None:
                raise ValueError("a sealed payload is bound to its message_id: give the one that it was sealed with")
            return str(uuid.uuid4())
        if not _VISIBLE.fullmatch(self.message_id):
            raise ValueError("message_id has 1 to 256 visible ASCII characters")
        return self.message_id

    def _payload(self) -> dict[str, str]:
        if self.sealed is not None:
            if self.payload is not None or not _SEALED.fullmatch(self.sealed):
                raise ValueError("sealed is the text hk1.KEY-ID.CHECK.BODY, in place of a payload")
            return {"payload": self.sealed, "encoding": "sealed"}
        if self.payload is None:
            return {}
        if isinstance(self.payload, (bytes, bytearray, memoryview)):
            return {"payload": base64.b64encode(self.payload).decode("ascii"), "encoding": "base64"}
        text = self.payload if isinstance(self.payload, str) else json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"))
        return {"payload": _text("payload", text)}


def _text(name: str, value: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{name} is not a text without NUL characters")
    return value


def _headers(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if not name or not isinstance(value, str) or _CONTROL.search(name) or _CONTROL.search(value):
            raise ValueError("headers have names, and texts without control characters")
    return json.dumps(dict(headers), ensure_ascii=False)


def _time(name: str, at: datetime.datetime) -> str:
    if at.tzinfo is None:
        raise ValueError(f"{name} has no time zone: datetime.now(timezone.utc), for example")
    return at.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _insert(message: Message, place: Optional[Place], mark: str) -> tuple[str, dict[str, Any]]:
    row = message.columns()
    table = (place or Place()).table()
    marks = [mark.format(name=name) for name in row]
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(marks)})", row


def _is_sqlalchemy(connection: Any) -> bool:
    return type(connection).__module__.split(".")[0] == "sqlalchemy" or hasattr(connection, "get_bind")


def _style(connection: Any) -> str:
    """How the driver marks parameters: DB-API's `paramstyle`, of the module that the connection comes from."""
    for kind in type(connection).__mro__:
        module = kind.__module__
        while module:
            style = getattr(sys.modules.get(module), "paramstyle", None)
            if isinstance(style, str):
                return style
            module = module.rpartition(".")[0]
    raise TypeError(f"{type(connection).__name__} is neither a DB-API connection nor SQLAlchemy's")


_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}


def enqueue(connection: Any, message: Message, *, place: Optional[Place] = None) -> str:
    """Writes the message in the connection's transaction, and returns its message_id."""
    if _is_sqlalchemy(connection):
        from sqlalchemy import text  # only who has it comes here

        sql, row = _insert(message, place, ":{name}")
        connection.execute(text(sql), row)
        return str(row["message_id"])
    style = _style(connection)
    if style not in _MARKS:
        raise TypeError(f"drivers with paramstyle {style!r} are not supported")
    sql, row = _insert(message, place, _MARKS[style])
    if hasattr(connection, "cursor"):
        cursor = connection.cursor()
        try:
            cursor.execute(sql, tuple(row.values()))
        finally:
            cursor.close()
    else:
        connection.execute(sql, tuple(row.values()))
    return str(row["message_id"])


async def enqueue_async(connection: Any, message: Message, *, place: Optional[Place] = None) -> str:
    """The same for psycopg's AsyncConnection and SQLAlchemy's AsyncConnection and AsyncSession."""
    if _is_sqlalchemy(connection):
        from sqlalchemy import text

        sql, row = _insert(message, place, ":{name}")
        await connection.execute(text(sql), row)
    else:
        sql, row = _insert(message, place, _MARKS.get(_style(connection), "%s"))
        await connection.execute(sql, tuple(row.values()))
    return str(row["message_id"])
