#!/usr/bin/env python3
"""An independent checker of BEM bundles, written from docs/formats/bundle.md alone. It needs nothing but Python.

    bundle_check.py FILE [--public-key HEX]   check one bundle
    bundle_check.py --jobs                    file names on standard input, one answer a line

It shares no code with the Rust crates. It checks

  1. the spelling: one JSON object, keys in order, whole numbers, no spaces, a newline at the end;
  2. the digest of the body and the Ed25519 signature of the run's key (RFC 8032, written out below);
  3. the checkpoint's signature by the same key, and that genesis (with that key), the unit's beginning (with the task),
     its end (with the circuit's SHA-256, the hypothesis and the steps) and the naming of the file of figures are entries
     under the checkpoint's root (RFC 6962 audit paths);
  4. that figures, seed, warnings and features are those of that file, for this circuit; in formats before the fourth the
     figures alone, because the runs that they come from name nothing else;
  5. that the circuit does what the rules state, for every input: it writes the clauses down anew from circuit and rules
     and checks the LRAT proof against them by unit propagation, or tries every case of at most 20 inputs;
  6. that no forbidden action is ever taken, whatever is remembered and whatever the bits are that a pair leaves free, in
     the same two ways;
  7. where features have names, that they have their one form and fill the bits that are seen.

It does not check that the whole history is sound (`bem verify` and `python/tlog_verify.py` do that), nor the world.
Exit 0 and "accepted ..." if all of it holds, exit 1 and "refused: ..." otherwise.
"""

import base64
import hashlib
import json
import re
import struct
import sys

BYTES_MAX = 64 << 20
EXHAUSTIVE_INPUTS_MAX = 20
GATES_MAX = 1 << 20
VARIABLES_MAX = 1 << 24


class Refused(Exception):
    pass


def need(condition, reason):
    if not condition:
        raise Refused(reason)


# ---------------------------------------------------------------- Ed25519, RFC 8032

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def x_of(y, sign):
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def decoded(data):
    number = int.from_bytes(data, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    x = x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def added(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = added(result, point)
        point = added(point, point)
        scalar >>= 1
    return result


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = decoded(BASE_Y.to_bytes(32, "little"))
NEUTRAL = (0, 1, 1, 0)


def verify(key, message, signature):
    if len(key) != 32 or len(signature) != 64:
        return False
    a, r = decoded(key), decoded(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= ORDER:
        return False
    # Keys and commitments of small order would make one signature fit many messages.
    if same(times(8, a), NEUTRAL) or same(times(8, r), NEUTRAL):
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    return same(times(s, BASE), added(r, times(h, a)))


# ---------------------------------------------------------------- bytes and trees


def sha256(data):
    return hashlib.sha256(data).digest()


def unhex(text, reason):
    need(isinstance(text, str) and all(c in "0123456789abcdef" for c in text) and len(text) % 2 == 0, reason)
    return bytes.fromhex(text)


class Cursor:
    """Little-endian fields, lengths of 32 bits."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(self.at + count <= len(self.data), "an entry is too short")
        part = self.data[self.at : self.at + count]
        self.at += count
        return part

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def text(self):
        try:
            return self.take(self.number("I")).decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("an entry holds text that is not UTF-8")

    def finish(self):
        need(self.at == len(self.data), "an entry is too long")


def included(leaf, index, size, root, path):
    """RFC 6962 section 2.1.1, by its recursive definition."""

    def top(index, size, rest):
        if size == 1:
            return leaf
        need(rest, "an audit path is too short")
        split = 1 << ((size - 1).bit_length() - 1)
        if index < split:
            return sha256(b"\x01" + top(index, split, rest[:-1]) + rest[-1])
        return sha256(b"\x01" + rest[-1] + top(index - split, size - split, rest[:-1]))

    def length(index, size):
        steps = 0
        while size > 1:
            split = 1 << ((size - 1).bit_length() - 1)
            index, size = (index, split) if index < split else (index - split, size - split)
            steps += 1
        return steps

    if not 0 <= index < size or len(path) != length(index, size):
        return False
    return top(index, size, path) == root


def read_checkpoint(note, key):
    body, empty, lines = note.partition("\n\n")
    need(empty, "the checkpoint has no empty line")
    parts = (body + "\n").split("\n")
    need(len(parts) == 5 and parts[4] == "", "the checkpoint has another form")
    origin, size, root, chain = parts[:4]
    need(origin.startswith("bem.ledger/") and chain.startswith("chain "), "the checkpoint has another form")
    need(size.isdigit() and str(int(size)) == size, "the checkpoint's size is no number")
    identifier = sha256(origin.encode() + b"\n\x01" + key)[:4]
    *signatures, end = lines.split("\n")
    need(end == "" and len(signatures) <= 16, "the checkpoint's signatures have another form")
    found = None
    for line in signatures:
        words = line.split(" ")
        need(len(words) == 3 and words[0] == "\u2014" and words[1], "a signature has another form")
        data = base64.b64decode(words[2], validate=True)
        need(len(data) > 4 and base64.b64encode(data).decode() == words[2], "a signature has another form")
        if found is None and words[1] == origin and data[:4] == identifier:
            found = data[4:]
    need(found is not None and verify(key, (body + "\n").encode(), found), "the checkpoint's signature does not hold")
    return origin[len("bem.ledger/") :], int(size), base64.b64decode(root, validate=True)


def logged(entry, size, root):
    data = unhex(entry["entry"], "an entry is not hexadecimal")
    path = [unhex(part, "an audit path is not hexadecimal") for part in entry["path"]]
    index = entry["index"]
    need(included(sha256(b"\x00" + data), index, size, root, path), f"entry {index} is not under the checkpoint's root")
    cursor = Cursor(data)
    need(cursor.number("B") == 2, "an entry of another version")
    return cursor.number("B"), cursor


def event(entry, size, root, code):
    kind, cursor = logged(entry, size, root)
    need(kind == 10, "an entry is no event")
    cursor.number("Q")
    need(cursor.number("H") == code, "an entry is another event")
    values = [cursor.number("q") for _ in range(min(cursor.number("I"), 1024))]
    payload = cursor.take(cursor.number("I"))
    cursor.finish()
    return values, payload


# ---------------------------------------------------------------- circuit and claims

AND, OR, XOR, AND_NOT = 0, 1, 2, 3
OPERATIONS = [
    lambda a, b, ones: a & b,
    lambda a, b, ones: a | b,
    lambda a, b, ones: a ^ b,
    lambda a, b, ones: a & ~b & ones,
    lambda a, b, ones: ~(a & b) & ones,
    lambda a, b, ones: ~(a | b) & ones,
    lambda a, b, ones: ~(a ^ b) & ones,
    lambda a, b, ones: (~a | b) & ones,
]


def is_number(value, low, high):
    return type(value) is int and low <= value <= high


class Gates:
    def __init__(self, policy):
        self.inputs = len(policy["reads"]) + policy["memory_bits"]
        self.gates = [tuple(gate) for gate in policy["gates"]]

    def gate(self, op, a, b):
        self.gates.append((op, a, b))
        need(len(self.gates) <= GATES_MAX, "a claim of too many gates")
        return 1 + self.inputs + len(self.gates)

    def input(self, place):
        need(is_number(place, 0, self.inputs - 1), "a rule speaks of an input that is none")
        return 2 + place

    def invert(self, signal):
        return self.gate(XOR, signal, 1)

    def condition(self, condition):
        fact, value = condition["fact"], condition["value"]
        of = [self.input(place) for place in condition["of"]]
        than = [self.input(place) for place in condition["than"]]
        need((fact in ("less", "same")) == bool(than), "a fact has a wrong second number")
        need(fact in ("at_least", "equals", "count") or value == 0, "a fact has a value that it has not")
        need(is_number(value, 0, 2**64 - 1) and type(condition["holds"]) is bool, "a condition has another form")
        if fact == "bit":
            need(len(of) == 1, "the fact bit is about one input")
            signal = of[0]
        elif fact == "at_least":
            signal = 1
            for place, bit in enumerate(of):
                signal = self.gate(AND if value >> place & 1 else OR, bit, signal)
        elif fact == "equals":
            signal = 1
            for place, bit in enumerate(of):
                bit = bit if value >> place & 1 else self.invert(bit)
                signal = self.gate(AND, signal, bit)
        elif fact in ("less", "same"):
            need(len(of) == len(than), "numbers of different width are compared")
            less, equal = 0, 1
            for a, b in zip(of, than):
                differ = self.gate(XOR, a, b)
                above = self.gate(AND, differ, b)
                kept = self.gate(AND_NOT, less, differ)
                less = self.gate(OR, above, kept)
                equal = self.gate(AND_NOT, equal, differ)
            signal = less if fact == "less" else equal
        elif fact == "odd":
            signal = 0
            for bit in of:
                signal = self.gate(XOR, signal, bit)
        elif fact == "count":
            need(value <= len(of), "a count of more inputs than there are")
            reached = [1] + [0] * value
            for bit in of:
                for number in range(value, 0, -1):
                    more = self.gate(AND, reached[number - 1], bit)
                    reached[number] = self.gate(OR, reached[number], more)
            signal = reached[value]
        else:
            raise Refused(f"there is no fact {fact!r}")
        return signal if condition["holds"] else self.invert(signal)

    def rules(self, rules, outputs):
        def is_answer(bits):
            return len(bits) == outputs and all(is_number(bit, 0, 1) for bit in bits)

        need(is_answer(rules["otherwise"]), "a list of rules has a wrong answer")
        signals = list(rules["otherwise"])
        for rule in reversed(rules["rules"]):
            need(is_answer(rule["then"]), "a rule has a wrong answer")
            applies = 1
            for condition in rule["when"]:
                met = self.condition(condition)
                applies = self.gate(AND, applies, met)
            for place, bit in enumerate(rule["then"]):
                signals[place] = self.gate(OR if bit else AND_NOT, signals[place], applies)
        return signals

    def clauses(self):
        clauses = [[-1], [2]]
        for place, (op, a, b) in enumerate(self.gates):
            gate = 3 + self.inputs + place
            for left in (0, 1):
                for right in (0, 1):
                    if a == b and left != right:
                        continue
                    clause = [-(a + 1) if left else a + 1]
                    if a != b:
                        clause.append(-(b + 1) if right else b + 1)
                    clause.append(gate if OPERATIONS[op](left, right, 1) else -gate)
                    clauses.append(clause)
        return clauses

    def values(self, fixed):
        """Every signal for every value of the free inputs, one bit a case."""
        free = [place for place, value in enumerate(fixed) if value is None]
        need(len(free) <= EXHAUSTIVE_INPUTS_MAX, "too many free inputs for every case")
        cases = 1 << len(free)
        ones = (1 << cases) - 1
        values = [0, ones] + [ones if value else 0 for value in fixed]
        for number, place in enumerate(free):
            # Blocks of 2^number zeros and ones in turn.
            block = 1 << number
            pattern = ((1 << block) - 1) << block
            width = 2 * block
            while width < cases:
                pattern |= pattern << width
                width *= 2
            values[2 + place] = pattern
        for op, a, b in self.gates:
            values.append(OPERATIONS[op](values[a], values[b], ones))
        return values, ones


def check_lrat(clauses, proof):
    known = dict(enumerate(clauses, 1))
    last, front, is_over = len(clauses), 1, False
    limit = len(clauses) + max(len(proof.encode()), 1 << 16)
    need(proof.endswith("\n"), "the proof does not end with a line")
    for line in proof[:-1].split("\n"):
        words = line.split(" ")
        try:
            numbers = [int(word) for word in words if word != "d"]
        except ValueError:
            raise Refused("a proof with a word that is no number")
        need(len(numbers) >= 2 and numbers[-1] == 0, "a step of the proof does not end with 0")
        need(all(abs(number) < 2**63 for number in numbers), "a number out of range")
        need(all(word == "d" or word == str(int(word)) for word in words), "a number that is spelled in another way")
        if words[1] == "d":
            need(words.count("d") == 1 and numbers[0] == front and 0 not in numbers[1:-1], "a deletion has another form")
            for number in numbers[1:-1]:
                need(known.pop(number, None) is not None, f"clause {number} is not known")
            continue
        need("d" not in words and 0 in numbers[1:-1], "a step of the proof has another form")
        end = numbers.index(0, 1)
        identifier, clause, hints = numbers[0], numbers[1:end], numbers[end + 1 : -1]
        need(identifier > last, "the numbers of clauses do not grow")
        need(identifier <= limit, "the number of a clause is beyond what the proof needs")
        need(all(abs(literal) <= VARIABLES_MAX for literal in clause), "a variable out of range")
        need(0 not in hints, "a step of the proof has another form")
        false = set(clause)
        follows = any(-literal in false for literal in clause)
        for hint in hints:
            if follows:
                break
            need(hint in known, f"clause {hint} is not known")
            left = {literal for literal in known[hint] if literal not in false}
            need(len(left) <= 1, f"hint {hint} is not unit")
            follows = not left
            false.update(-literal for literal in left)
        need(follows, f"clause {identifier} does not follow")
        is_over = is_over or not clause
        last = front = identifier
        known[identifier] = clause
    need(is_over, "the proof does not reach the empty clause")


def check_policy(policy):
    need(is_number(policy["actions"], 1, 65535), "actions out of range")
    need(is_number(policy["observation_bits"], 0, 65535), "observation bits out of range")
    need(is_number(policy["memory_bits"], 0, 1 << 20), "memory bits out of range")
    reads = policy["reads"]
    need(all(is_number(bit, 0, policy["observation_bits"] - 1) for bit in reads), "a bit is read that is none")
    need(all(a < b for a, b in zip(reads, reads[1:])), "bits are not read in order")
    signals = 2 + len(reads) + policy["memory_bits"]
    for gate in policy["gates"]:
        need(len(gate) == 3 and is_number(gate[0], 0, 7), "a gate has another form")
        need(is_number(gate[1], 0, signals - 1) and is_number(gate[2], 0, signals - 1), "a gate reads what comes later")
        signals += 1
    need(all(is_number(output, 0, signals - 1) for output in policy["outputs"]), "an output is no signal")
    code = (policy["actions"] - 1).bit_length()
    need(len(policy["outputs"]) == code + policy["memory_bits"], "another number of outputs than the action and memory")
    return code


def policy_digest(policy):
    """SHA-256 of the canonical bytes, by which the history names a circuit."""
    data = struct.pack("<HII", policy["actions"], policy["memory_bits"], len(policy["reads"]))
    data += b"".join(struct.pack("<H", bit) for bit in policy["reads"])
    data += struct.pack("<II", len(policy["reads"]) + policy["memory_bits"], len(policy["gates"]))
    data += b"".join(struct.pack("<BII", *gate) for gate in policy["gates"])
    data += struct.pack("<I", len(policy["outputs"]))
    data += b"".join(struct.pack("<I", output) for output in policy["outputs"])
    return sha256(data)


def check_statement(body, code):
    policy, statement, certificate = body["policy"], body["statement"], body["certificates"]["statement"]
    need((statement is None) == (certificate is None), "a statement and its certificate come together")
    if statement is None:
        return "no statement"
    need(len(statement["memory"]) == policy["memory_bits"], "one list of rules for every memory bit")
    gates = Gates(policy)
    stated = gates.rules(statement["action"], code)
    for rules in statement["memory"]:
        stated += gates.rules(rules, 1)
    pairs = list(zip(policy["outputs"], stated))
    if certificate["kind"] == "exhaustive":
        need(certificate["proof"] == "", "every case is tried without a proof")
        values, _ = gates.values([None] * gates.inputs)
        need(all(values[is_] == values[said] for is_, said in pairs), "the circuit does not do what is stated")
        return f"statement by every case of {gates.inputs} inputs"
    need(certificate["kind"] == "lrat", "a certificate of another kind")
    differ = [gates.gate(XOR, is_, said) for is_, said in pairs]
    check_lrat(gates.clauses() + [[signal + 1 for signal in differ]], certificate["proof"])
    return "statement by LRAT proof"


def check_forbidden(body, code):
    policy = body["policy"]
    certificates = body["certificates"]["forbidden"]
    need(len(body["forbidden"]) == len(certificates), "another number of certificates than forbidden pairs")
    is_free = any("-" in pair["observation"] for pair in body["forbidden"])
    is_fitting = body["format"] == "bem-bundle-4" or is_free == (body["format"] == "bem-bundle-3")
    need(is_fitting, "bits that are free belong to format 3, which has some, and to format 4")
    for pair, certificate in zip(body["forbidden"], certificates):
        seen, action = pair["observation"], pair["action"]
        need(len(seen) == policy["observation_bits"] and set(seen) <= {"0", "1", "-"}, "a forbidden observation has another form")
        need(is_number(action, 0, policy["actions"] - 1), "a forbidden action is none")
        gates = Gates(policy)
        fixed = [{"0": False, "1": True, "-": None}[seen[bit]] for bit in policy["reads"]] + [None] * policy["memory_bits"]
        wanted = [(output, action >> bit & 1) for bit, output in enumerate(policy["outputs"][:code])]
        if certificate["kind"] == "exhaustive":
            need(certificate["proof"] == "", "every case is tried without a proof")
            values, ones = gates.values(fixed)
            taken = ones
            for output, bit in wanted:
                taken &= values[output] if bit else ~values[output]
            need(taken == 0, f"action {action} can be taken for {seen}")
            continue
        need(certificate["kind"] == "lrat", "a certificate of another kind")
        clauses = gates.clauses()
        clauses += [[3 + place if value else -(3 + place)] for place, value in enumerate(fixed) if value is not None]
        clauses += [[output + 1 if bit else -(output + 1)] for output, bit in wanted]
        check_lrat(clauses, certificate["proof"])
    return f"{len(certificates)} forbidden pairs"


# ---------------------------------------------------------------- what bits mean

DECIMAL = re.compile(r"(?:0|-?(?:[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.[0-9]*[1-9]))", re.ASCII)
SIZE_MAX = 10**33  # 10^15, in units of 10^-18
FEATURE = {"name", "kind", "range", "of", "code", "thresholds", "places"}
CODES = {"number": ("steps", "levels"), "choice": ("index", "words"), "bit": ("bit",)}


def decimal(text):
    """A decimal in units of 10^-18; it has one spelling."""
    need(isinstance(text, str) and DECIMAL.fullmatch(text), "a feature has a number of another form")
    whole, _, part = text.partition(".")
    need(len(part) <= 18, "a feature has a number of too many digits")
    number = int(whole + part.ljust(18, "0"))
    need(abs(number) <= SIZE_MAX, "a feature has a number that is too large")
    return number


def feature_bits(feature):
    need(set(feature) == FEATURE, "a feature has other parts")
    kind, code, words, places = feature["kind"], feature["code"], feature["of"], feature["places"]
    need(isinstance(feature["name"], str) and feature["name"], "a feature has no name")
    need(kind in CODES and (code == "unread" or code in CODES[kind]), "a feature has a code that does not fit its kind")
    span = [decimal(text) for text in feature["range"]]
    thresholds = [decimal(text) for text in feature["thresholds"]]
    need(len(span) == 2 and span[0] < span[1] if kind == "number" else not span, "a feature has another range")
    need(all(isinstance(word, str) for word in words) and len(set(words)) == len(words), "a feature has a word twice")
    need(bool(words) == (kind == "choice"), "a feature has other words")
    need(code in ("steps", "levels") or not thresholds, "a feature has thresholds that nothing is compared with")
    need(len(thresholds) <= 255, "a feature has too many thresholds")
    need(all(a < b for a, b in zip(thresholds, thresholds[1:])), "thresholds do not rise")
    need(code == "words" or not places, "a feature has places that nothing is compared with")
    need(all(is_number(place, 0, len(words) - 1) for place in places), "a feature has no such word")
    need(all(a < b for a, b in zip(places, places[1:])), "places of words do not rise")
    return {"steps": len(thresholds), "levels": len(thresholds).bit_length(), "index": (len(words) - 1).bit_length(),
            "words": len(places), "bit": 1, "unread": 0}[code]


def check_features(body):
    if "features" not in body:
        return
    features = body["features"]
    need(isinstance(features, list) and features, "there are no features")
    bits = sum(feature_bits(feature) for feature in features)
    need(len({feature["name"] for feature in features}) == len(features), "two features have one name")
    need(bits == body["policy"]["observation_bits"], "the features have another number of bits than are seen")


# ---------------------------------------------------------------- the whole file

FORMATS = ("bem-bundle-1", "bem-bundle-2", "bem-bundle-3", "bem-bundle-4")
PARTS = {
    "": {"body", "digest", "signature"},
    "body": {"format", "policy", "statement", "forbidden", "certificates", "measured", "evaluation", "provenance"},
    "policy": {"actions", "observation_bits", "reads", "memory_bits", "gates", "outputs"},
    "provenance": {
        "task", "hypothesis", "seed", "steps", "warnings", "public_key", "checkpoint", "genesis", "unit_begin",
        "unit_end", "evaluation",
    },
}


def spelled(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def no_fraction(text):
    raise Refused(f"a number that is not whole: {text}")


def check_provenance(body, key):
    provenance = body["provenance"]
    instance, size, root = read_checkpoint(provenance["checkpoint"], key)
    kind, genesis = logged(provenance["genesis"], size, root)
    need(kind == 0 and provenance["genesis"]["index"] == 0, "the first entry is not genesis")
    need(genesis.take(32).hex() == instance, "the checkpoint is of another history")
    genesis.take(32)
    genesis.text()
    need(genesis.take(32) == key, "genesis names another key")
    genesis.finish()
    begin, payload = event(provenance["unit_begin"], size, root, 66)
    shape = Cursor(payload)
    cursor = Cursor(shape.take(shape.number("I")))
    need(cursor.number("B") == 1, "a unit of another version")
    cursor.take(8)
    cursor.take(8 if cursor.number("B") == 0 else 4)
    cursor.take(16)
    need(cursor.text() == provenance["task"], "the history names another task")
    cursor.finish()
    need(shape.number("H") == body["policy"]["observation_bits"], "the history names another width of what is seen")
    need(shape.number("H") == body["policy"]["actions"], "the history names another number of actions")
    end, payload = event(provenance["unit_end"], size, root, 64)
    need(provenance["unit_begin"]["index"] < provenance["unit_end"]["index"], "the unit ends before it begins")
    need(len(begin) == 5 and end[:5] == begin, "the unit's beginning and end are of different units")
    cursor = Cursor(payload)
    need(cursor.take(32) == policy_digest(body["policy"]), "the history names another circuit")
    cursor.take(32)
    need(cursor.text() == provenance["hypothesis"], "the history names another hypothesis")
    cursor.finish()
    need(len(end) > 8 and end[8] == provenance["steps"], "the history names other steps")
    return size, root


def check_figures(body, size, root):
    is_named = body["format"] == "bem-bundle-4"
    parts = [body["measured"], body["evaluation"], body["provenance"]["evaluation"]]
    if all(part is None for part in parts) and not is_named:
        return "no figures"
    needed = parts[1:] if is_named else parts
    need(all(part is not None for part in needed), "figures, their file and its entry come together")
    _, payload = event(parts[2], size, root, 67)
    cursor = Cursor(payload)
    digest, name = cursor.take(32), cursor.text()
    cursor.finish()
    need(name == "evaluation.json" and digest == sha256(parts[1].encode()), "the history names another file of figures")
    file = json.loads(parts[1])
    wanted = "bem-evaluation-2" if is_named else "bem-evaluation-1"
    need(file["format"] == wanted, f"the file of figures has another format than {wanted}, which this format comes with")
    circuit = policy_digest(body["policy"]).hex()
    for policy in file["policies"]:
        if policy["circuit"] == circuit and policy["task"] == body["provenance"]["task"]:
            need(policy["measured"] == parts[0], "the file of figures says something else")
            if is_named:
                provenance = body["provenance"]
                need(is_number(provenance["seed"], 0, 2**64 - 1), "the seed is no seed")
                need(policy["seed"] == provenance["seed"], "the file of figures says another seed")
                need(policy["warnings"] == provenance["warnings"], "the file of figures says other warnings")
                need(policy["features"] == body.get("features"), "the file of figures says other features")
                return "figures, seed, warnings, features"
            return "figures (seed, warnings and features are only signed in this format)"
    raise Refused("the file of figures does not name this policy")


def may_name(body):
    """Format 2 says what its bits mean; formats 3 and 4 may."""
    return body["format"] == "bem-bundle-2" or body["format"] in ("bem-bundle-3", "bem-bundle-4") and "features" in body


def check(data, public_key=None):
    need(len(data) <= BYTES_MAX, "the file is too large")
    text = data.decode("utf-8")
    bundle = json.loads(text, parse_float=no_fraction, parse_constant=no_fraction)
    need(isinstance(bundle, dict) and spelled(bundle) + "\n" == text, "not in its one spelling")
    need(set(bundle) == PARTS[""], "the file has other parts")
    body = bundle["body"]
    need(body["format"] in FORMATS, f"format {body['format']!r}; {', '.join(FORMATS)} are known")
    for part, value in (("body", body), ("policy", body["policy"]), ("provenance", body["provenance"])):
        named = {"features"} if part == "body" and may_name(body) else set()
        need(set(value) == PARTS[part] | named, f"{part} has other parts")
    key = unhex(body["provenance"]["public_key"], "the public key is not hexadecimal")
    need(public_key is None or public_key == key.hex(), "signed by another key")
    spelling = spelled(body).encode()
    need(sha256(spelling).hex() == bundle["digest"], "the digest is not that of the body")
    signature = unhex(bundle["signature"], "the signature is not hexadecimal")
    need(verify(key, b"bem bundle 1\n" + spelling, signature), "the bundle's signature does not hold")
    code = check_policy(body["policy"])
    check_features(body)
    size, root = check_provenance(body, key)
    found = [check_figures(body, size, root), check_statement(body, code), check_forbidden(body, code)]
    return f"accepted {body['provenance']['task']}: signature, history, {', '.join(found)}; key {key.hex()}"


def answer(path, public_key=None):
    try:
        with open(path, "rb") as file:
            return check(file.read(BYTES_MAX + 1), public_key)
    except (Refused, OSError) as error:
        return f"refused: {error}"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, RecursionError) as error:
        return f"refused: another form ({type(error).__name__}: {error})"


def main(words):
    if words == ["--jobs"]:
        for line in sys.stdin:
            print(answer(line.strip()), flush=True)
        return 0
    key = None
    if len(words) == 3 and words[1] == "--public-key":
        key = words[2]
        words = words[:1]
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    verdict = answer(words[0], key)
    print(verdict)
    return 0 if verdict.startswith("accepted") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
