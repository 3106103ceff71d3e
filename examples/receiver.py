#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A receiver that verifies the signature and drops repeats. Usage: receiver.py PORT WHSEC_SECRET

Standard library only. A real one keeps the ids that it has seen in its database, in the transaction that acts."""
import base64
import hashlib
import hmac
import http.server
import sys
import time
import urllib.parse

KEY = base64.b64decode(sys.argv[2].removeprefix("whsec_"))
TOLERANCE_S = 300
seen = set()


def verified(headers, body):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    fresh = abs(time.time() - int(headers["webhook-timestamp"])) <= TOLERANCE_S
    given = (part.split(",", 1) for part in headers["webhook-signature"].split())
    return fresh and any(v == "v1" and hmac.compare_digest(s, expected) for v, s in given)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            ok = verified(self.headers, body)
        except (KeyError, TypeError, ValueError, AttributeError):
            ok = False
        if not ok:
            self.answer(401)
        elif self.headers["webhook-id"] in seen:
            self.answer(200)  # a repeat: it was acted on before
        else:
            seen.add(self.headers["webhook-id"])
            event = urllib.parse.unquote(self.headers.get("Hikyaku-Event", ""))
            print("got", self.headers["webhook-id"], event, body.decode(), flush=True)
            self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
