# SPDX-License-Identifier: Apache-2.0
"""Google's emulator of Pub/Sub, and a front for it that does what the emulator does not: it lets nobody in without a token that is right, and
says what a service may say."""
import base64
import glob
import http.client
import http.server
import json
import os
import shutil
import ssl
import subprocess
import threading
import time

from brokers_servers import Server
from support import Skip, until

PROJECT = "shop"
EMAIL = "relay@shop.iam.gserviceaccount.com"
TOPICS = f"/v1/projects/{PROJECT}/topics/"


class Emulator(Server):
    package, program = "google-cloud-cli-pubsub-emulator, of Google's archive", "emulator of Pub/Sub"

    def __init__(self, world):
        super().__init__(world, "pubsub")

    @classmethod
    def find(cls):
        jars = sorted(glob.glob("/usr/lib/google-cloud-sdk/platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar"))
        jar = os.environ.get("PUBSUB_EMULATOR_JAR") or (jars[-1] if jars else None)
        return jar if jar and shutil.which("java") else None

    def command(self):
        return ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-jar", self.found, "--host=127.0.0.1", f"--port={self.port}"]

    def up(self):
        try:
            return self.ask("GET", TOPICS + "not-there")[0] == 404
        except (OSError, http.client.HTTPException):
            return False

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, method, path, body=None):
        status, text = self.ask(method, f"/v1/projects/{PROJECT}/{path}", body)
        assert status == 200, (method, path, status, text)
        return json.loads(text)

    def topic(self, name, **more):
        """With a subscription of the same name, which keeps the order of keys."""
        self.call("PUT", f"topics/{name}", more)
        self.call("PUT", f"subscriptions/{name}", {"topic": f"projects/{PROJECT}/topics/{name}", "enableMessageOrdering": True,
                                                   "ackDeadlineSeconds": 600})

    def schema(self, name, *fields):
        definition = {"type": "record", "name": "R", "fields": [{"name": f, "type": "int"} for f in fields]}
        self.call("POST", f"schemas?schemaId={name}", {"type": "AVRO", "definition": json.dumps(definition)})
        return {"schemaSettings": {"schema": f"projects/{PROJECT}/schemas/{name}", "encoding": "JSON"}}

    def drain(self, name, n=None):
        """What nobody has seen yet, in the order of its ids: that of publishing; n: at least so many."""
        found = {}

        def pull():
            some = self.call("POST", f"subscriptions/{name}:pull", {"maxMessages": 1000, "returnImmediately": True}).get("receivedMessages", [])
            for one in some:
                found[int(one["message"]["messageId"])] = one["message"]
            if some:
                self.call("POST", f"subscriptions/{name}:acknowledge", {"ackIds": [one["ackId"] for one in some]})
            return some
        if n:
            until(lambda: (pull(), len(found) >= n)[1], lambda: f"{n} messages, not {len(found)}")
        while pull():
            pass
        return [found[i] for i in sorted(found)]


def data(message):
    return base64.b64decode(message.get("data", ""))


class Key:
    """A service account's key, as Google gives it out."""

    def __init__(self, folder, name="key"):
        self.file, self.public = folder / f"{name}.json", folder / f"{name}.pub"
        self.pem = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], check=True, capture_output=True, text=True).stdout
        public = subprocess.run(["openssl", "pkey", "-pubout"], input=self.pem, check=True, capture_output=True, text=True).stdout
        self.public.write_text(public, encoding="ascii")
        self.text = json.dumps({"type": "service_account", "project_id": PROJECT, "private_key_id": "id-of-" + name, "private_key": self.pem,
                                "client_email": EMAIL, "token_uri": "https://oauth2.googleapis.com/token"})
        self.file.write_text(self.text, encoding="ascii")
        self.file.chmod(0o600)

    def why_not(self, token, folder):
        """What is wrong with the token, as Google's documentation has it; None: nothing."""
        parts = token.split(".")
        if len(parts) != 3:
            return "it is no JWT"
        head, claims, signature = (base64.urlsafe_b64decode(p + "=" * (-len(p) % 4)) for p in parts)
        head, claims, now = json.loads(head), json.loads(claims), time.time()
        mark = folder / f"signature-{threading.get_ident()}"
        mark.write_bytes(signature)
        checked = subprocess.run(["openssl", "dgst", "-sha256", "-verify", str(self.public), "-signature", str(mark)],
                                 input=".".join(parts[:2]).encode(), capture_output=True, check=False)
        wanted = {"alg": "RS256", "typ": "JWT", "kid": json.loads(self.text)["private_key_id"]}
        if checked.returncode != 0 or head != wanted:
            return f"its signature is wrong, or its head: {head}"
        if claims["iss"] != EMAIL or claims["sub"] != EMAIL or claims["aud"] != "https://pubsub.googleapis.com/":
            return f"its claims are wrong: {claims}"
        if not now - 60 <= claims["iat"] <= now + 60 or not 0 < claims["exp"] - claims["iat"] <= 3600:
            return f"its times are wrong: {claims}"
        return None


class Front(http.server.ThreadingHTTPServer):
    """Checks tokens and hands requests on to the emulator. Also the metadata server. `script`: a function of the request's number and messages that
    gives (status, code) instead of an answer, "lost" (the emulator takes the messages, and the connection ends) or None."""

    daemon_threads, request_queue_size = True, 64

    def __init__(self, world, emulator, key, certificate=None, script=None):
        self.emulator, self.key, self.folder = emulator, key, world.folder
        self.script, self.allowed, self.metadata_life = script or (lambda n, messages: None), True, 3600
        self.lock, self.good, self.denied, self.refused, self.requests, self.given = threading.Lock(), {}, 0, set(), 0, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def say(self, status, body):
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):  # pylint: disable=invalid-name
                right = self.path == "/computeMetadata/v1/instance/service-accounts/default/token" and self.headers["Metadata-Flavor"] == "Google"
                if not right:
                    self.say(403, {})
                    return
                with outer.lock:
                    outer.given += 1
                    token = f"metadata-token-{outer.given}"
                    outer.good[token] = time.time()
                self.say(200, {"access_token": token, "expires_in": outer.metadata_life, "token_type": "Bearer"})

            def do_POST(self):  # pylint: disable=invalid-name
                text = self.rfile.read(int(self.headers["Content-Length"]))
                denied = outer.why_not(self.headers["Authorization"] or "")
                if denied:
                    outer.denied += 1
                    self.say(401, error(401, "UNAUTHENTICATED", denied))
                elif self.path.endswith(":testIamPermissions"):
                    self.say(200, {"permissions": json.loads(text)["permissions"]} if outer.allowed else {})
                elif not outer.allowed:
                    self.say(403, error(403, "PERMISSION_DENIED", "User not authorized to perform this action."))
                else:
                    self.publish(text)

            def publish(self, text):
                with outer.lock:
                    outer.requests += 1
                    said = outer.script(outer.requests, json.loads(text)["messages"])
                if isinstance(said, tuple):
                    self.say(said[0], error(*said, "as the script has it"))
                    return
                status, body = outer.emulator.ask("POST", self.path, json.loads(text))
                if said == "lost":
                    self.close_connection = True
                    return
                self.say(status, body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if certificate else 'http'}://localhost:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()
        world.stack.callback(self.close)

    def handle_error(self, request, client_address):
        """A relay that is killed leaves broken connections."""

    def close(self):
        self.shutdown()
        self.server_close()

    def why_not(self, header):
        kind, _, token = header.partition(" ")
        with self.lock:
            if kind != "Bearer" or token in self.refused:
                return "Request had invalid authentication credentials."
            if token not in self.good:
                why = self.key.why_not(token, self.folder)
                if why:
                    return why
                self.good[token] = time.time()
            return None

    def revoke(self):
        """No token that was shown so far is good any more."""
        with self.lock:
            self.refused |= set(self.good)
            self.good = {}


def error(status, code, words):
    return {"error": {"code": status, "message": words, "status": code}}


def emulator(world):
    """Started; skips the test where it is not installed."""
    try:
        return Emulator(world).start()
    except Skip as why:
        raise Skip(f"{why}, or no java") from None
