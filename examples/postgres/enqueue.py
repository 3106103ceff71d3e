#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python with psycopg 3: the business change and its message in one transaction. Usage: enqueue.py URL"""
import json
import sys

import psycopg

db = psycopg.connect(sys.argv[1], autocommit=True)
db.execute("CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)")


def create_order(item, fail=False):
    with db.transaction():  # rolls back when something is raised: neither the order nor the message exists
        order, = db.execute("INSERT INTO orders (item) VALUES (%s) RETURNING id", (item,)).fetchone()
        db.execute("INSERT INTO outbox (destination, event_type, message_key, payload) VALUES (%s, %s, %s, %s)",
                   ("shop", "OrderCreated", f"order-{order}", json.dumps({"order": order, "from": "python"})))
        if fail:
            raise RuntimeError("the card was refused")


create_order("a parcel")
try:
    create_order("a mistake", fail=True)
except RuntimeError:
    pass
