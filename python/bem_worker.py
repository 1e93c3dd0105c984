"""A worker of BEM's tool bus in pure Python: any function as a tool.

    from bem_worker import serve

    def count(request):
        return {"words": len(request["text"].split())}

    serve({"count": count})

The bus starts this program with BEM_BUS (the socket) and BEM_KIND (the tool's name in the catalog) in the environment. A
function gets what was asked and returns the answer: None, bool, int, str, bytes, lists and dicts of them. It may raise
ToolError(code, words); any other exception is the tool's own error. Only the standard library is needed, and libatomic
(Debian: libatomic1), for the compare-and-swap by which an answer is published.

The layout is that of crates/bem-tools/src/layout.rs. Clauses: TOOL-3, TOOL-13.
"""

import ctypes
import ctypes.util
import inspect
import json
import mmap
import os
import select
import socket
import struct
import sys
import time
import zlib

VERSION = "0.0.1"
MAGIC = int.from_bytes(b"BEMTOOL1", "little")
SLOTS = 64
REQUESTS_AT = 64
SIDES_AT = REQUESTS_AT + SLOTS * 8
# Words of the header, of a request and of its side entry.
REQUEST_BELL, ANSWER_BELL, STOP, WORKERS_ASLEEP, MACHINE_ASLEEP = 6, 7, 8, 9, 10
KIND, RESOURCE, IN_POINTER, OUT_POINTER, OUT_CAPACITY, STATE, NUMBER = range(7)
CLAIM, USED, LEASE, ATTEMPT, KEY = range(5)
PENDING, DONE, ERROR = 1, 2, 3
TOO_LONG, BAD_PAYLOAD, UNKNOWN_OPERATION = 8, 5, 2
OWN_ERROR = 256
DEPTH_MAX, ITEMS_MAX = 8, 1 << 16
SEQ_CST = 5


class ToolError(Exception):
    """An answer that is an error: a code from 256 on, and words that may enter the ledger."""

    def __init__(self, code, words=""):
        super().__init__(words)
        self.code = code


# --- deterministic CBOR --------------------------------------------------------------------------------------------


def _head(major, value):
    if value < 24:
        return bytes([major << 5 | value])
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << (8 * size):
            return bytes([major << 5 | extra]) + value.to_bytes(size, "big")
    raise ValueError("a number of more than 64 bits")


def encode(value):
    """The one spelling of a value."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("a number of more than 64 bits")
        return _head(0, value) if 0 <= value else _head(1, -1 - value)
    if isinstance(value, (bytes, bytearray)):
        return _head(2, len(value)) + bytes(value)
    if isinstance(value, str):
        text = value.encode()
        return _head(3, len(text)) + text
    if isinstance(value, (list, tuple)):
        return _head(4, len(value)) + b"".join(encode(item) for item in value)
    if isinstance(value, dict):
        pairs = sorted((encode(key), encode(item)) for key, item in value.items())
        if not all(isinstance(key, str) or isinstance(key, int) and 0 <= key for key in value):
            raise ValueError("keys must be text, or numbers from 0")
        return _head(5, len(pairs)) + b"".join(key + item for key, item in pairs)
    raise ValueError(f"a {type(value).__name__} has no place in a payload: write fractions as text")


def decode(data):
    """The value that these bytes spell; another spelling is refused."""
    left = [ITEMS_MAX]

    def take(at, size):
        if len(data) < at + size:
            raise ValueError("cut off")
        return data[at : at + size], at + size

    def number(at):
        first, at = take(at, 1)
        major, info = first[0] >> 5, first[0] & 31
        if info < 24:
            return major, info, at
        if 27 < info:
            raise ValueError("an open length")
        part, at = take(at, 1 << (info - 24))
        return major, int.from_bytes(part, "big"), at

    def item(at, depth):
        left[0] -= 1
        if left[0] < 0 or DEPTH_MAX < depth:
            raise ValueError("too many items, or too deep")
        if at < len(data) and data[at] in (0xF4, 0xF5, 0xF6):
            return {0xF4: False, 0xF5: True, 0xF6: None}[data[at]], at + 1
        major, value, at = number(at)
        if major == 0:
            return value, at
        if major == 1:
            return -1 - value, at
        if major in (2, 3):
            part, at = take(at, value)
            return (part if major == 2 else part.decode()), at
        if major == 4:
            items = []
            for _ in range(value):
                inner, at = item(at, depth + 1)
                items.append(inner)
            return items, at
        if major == 5:
            items = {}
            for _ in range(value):
                key, at = item(at, depth + 1)
                if isinstance(key, (list, dict)):
                    raise ValueError("a key that is neither text nor a number")
                items[key], at = item(at, depth + 1)
            return items, at
        raise ValueError("a value of another type")

    data = bytes(data)
    value, end = item(0, 0)
    if end != len(data) or encode(value) != data:
        raise ValueError("not the one spelling")
    return value


# --- the mapping ---------------------------------------------------------------------------------------------------


def _atomic():
    name = ctypes.util.find_library("atomic") or "libatomic.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise SystemExit(f"bem_worker: libatomic is needed (Debian: libatomic1): {error}") from None
    word, pointer = ctypes.c_uint64, ctypes.c_void_p
    load, add = library["__atomic_load_8"], library["__atomic_fetch_add_8"]
    swap = library["__atomic_compare_exchange_8"]
    load.restype, load.argtypes = word, [pointer, ctypes.c_int]
    add.restype, add.argtypes = word, [pointer, word, ctypes.c_int]
    swap.restype, swap.argtypes = ctypes.c_bool, [pointer, pointer, word, ctypes.c_int, ctypes.c_int]
    return load, add, swap


class _Mapping:
    def __init__(self, file):
        self.size = os.fstat(file).st_size
        self.memory = mmap.mmap(file, self.size)
        os.close(file)
        self._anchor = ctypes.c_char.from_buffer(self.memory)
        self.base = ctypes.addressof(self._anchor)
        self._load, self._add, self._swap = _atomic()
        self.libc = ctypes.CDLL(None, use_errno=True)

    def load(self, word):
        return self._load(self.base + 8 * word, SEQ_CST)

    def add(self, word, value):
        self._add(self.base + 8 * word, value % (1 << 64), SEQ_CST)

    def swap(self, word, old, new):
        expected = ctypes.c_uint64(old)
        return self._swap(self.base + 8 * word, ctypes.addressof(expected), new, SEQ_CST, SEQ_CST)

    def put(self, word, value):
        struct.pack_into("<Q", self.memory, 8 * word, value)

    def _futex(self, word, operation, value, seconds=None):
        # 202 is the number of the call on x86-64, 98 on aarch64.
        call = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
        wait = None
        if seconds is not None:
            wait = ctypes.byref((ctypes.c_long * 2)(int(seconds), int(seconds % 1 * 1e9)))
        address = ctypes.c_void_p(self.base + 8 * word)
        self.libc.syscall(ctypes.c_long(call), address, operation, ctypes.c_uint32(value), wait, None, 0)

    def sleep(self, word, value, seconds):
        self.add(WORKERS_ASLEEP, 1)
        self._futex(word, 0, value & 0xFFFFFFFF, seconds)
        self.add(WORKERS_ASLEEP, -1)

    def ring(self, word):
        self.add(word, 1)
        if self.load(MACHINE_ASLEEP):
            self._futex(word, 1, 0x7FFFFFFF)


class Job:
    """One request; `payload` is a copy."""

    def __init__(self, mapping, slot, generation):
        first = mapping.load(REQUESTS_AT + 8 * slot + KIND)
        second = mapping.load(REQUESTS_AT + 8 * slot + RESOURCE)
        start = mapping.load(REQUESTS_AT + 8 * slot + IN_POINTER)
        self.slot, self.generation = slot, generation
        self.operation, self.flags = first >> 32 & 0xFFFF, first >> 48
        self.resource = second & 0xFFFFFFFF
        self.payload = mapping.memory[start : start + (second >> 32)]
        self.output = mapping.load(REQUESTS_AT + 8 * slot + OUT_POINTER)
        self.capacity = mapping.load(REQUESTS_AT + 8 * slot + OUT_CAPACITY) & 0xFFFFFFFF
        self.number = mapping.load(REQUESTS_AT + 8 * slot + NUMBER)
        self.attempt = mapping.load(SIDES_AT + 8 * slot + ATTEMPT)
        key = [mapping.load(SIDES_AT + 8 * slot + KEY + word) for word in range(4)]
        self.key = struct.pack("<4Q", *key)


class Worker:
    """A place at a bus."""

    def __init__(self, bus=None, kind=None):
        bus, kind = bus or os.environ.get("BEM_BUS"), kind or os.environ.get("BEM_KIND")
        if not bus or not kind:
            raise SystemExit("bem_worker: BEM_BUS and BEM_KIND must be set, or given")
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.stream.connect(bus)
        except OSError as error:
            raise SystemExit(f"bem_worker: the bus {bus} cannot be reached: {error.strerror}") from None
        self.stream.sendall(json.dumps({"kind": kind, "version": VERSION}).encode() + b"\n")
        line, files = b"", []
        while not line.endswith(b"\n"):
            part, passed, _, _ = socket.recv_fds(self.stream, 65536, 1)
            files += passed
            if not part:
                raise SystemExit("bem_worker: the bus has closed the connection")
            line += part
        welcome = json.loads(line)
        if not welcome["ok"]:
            raise SystemExit(f"bem_worker: the bus refuses: {welcome['error']}")
        self.mapping = _Mapping(files[0])
        if self.mapping.load(0) != MAGIC or self.mapping.load(3) != SLOTS:
            raise SystemExit("bem_worker: this is no mapping of this version")
        self.worker, self.operations = welcome["worker"], welcome["operations"]
        self._next = 0

    def claim(self):
        """A request that waits, claimed; None if there is none."""
        mapping = self.mapping
        for step in range(SLOTS):
            slot = (self._next + step) % SLOTS
            state = mapping.load(REQUESTS_AT + 8 * slot + STATE)
            if state & 0xFFFF != PENDING:
                continue
            claim = state >> 32 << 32
            if mapping.swap(SIDES_AT + 8 * slot + CLAIM, claim, claim | self.worker):
                self._next = (slot + 1) % SLOTS
                return Job(mapping, slot, state >> 32)
        return None

    def finish(self, job, answer, error=0):
        """Publishes an answer; False if the lease was lost meanwhile."""
        mapping = self.mapping
        if job.capacity < len(answer):
            answer, error = (b"", TOO_LONG) if error == 0 else (answer[: job.capacity], error)
        if mapping.load(SIDES_AT + 8 * job.slot + CLAIM) != job.generation << 32 | self.worker:
            return False
        mapping.memory[job.output : job.output + len(answer)] = answer
        mapping.put(SIDES_AT + 8 * job.slot + USED, len(answer) | zlib.crc32(answer) << 32)
        old = job.generation << 32 | PENDING
        new = job.generation << 32 | error << 16 | (ERROR if error else DONE)
        done = mapping.swap(REQUESTS_AT + 8 * job.slot + STATE, old, new)
        if done:
            mapping.ring(ANSWER_BELL)
        return done

    def is_over(self):
        if self.mapping.load(STOP):
            return True
        ready, _, _ = select.select([self.stream], [], [], 0)
        return bool(ready) and not self.stream.recv(64)

    def serve(self, functions):
        """Serves until the bus ends. `functions` is by operation's name."""
        names = {code: name for name, code in self.operations.items()}
        missing = sorted(set(self.operations) - set(functions))
        if missing:
            raise SystemExit(f"bem_worker: the catalog names operations without a function: {', '.join(missing)}")
        while True:
            bell = self.mapping.load(REQUEST_BELL)
            job = self.claim()
            if job is None:
                if self.is_over():
                    return
                self.mapping.sleep(REQUEST_BELL, bell, 0.5)
                continue
            self.finish(job, *self.answer(job, functions.get(names.get(job.operation))))

    def answer(self, job, function):
        if function is None:
            return b"", UNKNOWN_OPERATION
        try:
            request = decode(job.payload) if job.payload else None
        except (ValueError, UnicodeDecodeError) as error:
            return str(error).encode(), BAD_PAYLOAD
        try:
            takes_job = len(inspect.signature(function).parameters) == 2
            return encode(function(request, job) if takes_job else function(request)), 0
        except ToolError as error:
            return str(error).encode(), max(OWN_ERROR, min(error.code, 0xFFFF))
        except Exception as error:  # A tool that fails must not take its worker with it.
            print(f"bem_worker: {type(error).__name__}: {error}", file=sys.stderr)
            return type(error).__name__.encode(), OWN_ERROR


def serve(functions, bus=None, kind=None):
    """Serves these functions, by operation's name, until the bus ends."""
    Worker(bus, kind).serve(functions)


if __name__ == "__main__":
    # A tool to try a bus with: it answers what it was asked.
    def echo(request):
        return request

    def slow(request):
        time.sleep(request["seconds"])
        return request

    known = {"echo": echo, "slow": slow}
    worker = Worker()
    worker.serve({name: known[name] for name in worker.operations})
