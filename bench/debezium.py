# SPDX-License-Identifier: Apache-2.0
"""Debezium Server from PostgreSQL to Kafka with its outbox router, for bench/brokers.py to compare a relay with. Maven fetches its distribution by name (550 MB, once
into the build folder); it needs Java 21."""
import glob
import os
import re
import shutil
import subprocess
import time

import clients
from ports import free_port
from support import Skip, until

VERSION, JAVA = "3.0.8.Final", 21
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"

# As its tutorial has it, and then the settings that make it fast: large batches, no waiting between them, payloads as they are.
SETTINGS = """quarkus.http.port={http}
quarkus.log.level=WARN
debezium.sink.type=kafka
debezium.sink.kafka.producer.bootstrap.servers={brokers}
debezium.sink.kafka.producer.key.serializer=org.apache.kafka.common.serialization.StringSerializer
debezium.sink.kafka.producer.value.serializer=org.apache.kafka.common.serialization.StringSerializer
debezium.sink.kafka.producer.acks=all
debezium.sink.kafka.producer.enable.idempotence=true
debezium.sink.kafka.producer.linger.ms=1
debezium.source.connector.class=io.debezium.connector.postgresql.PostgresConnector
debezium.source.plugin.name=pgoutput
debezium.source.slot.name=bench
debezium.source.publication.autocreate.mode=filtered
debezium.source.database.hostname=127.0.0.1
debezium.source.database.port={port}
debezium.source.database.user=hikyaku
debezium.source.database.password=none
debezium.source.database.dbname={database}
debezium.source.table.include.list=public.events
debezium.source.topic.prefix=bench
debezium.source.snapshot.mode=no_data
debezium.source.tombstones.on.delete=false
debezium.source.max.batch.size=8192
debezium.source.max.queue.size=32768
debezium.source.poll.interval.ms=10
debezium.source.offset.storage=org.apache.kafka.connect.storage.MemoryOffsetBackingStore
debezium.format.key=simplestring
debezium.format.value=simplestring
debezium.transforms=outbox
debezium.transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
debezium.transforms.outbox.route.topic.replacement={topic}
debezium.transforms.outbox.table.fields.additional.placement=type:header:event-type
"""
TABLE = """CREATE TABLE events (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text NOT NULL DEFAULT 'order', aggregateid text NOT NULL,
type text NOT NULL DEFAULT 'Bench', payload text NOT NULL)"""


def java():
    """A Java that is new enough."""
    for program in [shutil.which("java"), *sorted(glob.glob("/usr/lib/jvm/*/bin/java"))]:
        said = subprocess.run([program, "-version"], text=True, capture_output=True, check=False).stderr if program else ""
        version = re.search(r'version "(\d+)', said)
        if version and int(version[1]) >= JAVA:
            return program
    raise Skip(f"Debezium Server needs Java {JAVA}")


def distribution():
    maven = shutil.which("mvn")
    if not maven:
        raise Skip("mvn is not installed")

    def make(folder):
        return clients.step("Maven cannot fetch Debezium Server", maven, "-q", "-B", COPY, f"-Dartifact=io.debezium:debezium-server-dist:{VERSION}:tar.gz",
                            f"-DoutputDirectory={folder}") or \
            clients.step("its distribution cannot be unpacked", "tar", "xzf", f"debezium-server-dist-{VERSION}.tar.gz", cwd=folder) or \
            os.remove(folder / f"debezium-server-dist-{VERSION}.tar.gz")
    return clients.folder_of("debezium", VERSION.encode(), make) / "debezium-server"


class Debezium:
    """Runs until close(); it reads what is inserted into `events` from now on."""

    def __init__(self, folder, database, port, brokers, topic, db):
        program, home = java(), distribution()
        db.execute(TABLE)
        (folder / "config").mkdir()
        (folder / "config/application.properties").write_text(
            SETTINGS.format(http=free_port(), brokers=brokers, port=port, database=database, topic=topic), encoding="ascii")
        runner, = home.glob("*runner.jar")
        self.log = folder / "debezium.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "-Xmx1g", "-cp", f"{runner}:{folder}/config:{home}/lib/*", "io.debezium.server.Main"], cwd=folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self.process.poll() is not None or db.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone(),
              lambda: f"Debezium to read: {self.said()}")
        assert self.process.poll() is None, self.said()

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def insert(self, db, rows, payload):
        db.execute("INSERT INTO events (aggregateid, payload) SELECT 'k' || i %% 1000, %s FROM generate_series(1, %s) i", (payload, rows))

    def close(self):
        self.process.kill()
        self.process.wait()
