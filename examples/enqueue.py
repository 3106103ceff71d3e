#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python: the business change and its message in one transaction. Usage: enqueue.py shop.db"""
import json
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")


def create_order(item, fail=False):
    db.execute("BEGIN IMMEDIATE")
    try:
        order = db.execute("INSERT INTO orders (item) VALUES (?)", (item,)).lastrowid
        db.execute("INSERT INTO outbox (destination, event_type, message_key, payload) VALUES (?, ?, ?, ?)",
                   ("shop", "OrderCreated", f"order-{order}", json.dumps({"order": order, "from": "python"})))
        if fail:
            raise RuntimeError("the card was refused")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")  # neither the order nor the message exists
        raise


create_order("a parcel")
try:
    create_order("a mistake", fail=True)
except RuntimeError:
    pass
