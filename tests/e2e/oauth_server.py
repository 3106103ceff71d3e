# SPDX-License-Identifier: Apache-2.0
"""An OAuth 2.0 server (Authlib's, in Flask) with one client, and beside it a receiver of webhooks that lets nobody in without one of its
tokens. oauth.py runs it with the interpreter of clients.py. Usage: oauth_server.py PORT"""
import base64
import collections
import json
import os
import sys
import threading
import time
import urllib.parse

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback
from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc6750 import BearerTokenGenerator, BearerTokenValidator
from flask import Flask, Response, jsonify, request

app, lock = Flask(__name__), threading.Lock()
tokens, counts, received = {}, collections.Counter(), []
# life: what the server says of a token; revoked: tokens that were issued before this time are none any more
# subject: tokens are JWTs of that subject that nobody has signed, as Kafka's test mechanism takes them
rules = {"life": 3600, "revoked": 0.0, "status": 0, "deny": False, "delay": 0.0, "text": "", "subject": ""}


class Client(ClientMixin):
    client_id = "relay@shop"

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return None

    def get_allowed_scope(self, scope):
        return scope if scope == "hooks:write" else ""

    def check_redirect_uri(self, redirect_uri):
        return False

    def check_client_secret(self, client_secret):
        # Authlib does not undo the encoding that RFC 6749, 2.3.1, wants in the header
        return os.environ["CLIENT_SECRET"] in (client_secret, urllib.parse.unquote_plus(client_secret))

    def check_endpoint_auth_method(self, method, endpoint):
        counts["by " + method] += 1
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type):
        return False

    def check_grant_type(self, grant_type):
        return grant_type == "client_credentials"


class Token(TokenMixin):
    def __init__(self, made):
        self.made, self.at = made, time.time()

    def check_client(self, client):
        return True

    def get_scope(self):
        return self.made.get("scope", "")

    def get_expires_in(self):
        return self.made["expires_in"]

    def is_expired(self):
        return time.time() >= self.at + self.made["expires_in"]

    def is_revoked(self):
        return self.at < rules["revoked"]


class Grant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]


def save_token(made, _):
    with lock:
        tokens[made["access_token"]] = Token(made)


def make_token(**_):
    if not rules["subject"]:
        return "token-" + os.urandom(24).hex()
    now = int(time.time())
    claims = {"sub": rules["subject"], "iat": now, "exp": now + rules["life"], "jti": os.urandom(8).hex()}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join([*parts, ""])


server = AuthorizationServer(app, query_client=lambda name: Client() if name in (Client.client_id, "relay%40shop") else None,
                             save_token=save_token)
server.register_grant(Grant)
server.register_token_generator("default", BearerTokenGenerator(make_token, expires_generator=lambda *_: rules["life"]))


class Validator(BearerTokenValidator):
    def authenticate_token(self, token_string):
        return tokens.get(token_string)


require_oauth = ResourceProtector()
require_oauth.register_token_validator(Validator())


@app.post("/token")
def issue():
    counts["token"] += 1
    time.sleep(rules["delay"])
    if rules["status"]:
        return Response(rules["text"], rules["status"])
    return server.create_token_response()


@app.post("/hooks/<name>")
def hook(name):
    counts["hook"] += 1
    try:
        with require_oauth.acquire("hooks:write"):
            assert current_token
            if rules["deny"]:
                counts["denied"] += 1
                return Response("no", 401)
    except Exception as why:  # pylint: disable=broad-except
        counts["denied"] += 1
        raise why
    with lock:
        received.append([request.headers["webhook-id"], name])
    return Response("", 204)


@app.post("/rules")
def change():
    rules.update(json.loads(request.data))
    if rules["revoked"] is True:
        rules["revoked"] = time.time()
    return jsonify(rules)


@app.get("/seen")
def seen():
    with lock:
        return jsonify({"counts": counts, "received": received})


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
