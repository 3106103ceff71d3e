#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`hikyaku adopt`: outbox tables that applications have already feed ours by a trigger: Debezium's, and those that a publisher polls. Speaks TAP.

Usage: adopt.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); STORE=postgres; ONLY="words" runs the tests whose names hold one."""
import datetime
import json
import shutil
import subprocess
import sys
import uuid

sys.dont_write_bytecode = True  # the source folder stays as it is
import postgres
from support import POSTGRES, World, run_tests

USAGE = 2
WHY = ("--actor", "ann", "--reason", "we leave Debezium")
TESTS = []

# As Debezium's documentation has it; on PostgreSQL with its types.
DEBEZIUM = f"""CREATE TABLE outboxevent (
    id {'uuid' if POSTGRES else 'TEXT'} NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL,
    type varchar(255), payload {'jsonb' if POSTGRES else 'TEXT'}, traceparent varchar(255))"""
# The columns that tutorials on polling publishers give: snake_case and CamelCase.
POLLED = f"""CREATE TABLE "OutboxMessages" (
    "Id" {'bigint GENERATED ALWAYS AS IDENTITY' if POSTGRES else 'INTEGER'} PRIMARY KEY, "EventType" text NOT NULL,
    "Payload" {'bytea' if POSTGRES else 'BLOB'}, aggregate_id text, "Status" {'text' if POSTGRES else 'TEXT'} NOT NULL DEFAULT 'Pending',
    "RetryCount" int NOT NULL DEFAULT 0, next_retry_at {'timestamp' if POSTGRES else 'TEXT'}, "LastError" text,
    created_at {'timestamptz DEFAULT clock_timestamp()' if POSTGRES else 'TEXT'}, UNIQUE (aggregate_id))"""


def test(function):
    TESTS.append(function)
    return function


class Moving(World):
    def do(self, *statements):
        """One transaction."""
        db = self.connect()
        try:
            db.execute("BEGIN IMMEDIATE")
            for statement in statements:
                db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)
            db.execute("COMMIT")
        finally:
            db.close()

    def pipe(self, sql):
        """Into the database's own client, as a user would; else through our connection."""
        if POSTGRES:
            client = [f"{postgres.find_bin()}/psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", postgres.cluster().url(self.db)]
        elif shutil.which("sqlite3"):
            client = ["sqlite3", "-bail", str(self.db)]
        else:
            db = self.connect()
            db.executescript(sql)
            db.close()
            return
        done = subprocess.run(client, input=sql, text=True, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and not done.stderr, (sql, done.stdout, done.stderr)

    def fails(self, code, says, *args):
        got, text = self.try_hikyaku("adopt", *args)
        assert got == code and says in text, (args, got, text)

    def rows(self, columns="message_id"):
        return self.sql(f"SELECT {columns} FROM outbox ORDER BY id")


def event(kind="OrderCreated", key="o-1", payload='{"n": 1}', **more):
    row = {"id": str(uuid.uuid4()), "aggregatetype": "Order", "aggregateid": key, "type": kind, "payload": payload, **more}
    return f"INSERT INTO outboxevent ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()), row["id"]


@test
def a_debezium_outbox_feeds_ours_and_its_application_stays_as_it_is():
    with Moving() as w:
        w.do(DEBEZIUM)
        printed = w.hikyaku("adopt", "--from", "debezium", "--destination", "shop")
        assert "message_key    <- aggregateid" in printed and "BEGIN" in printed and printed.endswith("COMMIT;\n"), printed
        before = event()
        w.do(before[:2])
        assert w.rows() == [], "printing changed something"
        w.pipe(printed)
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        first, second, undone = event(traceparent=trace), event("OrderPaid", payload='{"n": 2}'), event("Never")
        w.do(first[:2], ("DELETE FROM outboxevent WHERE id = ?", [first[2]]))  # applications of Debezium delete at once
        w.do(second[:2])
        db = w.connect()
        db.execute("BEGIN IMMEDIATE")
        db.execute(*undone[:2])
        db.execute("ROLLBACK")
        db.close()
        w.do((second[0] + " ON CONFLICT DO NOTHING", second[1]))  # not inserted: not a message
        w.do(event(kind=None, payload=None)[:2])  # what we cannot send must not fail the application
        assert len(w.rows()) == 3, w.rows()
        w.daemon().ready()
        w.settled(sent=3)
        got = {r.id: r for r in w.receiver.arrived()}
        assert len(got) == 3 and {first[2], second[2]} < set(got), got
        one = got[first[2]]
        assert json.loads(one.body) == {"n": 1} and one.headers["hikyaku-event"] == "OrderCreated", one.headers
        assert one.headers["aggregatetype"] == "Order" and one.headers["traceparent"][3:35] == trace[3:35], one.headers
        assert w.hikyaku("adopt", "--from", "debezium", "--undo").count("DROP") == (2 if POSTGRES else 1)
        said = w.hikyaku("adopt", "--from", "debezium", "--undo", "--apply", *WHY)
        assert "no longer become messages" in said, said
        w.do(event()[:2])
        assert w.rows() == []
        assert [a["act"] for a in json.loads(w.hikyaku("audit", "list", "--json"))["items"]] == ["adopt-undo"]
        assert json.loads(w.hikyaku("audit", "verify", "--json"))["ok"]


@test
def a_polled_outbox_is_taken_over_with_what_waits_in_it():
    with Moving() as w:
        w.do(POLLED)
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=2)
        put = 'INSERT INTO "OutboxMessages" ("EventType", "Payload", aggregate_id, "Status", next_retry_at) VALUES (?, ?, ?, ?, ?)'
        due = soon.strftime("%Y-%m-%d %H:%M:%S")
        w.do((put, ["A", b"\x00\xff1", "k1", "Pending", None]), (put, ["B", b"2", "k2", "Sent", None]),
             (put, ["C", b"3", "k3", "FAILED", due]), (put, ["D", b"4", "k4", "Processing", None]))
        done = json.loads(w.hikyaku("adopt", "--from", "polling", "--table", "OutboxMessages", "--destination", "shop", "--pending",
                                    "pending", "--pending", "failed", "--done", "Moved", "--existing", "--apply", "--json", *WHY))
        assert done["applied"] and done["copied"] == 2 and done["table"] == "OutboxMessages", done
        w.do((put, ["E", b"5", "k5", "Pending", None]))
        w.do((put, ["F", b"6", "k6", "Sent", None]))  # of an application that says so: not ours to send
        w.do((put + " ON CONFLICT DO NOTHING", ["G", b"7", "k5", "Pending", None]))
        assert w.rows("message_id, event_type, message_key") == [
            ("OutboxMessages-1", "A", "k1"), ("OutboxMessages-3", "C", "k3"), ("OutboxMessages-5", "E", "k5")], w.rows("*")
        assert w.sql('SELECT "Status" FROM "OutboxMessages" ORDER BY "Id"') == [
            (s,) for s in ("Moved", "Sent", "Moved", "Processing", "Moved", "Sent")]
        w.daemon().ready()
        w.settled(sent=2, pending=1)
        assert {r.id: r.body for r in w.receiver.arrived()} == {"OutboxMessages-1": b"\x00\xff1", "OutboxMessages-5": b"5"}
        assert w.message("OutboxMessages-3", "next_attempt_at")[0] == soon.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        acts = json.loads(w.hikyaku("audit", "list", "--json"))["items"]
        assert [(a["act"], a["actor"], a["reason"]) for a in acts] == [("adopt", "ann", WHY[-1])], acts
        # Once more: what was copied is not copied again.
        again = json.loads(w.hikyaku("adopt", "--from", "polling", "--table", "OutboxMessages", "--destination", "shop", "--done", "Moved",
                                     "--existing", "--apply", "--json", *WHY))
        assert again["copied"] == 0 and len(w.rows()) in (0, 1), again


@test
def the_application_needs_no_new_rights_of_its_own():
    if not POSTGRES:
        numbers()
        return
    with Moving() as w:
        role = f"shop_app_{w.db}"
        w.do(DEBEZIUM, f"CREATE ROLE {role} LOGIN", f"GRANT INSERT ON outboxevent TO {role}")
        try:
            w.hikyaku("adopt", "--from", "debezium", "--apply", *WHY)
            app = postgres.Connection(postgres.cluster().url(w.db).replace("hikyaku@", f"{role}@"))
            app.execute(event(payload='{}')[0], event(payload='{}')[1])
            assert len(w.rows()) == 1
            # With --done the trigger also changes the application's row, with the application's rights.
            w.do(POLLED, f'GRANT INSERT ON "OutboxMessages" TO {role}')
            w.hikyaku("adopt", "--from", "polling", "--table", "public.OutboxMessages", "--done", "Moved", "--apply", *WHY)
            app.execute("""INSERT INTO "OutboxMessages" ("EventType", "Payload") VALUES ('A', 'x')""")
            app.close()
            assert w.sql('SELECT "Status" FROM "OutboxMessages"') == [("Moved",)] and len(w.rows()) == 2
            code, text = w.try_hikyaku("--db", postgres.cluster().url(w.db).replace("hikyaku@", f"{role}@"), "adopt", "--from", "debezium", "--apply", *WHY)
            assert code != 0 and "permission denied" in text, (code, text)
        finally:
            w.do(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def numbers():
    """SQLite has no roles; but tables whose times are numbers, as Prisma writes them, and INSERT OR IGNORE, which drops rows with a NULL."""
    with Moving() as w:
        w.do("CREATE TABLE Outbox_Prisma (id TEXT PRIMARY KEY, eventType TEXT, payload TEXT, scheduledAt INTEGER, status TEXT DEFAULT 'pending')")
        w.hikyaku("adopt", "--from", "polling", "--table", "outbox_prisma", "--apply", *WHY)
        w.do("INSERT OR IGNORE INTO outbox_prisma (id, eventType, payload, scheduledAt) VALUES ('a', 'E', '1', 4102444800000)",
             "INSERT OR IGNORE INTO outbox_prisma (id, eventType, payload, scheduledAt) VALUES ('b', 'E', '1', 4102444800)",
             "INSERT OR IGNORE INTO outbox_prisma (eventType) VALUES (NULL)")
        rows = w.rows("message_id, event_type, not_before, destination, length(message_id)")
        assert [r[:4] for r in rows[:2]] == [("a", "E", "2100-01-01T00:00:00.000Z", ""), ("b", "E", "2100-01-01T00:00:00.000Z", "")], rows
        assert rows[2][1:] == ("", None, "", 32), rows


@test
def what_cannot_be_adopted_is_refused_with_the_reason_and_nothing_changes():
    with Moving() as w:
        w.do(DEBEZIUM, "CREATE TABLE half (id int PRIMARY KEY, payload text, status text)",
             'CREATE TABLE "a$b" (id int PRIMARY KEY, type text, payload text, status text)')
        polling = ("--from", "polling", "--table")
        w.fails(USAGE, "--from", "--table", "half")
        w.fails(USAGE, "TABLE or SCHEMA.TABLE", "--from", "polling")
        w.fails(USAGE, "there is no table", *polling, "nowhere")
        w.fails(USAGE, "own table", *polling, f"{'public.' if POSTGRES else ''}outbox")
        w.fails(USAGE, "--column event_type=COLUMN", *polling, "half")
        w.fails(USAGE, "no such column", *polling, "half", "--column", "event_type=nope")
        w.fails(USAGE, "write OURS=THEIRS", *polling, "half", "--column", "nope=id")
        w.fails(USAGE, "needs --done", *polling, "half", "--existing")
        w.fails(USAGE, "which rows Debezium has sent", "--from", "debezium", "--existing")
        w.fails(USAGE, "none of @ $", *polling, "a$b")
        w.fails(USAGE, "none of @ $", *polling, "half", "--column", "event_type=status", "--pending", "$hikyaku$")
        w.fails(USAGE, "--reason", "--from", "debezium", "--apply")
        quoted = w.hikyaku("adopt", *polling, "half", "--column", "event_type=status", "--pending", "it's", "--done", "o'k", "--destination", "x'y")
        assert "'it''s'" in quoted and "'o''k'" in quoted and "'x''y'" in quoted, quoted
        w.pipe(quoted)
        w.do("INSERT INTO half VALUES (1, 'p', 'IT''S')")
        assert w.rows("message_id, destination, event_type") == [("half-1", "x'y", "IT'S")], w.rows("*")
        assert w.sql("SELECT status FROM half") == [("o'k",)]
        assert w.sql("SELECT count(*) FROM outbox_audit") == [(0,)]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
