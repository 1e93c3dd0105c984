#!/usr/bin/env python3
"""An independent verifier of BEM ledgers, written from docs/formats/ledger.md alone.

It shares no code with the Rust crates: SHA-256 comes from Python's standard library, ed25519 is written out below
from RFC 8032, trees and proofs from RFC 6962 by their recursive definitions.

    tlog_verify.py ledger DIR [CHECKPOINT]   re-derive chain, tree and segment headers; check the signature
    tlog_verify.py cases FILE                check proofs and notes given as JSON lines

Each line of FILE is one JSON object; the answer is one line with `yes` or `no`.
"""

import base64
import hashlib
import json
import os
import struct
import sys

# ---------------------------------------------------------------- ed25519, RFC 8032 section 6

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def _recover_x(y, sign):
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    return P - x if x & 1 != sign else x


def _point(x, y):
    return (x, y, 1, x * y % P)


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = _point(_recover_x(BASE_Y, 0), BASE_Y)


def _add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _multiply(scalar, p):
    q = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            q = _add(q, p)
        p = _add(p, p)
        scalar >>= 1
    return q


def _decompress(data):
    y = int.from_bytes(data, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    x = _recover_x(y, sign)
    return None if x is None else _point(x, y)


def ed25519_verify(public_key, message, signature):
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a, r = _decompress(public_key), _decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % L
    left, right = _multiply(s, BASE), _add(r, _multiply(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# ---------------------------------------------------------------- chain and tree


def sha256(data):
    return hashlib.sha256(data).digest()


def leaf_hash(data):
    return sha256(b"\x00" + data)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


def largest_power_below(n):
    return 1 << ((n - 1).bit_length() - 1)


def tree_root(leaves):
    """MTH of RFC 6962, section 2.1."""
    if not leaves:
        return sha256(b"")
    level = list(leaves)
    if len(level) == 1:
        return level[0]
    k = largest_power_below(len(level))
    return node_hash(tree_root(level[:k]), tree_root(level[k:]))


def peaks(leaves):
    result, start, size = [], 0, len(leaves)
    while size:
        k = 1 << (size.bit_length() - 1)
        result.append(tree_root(leaves[start:start + k]))
        start, size = start + k, size - k
    return result


def root_from_inclusion(leaf, index, size, proof):
    """Follows PATH of RFC 6962, section 2.1.1, backwards. None if the proof has the wrong length."""
    if index >= size:
        return None
    if size == 1:
        return leaf if not proof else None
    if not proof:
        return None
    k = largest_power_below(size)
    if index < k:
        below = root_from_inclusion(leaf, index, k, proof[:-1])
        return None if below is None else node_hash(below, proof[-1])
    below = root_from_inclusion(leaf, index - k, size - k, proof[:-1])
    return None if below is None else node_hash(proof[-1], below)


def roots_from_consistency(old, new, proof, old_root, whole=True):
    """Follows SUBPROOF of RFC 6962, section 2.1.2, backwards: (old root, new root), or None."""
    if old == new:
        if whole:
            return (old_root, old_root) if not proof else None
        return (proof[0], proof[0]) if len(proof) == 1 else None
    if not proof:
        return None
    k = largest_power_below(new)
    if old <= k:
        below = roots_from_consistency(old, k, proof[:-1], old_root, whole)
        return None if below is None else (below[0], node_hash(below[1], proof[-1]))
    below = roots_from_consistency(old - k, new - k, proof[:-1], old_root, False)
    return None if below is None else (node_hash(proof[-1], below[0]), node_hash(proof[-1], below[1]))


def inclusion_holds(leaf, index, size, root, proof):
    return len(proof) <= 64 and root_from_inclusion(leaf, index, size, proof) == root


def consistency_holds(old, new, old_root, new_root, proof):
    if old > new or len(proof) > 64:
        return False
    if old == 0:
        return not proof and old_root == sha256(b"")
    return roots_from_consistency(old, new, proof, old_root) == (old_root, new_root)


# ---------------------------------------------------------------- checkpoint


class Refused(Exception):
    pass


def require(condition, reason):
    if not condition:
        raise Refused(reason)


def strict_base64(text):
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Refused(f"not base64: {error}") from None
    require(base64.b64encode(data).decode() == text, "base64 with a second spelling")
    return data


def parse_checkpoint(data):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("the note is not UTF-8") from None
    require("\n\n" in text, "no empty line")
    body, signatures = text.split("\n\n", 1)
    lines = body.split("\n")
    require(len(lines) == 4, "a checkpoint has four lines")
    origin, size, root, chain = lines
    require(origin.startswith("bem.ledger/") and len(origin) == 75, "origin")
    instance = origin[11:]
    require(all(c in "0123456789abcdef" for c in instance), "instance")
    require(size.isascii() and size.isdigit() and (size == "0" or size[0] != "0") and int(size) < 2**64, "size")
    require(chain.startswith("chain "), "chain line")
    root, head = strict_base64(root), strict_base64(chain[6:])
    require(len(root) == 32 and len(head) == 32, "hashes have 32 bytes")
    require(signatures.endswith("\n"), "the note ends with a line feed")
    parsed = []
    for line in signatures[:-1].split("\n"):
        parts = line.split(" ")
        require(len(parts) == 3 and parts[0] == "\u2014" and parts[1], "signature line")
        parsed.append((parts[1], strict_base64(parts[2])))
    return {"text": (body + "\n").encode(), "origin": origin, "instance": bytes.fromhex(instance),
            "size": int(size), "root": root, "head": head, "signatures": parsed}


def checkpoint_signed_by(note, public_key):
    key_id = sha256(note["origin"].encode() + b"\n\x01" + public_key)[:4]
    return any(name == note["origin"] and data[:4] == key_id and ed25519_verify(public_key, note["text"], data[4:])
               for name, data in note["signatures"])


# ---------------------------------------------------------------- ledger


def parse_genesis(entry):
    require(entry[:2] == b"\x02\x00" and len(entry) >= 102, "the first entry is not genesis")
    instance, configuration = entry[2:34], entry[34:66]
    (length,) = struct.unpack_from("<I", entry, 66)
    require(length <= 256 and len(entry) == 70 + length + 32, "genesis has another length")
    return {"instance": instance, "configuration": configuration, "code": entry[70:70 + length].decode(),
            "public_key": entry[70 + length:]}


def read_entries(directory, size, instance):
    """Yields entries and checks every segment header against what the entries so far say."""
    leaves, head, number = [], sha256(b"bem/ledger/chain/1"), 0
    entries = []
    while len(leaves) < size:
        with open(os.path.join(directory, f"segment-{number:08}.log"), "rb") as file:
            data = file.read()
        roots = peaks(leaves)
        header = b"BEMSEGM1" + struct.pack("<IIQ", number, len(roots), len(leaves)) + instance + head + b"".join(roots)
        require(data.startswith(header), f"the header of segment {number} does not fit")
        position = len(header)
        while position < len(data) and len(leaves) < size:
            require(position + 4 <= len(data), "the file ends inside a length")
            (length,) = struct.unpack_from("<I", data, position)
            require(length <= 1 << 20 and position + 4 + length <= len(data), "the file ends inside an entry")
            entry = data[position + 4:position + 4 + length]
            position += 4 + length
            leaf = leaf_hash(entry)
            head = sha256(b"\x02" + head + leaf)
            leaves.append(leaf)
            entries.append(entry)
        number += 1
    return entries, leaves, head


def verify_ledger(directory, anchor_path=None):
    with open(os.path.join(directory, "checkpoint"), "rb") as file:
        note = parse_checkpoint(file.read())
    require(len(note["signatures"]) == 1, "the checkpoint has exactly one signature")
    entries, leaves, head = read_entries(directory, note["size"], note["instance"])
    genesis = parse_genesis(entries[0])
    require(genesis["instance"] == note["instance"], "another instance")
    require(checkpoint_signed_by(note, genesis["public_key"]), "the signature does not hold")
    require(tree_root(leaves) == note["root"], "the entries do not hash to the root")
    require(head == note["head"], "the entries do not hash to the chain head")
    verdict = "unanchored"
    if anchor_path:
        with open(anchor_path, "rb") as file:
            anchor = parse_checkpoint(file.read())
        require(checkpoint_signed_by(anchor, genesis["public_key"]), "the outside signature does not hold")
        require(anchor["size"] <= note["size"], "rolled back")
        require(tree_root(leaves[:anchor["size"]]) == anchor["root"], "another history")
        verdict = "ok"
    return verdict, len(entries), tree_root(leaves).hex(), head.hex()


# ---------------------------------------------------------------- command line


def digests(values):
    return [bytes.fromhex(value) for value in values]


def case_holds(case):
    kind = case["kind"]
    if kind == "inclusion":
        return inclusion_holds(bytes.fromhex(case["leaf"]), case["entry"], case["size"], bytes.fromhex(case["root"]),
                               digests(case["proof"]))
    if kind == "consistency":
        return consistency_holds(case["old"], case["new"], bytes.fromhex(case["old_root"]),
                                 bytes.fromhex(case["new_root"]), digests(case["proof"]))
    if kind == "checkpoint":
        try:
            return checkpoint_signed_by(parse_checkpoint(bytes.fromhex(case["note"])), bytes.fromhex(case["key"]))
        except Refused:
            return False
    raise SystemExit(f"unknown kind {kind!r}")


def main(arguments):
    if arguments[:1] == ["cases"] and len(arguments) == 2:
        with open(arguments[1], encoding="utf-8") as file:
            for line in file:
                print("yes" if case_holds(json.loads(line)) else "no")
        return 0
    if arguments[:1] == ["ledger"] and len(arguments) in (2, 3):
        try:
            verdict, entries, root, head = verify_ledger(*arguments[1:])
        except Refused as refused:
            print(json.dumps({"verdict": "broken", "reason": str(refused)}))
            return 1
        print(json.dumps({"verdict": verdict, "entries": entries, "root": root, "head": head}))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
