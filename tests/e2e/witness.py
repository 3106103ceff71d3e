# SPDX-License-Identifier: Apache-2.0
"""What relays did, told by the database itself: triggers that write down every claim and what became of it, in the same
transaction. A relay that is killed or stopped cannot write the last lines of its event log, and nobody writes the lines
of a take-over; from these notes they are added, whatever was going on meanwhile. And what a relay did write must agree."""
import bisect
import collections
import json
import os
import pathlib
import shutil
import subprocess

TABLE = """
CREATE TABLE witness (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(), what text NOT NULL, id bigint, claim bigint, lane bigint,
    m text, dest text, n_attempts integer, charged integer, crashes integer, due bigint, life integer, reason text,
    ids bigint[])"""

# What is written of a row: for each table and operation the columns of `witness` and where they come from. A claim of
# rows in a shard that is not its lane's is written down as well.
RETRY = "m, dest, n_attempts, charged, crashes, due, life", \
    "{0}.message_id, {0}.destination, {0}.attempts, {0}.charged, {0}.crashes, {0}.due_ms, {0}.life"
NOTES = [
    ("outbox_claim", "INSERT", "claim", "claim, lane, ids, crashes",
     "NEW.claim, NEW.lane, NEW.ids, (SELECT count(*) FROM outbox o JOIN outbox_shard s ON s.shard = o.shard "
     "WHERE o.id = ANY (NEW.ids) AND s.lane IS DISTINCT FROM NEW.lane)", None),
    ("outbox_claim", "DELETE", "over", "claim, lane, ids", "OLD.claim, OLD.lane, OLD.ids", None),
    ("outbox_retry", "INSERT", "added", "id, claim, " + RETRY[0], "NEW.original_outbox_id, NEW.claim, " + RETRY[1].format("NEW"),
     None),
    ("outbox_retry", "UPDATE", "taken", "id, claim, " + RETRY[0], "NEW.id, NEW.claim, " + RETRY[1].format("NEW"),
     "NEW.claim IS NOT NULL AND OLD.claim IS DISTINCT FROM NEW.claim"),
    ("outbox_retry", "UPDATE", "freed", "id, claim, " + RETRY[0], "NEW.id, OLD.claim, " + RETRY[1].format("NEW"),
     "OLD.claim IS NOT NULL AND NEW.claim IS NULL"),
    ("outbox_retry", "DELETE", "gone", "id, claim, " + RETRY[0], "OLD.id, OLD.claim, " + RETRY[1].format("OLD"),
     None),
    ("outbox_sent", "INSERT", "sent", "id, m, dest, n_attempts, charged, life",
     "NEW.original_outbox_id, NEW.message_id, NEW.destination, NEW.attempts, NEW.attempts, NEW.life", None),
    ("dead_letters", "INSERT", "dead", "id, m, dest, n_attempts, charged, life, reason",
     "NEW.original_outbox_id, NEW.message_id, NEW.destination, NEW.attempts, NEW.attempts, NEW.life, NEW.reason_code",
     None),
]

End = collections.namedtuple("End", "at kind dest attempts charged due life reason")  # kind "orphan", or a settle's


def install(db):
    db.execute(TABLE)
    for table, operation, what, columns, values, when in NOTES:
        name = f"witness_{table}_{what}"
        db.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN "
                   f"INSERT INTO public.witness (what, {columns}) VALUES ('{what}', {values}); RETURN NULL; END $$")
        db.execute(f"CREATE TRIGGER {name} AFTER {operation} ON {table} FOR EACH ROW "
                   f"{f'WHEN ({when})' if when else ''} EXECUTE FUNCTION {name}()")


class Witness:
    """Reads the notes, at the end."""

    COLUMNS = "n at_ms xid what id claim lane m dest n_attempts charged crashes due life reason ids"
    Note = collections.namedtuple("Note", COLUMNS)

    def __init__(self, db):
        self.notes = [self.Note(*row) for row in
                      db.execute(f"SELECT {', '.join(self.COLUMNS.split())} FROM witness ORDER BY n")]
        self.held = {}  # (row, claim) -> the note of its claim
        self.ends = {}  # (row, claim) -> End
        self.lanes = {note.claim: note.lane for note in self.notes if note.what == "claim"}
        strangers = [note for note in self.notes if note.what == "claim" and note.crashes]
        assert not strangers, f"claimed from shards of others: {strangers[:3]}"
        self.follow()

    def follow(self):
        last = {}  # row of outbox -> its last claim
        named = {}  # claim -> rows of outbox, until they leave
        told = {(n.xid, n.m, n.dest): n for n in self.notes if n.what in ("sent", "dead")}
        gone = {(n.xid, n.m, n.dest) for n in self.notes if n.what == "gone"}
        for note in self.notes:
            here = note.xid, note.m, note.dest
            if note.what == "claim":
                named[note.claim] = {f"o{i}" for i in note.ids}
                for row in named[note.claim]:
                    self.held[row, note.claim] = note
                    last[row] = note.claim
            elif note.what == "over":
                for row in named.pop(note.claim, ()):  # given back, and perhaps taken again by now
                    self.ends[row, note.claim] = End(note.at_ms, "release", None, 0, 0, 0, 1, "")
            elif note.what == "taken":
                self.held[f"r{note.id}", note.claim] = note
            elif note.what == "freed":
                self.ends[f"r{note.id}", note.claim] = self.end_of_retry(note)
            elif note.what == "gone" and note.claim is not None:
                by = told.get(here, note)
                kind = by.what if by is not note else "fan_out"
                self.ends[f"r{note.id}", note.claim] = End(note.at_ms, kind, note.dest, by.n_attempts, by.charged, 0,
                                                           note.life, by.reason or "")
            elif note.what in ("added", "sent", "dead"):
                row = f"o{note.id}"
                if here in gone:
                    continue  # it was a retry row
                claim = last.pop(row, None)
                if claim is None:
                    continue
                named.get(claim, set()).discard(row)
                kind = note.what if note.what != "added" else \
                    "orphan" if note.crashes else "retry" if note.n_attempts else "defer"
                self.ends[row, claim] = End(note.at_ms, kind, note.dest, note.n_attempts, note.charged, note.due or 0,
                                            note.life, note.reason or "")

    def end_of_retry(self, note):
        before = self.held[f"r{note.id}", note.claim]
        kind = "orphan" if note.crashes > before.crashes else \
            "retry" if note.n_attempts > before.n_attempts else "release"
        return End(note.at_ms, kind, note.dest, note.n_attempts, note.charged, note.due, note.life, "")

    def complete(self, lines):
        """The event log with what nobody could write, in order."""
        claims, settled = {}, {}
        for e in lines:
            if e["ev"] == "claim":
                claims[e["row"], e["claim"]] = e
            elif e["ev"] == "settle" and e["rows"]:
                settled[e["row"], e["claim"]] = e
        self.compare(settled)
        added = []
        for key, end in self.ends.items():
            row, claim = key
            if key in settled or (key not in claims and end.kind == "release"):
                continue  # the latter: a claim that nobody got to know of
            note, lane = self.held[key], self.lanes[claim]
            e = claims.get(key)
            if not e:
                assert end.kind == "orphan", f"{key} was settled, and nobody had claimed it: {end}"
                m = self.name_of(row, note)
                e = {"t": note.at_ms, "ev": "claim", "m": m[0], "dest": m[1], "row": row, "lane": lane, "claim": claim,
                     "life": end.life}
                added.append(e)
            line = {"t": end.at, "ev": "settle", **{k: e[k] for k in ("m", "dest", "row", "lane", "claim")}}
            if end.kind == "orphan":
                line["ev"] = "orphan"
            else:
                kind = "fan_out" if end.kind == "defer" and not e["dest"] else end.kind
                line.update(kind=kind, life=end.life, n=end.attempts, charged=end.charged, due=end.due, rows=1,
                            reason=end.reason, place=end.at + DELAYED_MS // 2)  # behind what its relay wrote
            added.append(line)
        return self.charge(merge(lines, added), added)

    @staticmethod
    def charge(lines, added):
        """Tables of what is over do not say how many attempts were charged: each since the last line that knows."""
        known, ours = {}, {id(e) for e in added}
        for e in lines:
            if e["ev"] == "requeue":
                known.pop((e["m"], e["dest"]), None)
            if e["ev"] != "settle" or not e["rows"] or "charged" not in e:
                continue
            n, charged = known.get((e["m"], e["dest"]), (0, 0))
            if id(e) in ours and e["kind"] in ("sent", "dead"):
                e["charged"] = charged + e["n"] - n
            known[e["m"], e["dest"]] = e["n"], e["charged"]
        return lines

    def name_of(self, row, note):
        if note.what == "taken":
            return note.m, note.dest
        moved = next(n for n in self.notes if n.what in ("added", "sent", "dead") and f"o{n.id}" == row)
        return moved.m, moved.dest

    def compare(self, settled):
        """What relays say to have settled, they have."""
        for key, e in settled.items():
            end = self.ends.get(key)
            assert end, f"said to be settled, and is not: {e}"
            alike = {"release": ("release", "defer"), "defer": ("defer", "fan_out")}.get(end.kind, (end.kind,))
            if end.kind in ("defer", "release") and e["n"] == end.attempts:
                alike += ("retry",)  # the relay ended the send itself, and it may have arrived: no attempt is charged
            assert e["kind"] in alike, f"said to be settled so: {e}, and was so: {end}"


DELAYED_MS = 500
EXTRA = ("place", "at", "id")  # fields that are ours alone


def place_of(e):
    return e.get("place", e["t"])


def merge(lines, added):
    """Order in the file is the order of events, but for what a stopped process wrote when it went on, and what we add:
    that goes where its time says."""
    kept, times, moved, latest = [], [], [], 0
    for e in lines:
        t = e.get("at", e["t"])
        if e["ev"] in ("renew", "settle", "claim") and t < latest - DELAYED_MS:
            moved.append({**e, "place": t + DELAYED_MS // 2})  # behind what it answers to
            continue
        latest = max(latest, t)
        kept.append(e)
        times.append(latest)
    places = collections.defaultdict(list)
    for e in sorted(moved + added, key=place_of):  # stable: of one exchange they stay as they are
        places[bisect.bisect_left(times, place_of(e))].append(e)
    out = []
    for i, e in enumerate(kept):
        out += places.get(i, [])
        out.append(e)
    return out + places.get(len(kept), [])


def acts(db):
    """What people, and jobs for them, did with letters: the audit's rows as lines of the log. Those that the checker knows."""
    rows = db.execute("SELECT at_ms, act, message_id, destination, actor FROM outbox_audit_of_letters "
                      "WHERE act IN ('requeue', 'discard') ORDER BY id")
    return [{"t": t, "ev": act, "m": m, "dest": dest, "actor": actor} for t, act, m, dest, actor in rows]


# ---- judging ----

def find_checker(binary):
    given = os.environ.get("HIKYAKU_CHECK")
    built = pathlib.Path(os.environ.get("BUILD_DIR", pathlib.Path(binary).parents[2])) / "sim/hikyaku-check"
    return given or (str(built) if built.exists() else None)


DUMP = {"outbox": "SELECT coalesce(message_id, '') m, destination dest, 0 due, 0 n, 1 life FROM outbox",
        "retry": "SELECT message_id m, destination dest, due_ms due, attempts n, life FROM outbox_retry",
        "sent": "SELECT message_id m, destination dest, 0 due, attempts n, life FROM outbox_sent",
        "dead": "SELECT message_id m, destination dest, 0 due, attempts n, life, status FROM dead_letters",
        "attempts": "SELECT message_id m, destination dest, 0 due, n, life FROM outbox_attempts WHERE n > 0"}


def dump(db):
    """The tables at the end, as the checker wants them."""
    for table, query in DUMP.items():
        for row in db.execute(query):
            yield {"table": table, **dict(zip(("m", "dest", "due", "n", "life", "status"), row))}


def totals(db):
    """What people did, and how many messages ended how, as the database itself counts them: the whole audit of acts on letters."""
    for act, m, dest, actor in db.execute("SELECT act, message_id, destination, actor FROM outbox_audit_of_letters "
                                          "WHERE act IN ('requeue', 'discard') ORDER BY id"):
        yield {"table": "audit", "act": act, "m": m, "dest": dest, "actor": actor}
    counts = {name: db.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
              for name, what in (("sent", "outbox_sent"), ("dead", "dead_letters WHERE status = 'failed'"),
                                 ("over", "dead_letters WHERE status = 'discarded'"))}
    yield {"table": "totals", **counts, "audited": "yes"}


def run_checker(checker, folder, lines, rows, *options):
    """hikyaku-check LOG DUMP: the separate judge. What it counted."""
    paths = []
    for name, items in (("checked.log", lines), ("checked.dump", rows)):
        paths.append(folder / name)
        with open(paths[-1], "w", encoding="utf-8") as file:
            for item in items:
                file.write(json.dumps({k: v for k, v in item.items() if k not in EXTRA}, separators=(",", ":")) + "\n")
    done = subprocess.run([checker, *options, *map(str, paths)], text=True, capture_output=True, timeout=1800, check=False)
    if done.returncode != 0 and "KEEP" in os.environ:
        for path in paths:
            shutil.copy(path, os.environ["KEEP"])
    assert done.returncode == 0, f"hikyaku-check:\n{done.stdout}{done.stderr}"
    return done.stdout.strip().splitlines()[-1]
