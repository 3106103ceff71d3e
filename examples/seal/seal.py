# SPDX-License-Identifier: Apache-2.0
"""Seal a payload for hikyaku's outbox (docs/sealed-format.md). Needs the package cryptography.

    python3 seal.py KEY-ID KEY-FILE STORE MESSAGE-ID < payload
"""
import base64
import hashlib
import os
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def seal(key_id: str, key: bytes, store: str, message_id: str, payload: bytes) -> str:
    """The value for the column payload; the row's encoding is 'sealed', and its message_id is this one."""
    place = f"{store}\noutbox.payload\n{message_id}".encode()
    check = hashlib.sha256(f"hikyaku-check/1\n{store}\n".encode() + key).hexdigest()[:8]
    data_key, key_nonce, nonce = os.urandom(32), os.urandom(12), os.urandom(12)
    wrapped = AESGCM(key).encrypt(key_nonce, data_key, f"hikyaku-key/1\n{key_id}\n".encode() + place)
    sealed = AESGCM(data_key).encrypt(nonce, payload, b"hikyaku-data/1\n" + place)
    body = base64.b64encode(key_nonce + wrapped + nonce + sealed).decode()
    return f"hk1.{key_id}.{check}.{body}"


if __name__ == "__main__":
    key_id, key_file, store, message_id = sys.argv[1:5]
    with open(key_file, encoding="ascii") as file:
        key = base64.b64decode(file.read().strip(), validate=True)
    sys.stdout.write(seal(key_id, key, store, message_id, sys.stdin.buffer.read()))
