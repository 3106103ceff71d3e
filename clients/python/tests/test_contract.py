# SPDX-License-Identifier: Apache-2.0
"""The shared contract (clients/contract.json) with each driver. HIKYAKU_TEST_PG is a URL, HIKYAKU_TEST_SQLITE a file, both with the
schema of `hikyaku init`. Run it with `python -m unittest discover -s tests`."""
import asyncio
import base64
import datetime
import json
import os
import pathlib
import sqlite3
import sys
import unittest

import psycopg
import psycopg2
import sqlalchemy
import sqlalchemy.orm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hikyaku_outbox import Message, Place, enqueue, enqueue_async  # noqa: E402

CONTRACT = json.loads((pathlib.Path(__file__).resolve().parents[2] / "contract.json").read_text(encoding="utf-8"))
PG, SQLITE = os.environ["HIKYAKU_TEST_PG"], os.environ["HIKYAKU_TEST_SQLITE"]
TIMES = ("not_before", "expires_at")


def message_of(given):
    given = dict(given)
    for name in TIMES:
        if name in given:
            given[name] = datetime.datetime.fromisoformat(given[name].replace("Z", "+00:00"))
    if "text" in given:
        given["payload"] = given.pop("text")
    if "base64" in given:
        given["payload"] = base64.b64decode(given.pop("base64"))
    return Message(given.pop("event_type"), **given)


class Sqlite:
    def __enter__(self):
        self.db = sqlite3.connect(SQLITE, isolation_level=None, timeout=30)
        self.db.execute("BEGIN IMMEDIATE")
        return self.db

    def __exit__(self, kind, *_):
        self.db.execute("ROLLBACK" if kind else "COMMIT")
        self.db.close()


def row_in_sqlite(message_id):
    db = sqlite3.connect(SQLITE)
    rows = db.execute(CONTRACT["select"]["sqlite"], (message_id,)).fetchall()
    db.close()
    return [json.loads(r[0]) for r in rows]


def row_in_pg(message_id):
    with psycopg.connect(PG) as db:
        rows = db.execute(CONTRACT["select"]["postgres"].replace("%", "%%").replace("$1", "%s"), (message_id,)).fetchall()
    return [json.loads(r[0]) for r in rows]


class Undo(Exception):
    pass


class Contract:
    """Each driver: `begin()` is a transaction that rolls back when its block raises."""

    rows = staticmethod(row_in_pg)
    begin = None

    def write(self, message):
        with self.begin() as connection:
            return enqueue(connection, message)

    def test_contract(self):
        for case in CONTRACT["cases"]:
            with self.subTest(case["name"]):
                if "refused" in case:
                    with self.assertRaisesRegex(ValueError, case["refused"]):
                        self.write(message_of(case["message"]))
                    continue
                message = message_of({**case["message"], **self.own_id(case["message"])})
                written = self.write(message)
                self.assertEqual(written, message.message_id or written)
                self.assertEqual(self.rows(written), [case["row"]])

    def own_id(self, given):
        """Tests of several drivers share a table."""
        return {"message_id": f"{type(self).__name__}-{given['message_id']}"} if "message_id" in given else {}

    def test_rollback_leaves_nothing(self):
        written = []
        with self.assertRaises(Undo):
            with self.begin() as connection:
                written.append(enqueue(connection, Message("Never", "1", destination="shop")))
                raise Undo
        self.assertEqual(self.rows(written[0]), [])

    def test_ids_are_new(self):
        with self.begin() as connection:
            a, b = (enqueue(connection, Message("Twice", [1], destination="shop")) for _ in range(2))
        self.assertNotEqual(a, b)
        self.assertEqual(self.rows(a)[0]["payload"], "[1]")


class WithSqlite(Contract, unittest.TestCase):
    rows = staticmethod(row_in_sqlite)
    begin = Sqlite


class WithPsycopg(Contract, unittest.TestCase):
    @staticmethod
    def begin():
        return psycopg.connect(PG)


class WithPsycopg2(Contract, unittest.TestCase):
    @staticmethod
    def begin():
        return psycopg2.connect(PG)


class WithCursor(Contract, unittest.TestCase):
    def write(self, message):
        with psycopg.connect(PG) as db, db.cursor() as cursor:
            return enqueue(cursor, message)

    @staticmethod
    def begin():
        return psycopg.connect(PG)


class WithSqlalchemy(Contract, unittest.TestCase):
    engine = sqlalchemy.create_engine(PG.replace("postgres://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool)

    def begin(self):
        return self.engine.begin()


class WithSession(Contract, unittest.TestCase):
    def begin(self):
        return sqlalchemy.orm.sessionmaker(WithSqlalchemy.engine).begin()


class WithSqlalchemyOnSqlite(Contract, unittest.TestCase):
    rows = staticmethod(row_in_sqlite)
    engine = sqlalchemy.create_engine(f"sqlite:///{SQLITE}", poolclass=sqlalchemy.NullPool)

    def begin(self):
        return self.engine.begin()


class Others(unittest.TestCase):
    def test_async(self):
        async def write(fail):
            db = await psycopg.AsyncConnection.connect(PG)
            try:
                async with db.transaction():
                    written = await enqueue_async(db, Message("Async", {"名": 1}, destination="shop"))
                    if fail:
                        raise psycopg.Rollback
            finally:
                await db.close()
            return written
        self.assertEqual(row_in_pg(asyncio.run(write(False)))[0]["payload"], '{"名":1}')

    def test_a_time_needs_a_zone(self):
        with self.assertRaisesRegex(ValueError, "not_before has no time zone"):
            Message("E", not_before=datetime.datetime(2026, 1, 1)).columns()

    def test_place(self):
        self.assertEqual(Place("app", "hk_").table(), '"app"."hk_outbox"')
        with self.assertRaises(ValueError):
            Place('a"; DROP TABLE x --').table()
        with psycopg.connect(PG) as db:
            written = enqueue(db, Message("E", "1", destination="shop"), place=Place("public"))
        self.assertEqual(len(row_in_pg(written)), 1)

    def test_a_stranger_is_refused(self):
        with self.assertRaises(TypeError):
            enqueue(object(), Message("E"))


if __name__ == "__main__":
    unittest.main()
