"""What an observation or an action of a Gymnasium space is as bits: fields, numbers, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from gymnasium import spaces

from bem._bem import ACTIONS_MAX, OBSERVATION_BITS_MAX, BemError, pack_rows

# Values of a number that a rule compares with thresholds, and of one whose values it lists.
_NUMBERS_MAX = 256
_CHOICES_MAX = 1024
_DISCRETE = "Discrete, MultiBinary, MultiDiscrete, or Tuple and Dict of them"


def _leaves(space: spaces.Space, path: tuple = ()) -> list[tuple[tuple, spaces.Space]]:
    """The parts of a space that hold values, with the way to each."""
    if isinstance(space, spaces.Tuple):
        return [leaf for place, part in enumerate(space.spaces) for leaf in _leaves(part, (*path, place))]
    if isinstance(space, spaces.Dict):
        return [leaf for name, part in space.spaces.items() for leaf in _leaves(part, (*path, name))]
    if isinstance(space, (spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)):
        return [(path, space)]
    where = f" at {'.'.join(map(str, path))}" if path else ""
    if isinstance(space, spaces.Box):
        raise BemError(f"the observation space{where} is Box: wrap the environment in bem.wrappers.Binarize first")
    raise BemError(f"the space{where} is {type(space).__name__}; BEM takes {_DISCRETE}")


def _sizes(space: spaces.Space) -> list[int]:
    """How many values each number of a part may take."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiBinary):
        return [2] * int(np.prod(space.shape, dtype=np.int64))
    return [int(size) for size in np.asarray(space.nvec).reshape(-1)]


def _starts(space: spaces.Space) -> np.ndarray | int:
    if isinstance(space, spaces.Discrete):
        return int(space.start)
    if isinstance(space, spaces.MultiBinary):
        return 0
    return np.asarray(getattr(space, "start", 0))


def to_json(space: spaces.Space) -> Any:
    """A space as JSON, so that a saved learner needs no environment to predict."""
    if isinstance(space, spaces.Tuple):
        return {"tuple": [to_json(part) for part in space.spaces]}
    if isinstance(space, spaces.Dict):
        return {"dict": [[name, to_json(part)] for name, part in space.spaces.items()]}
    if isinstance(space, spaces.Discrete):
        return {"discrete": [int(space.n), int(space.start)]}
    if isinstance(space, spaces.MultiBinary):
        return {"bits": [int(size) for size in space.shape]}
    start = np.broadcast_to(np.asarray(getattr(space, "start", 0)), space.shape)
    return {"numbers": np.asarray(space.nvec).tolist(), "start": start.tolist()}


def from_json(value: Any) -> spaces.Space:
    """The space that :func:`to_json` wrote."""
    if "tuple" in value:
        return spaces.Tuple([from_json(part) for part in value["tuple"]])
    if "dict" in value:
        return spaces.Dict([(name, from_json(part)) for name, part in value["dict"]])
    if "discrete" in value:
        return spaces.Discrete(value["discrete"][0], start=value["discrete"][1])
    if "bits" in value:
        return spaces.MultiBinary(value["bits"])
    return spaces.MultiDiscrete(np.asarray(value["numbers"]), start=np.asarray(value["start"]))


def _features(name: str, size: int, start: int) -> list[dict[str, Any]]:
    """One number of an observation as features: itself, where rules can speak of it; else its bits."""
    if size == 2 and start == 0:
        return [{"name": name, "kind": "bit", "bit": True}]
    values = range(start, start + size)
    if 2 <= size <= _NUMBERS_MAX:
        bounds = {"kind": "number", "min": values[0], "max": values[-1]}
        return [{"name": name, **bounds, "levels": list(values[1:])}]
    if 2 <= size <= _CHOICES_MAX:
        return [{"name": name, "kind": "choice", "of": [str(value) for value in values], "index": True}]
    width = max(1, (size - 1).bit_length())
    return [{"name": f"{name}.bit{bit}", "kind": "bit", "bit": True} for bit in range(width)]


def are_same(one: spaces.Space, other: spaces.Space) -> bool:
    """Whether two spaces hold the same, however they were written down.

    >>> are_same(spaces.MultiBinary(3), spaces.MultiBinary([3])), are_same(spaces.MultiBinary(3), spaces.Box(0, 1))
    (True, False)
    """
    try:
        return one == other or to_json(one) == to_json(other)
    except AttributeError:
        # A space that BEM does not take is none of those that it has learned.
        return False


class _Leaf:
    """One part of an observation."""

    def __init__(self, path: tuple, space: spaces.Space, low: int):
        self.path, self.space, self.low = path, space, low
        self.sizes = _sizes(space)
        self.widths = [max(1, (size - 1).bit_length()) for size in self.sizes]
        self.bits = sum(self.widths)
        self.start = _starts(space)
        self.shape = space.shape or ()
        self.is_bits = isinstance(space, spaces.MultiBinary)
        self.limits = np.asarray(self.sizes, dtype=np.int64)

    def name(self) -> str:
        return f"observation {'.'.join(map(str, self.path))}" if self.path else "an observation"

    def pick(self, observation: Any) -> Any:
        for step in self.path:
            try:
                observation = observation[step]
            except (KeyError, IndexError, TypeError):
                raise BemError(f"{self.name()} is missing") from None
        return observation

    def rows(self, observation: Any) -> tuple[np.ndarray, bool]:
        """The numbers of one or many observations, a row each, and whether there are many."""
        try:
            array = np.asarray(self.pick(observation))
        except ValueError as error:
            raise BemError(f"{self.name()} is no array: {error}") from None
        if array.dtype.kind == "f":
            if not np.isfinite(array).all():
                raise BemError(f"{self.name()} holds NaN or infinity")
            if not (array == np.floor(array)).all():
                raise BemError(f"{self.name()} holds {array.dtype}; whole numbers are needed")
        elif array.dtype.kind not in "iub":
            raise BemError(f"{self.name()} holds {array.dtype}; whole numbers are needed")
        extra = array.ndim - len(self.shape)
        if extra not in (0, 1) or array.shape[extra:] != self.shape:
            raise BemError(f"{self.name()} has the shape {array.shape}; {self.shape} or (n, ...) of it is needed")
        rows = array.astype(np.int64).reshape((array.shape[0] if extra else 1, -1))
        rows = rows - np.asarray(self.start, dtype=np.int64).reshape(-1) if np.any(self.start) else rows
        if rows.size and (rows.min() < 0 or (rows >= self.limits).any()):
            raise BemError(f"{self.name()} is out of its space {self.space}")
        return rows, bool(extra)


class Observations:
    """The codec of an observation space: which fields it has, and what an observation is as bits."""

    def __init__(self, space: spaces.Space):
        self.space = space
        self.leaves: list[_Leaf] = []
        low = 0
        for path, part in _leaves(space):
            leaf = _Leaf(path, part, low)
            self.leaves.append(leaf)
            low += leaf.bits
        self.bits = low
        self.words = max(1, -(-low // 64))
        self.fields = [width for leaf in self.leaves for width in leaf.widths]
        if OBSERVATION_BITS_MAX < low:
            raise BemError(f"an observation has {low} bits; at most {OBSERVATION_BITS_MAX} are allowed")
        plain = isinstance(space, spaces.Discrete)
        bits = isinstance(space, spaces.MultiBinary)
        self.encode = self._encode_number if plain else self._encode_bits if bits else self._encode_any

    def features(self) -> str:
        """What rules may speak of, as the native part reads it: one feature for every number of an observation.

        It is called by the way to it: the names of a ``Dict`` and the places in a ``Tuple`` or an array, joined by dots; the
        number of a ``Discrete`` space is called ``obs``.
        """
        features = []
        for leaf in self.leaves:
            starts = np.broadcast_to(np.asarray(leaf.start), leaf.shape).reshape(-1)
            for place, size, start in zip(np.ndindex(*leaf.shape), leaf.sizes, starts):
                name = ".".join(map(str, (*leaf.path, *place))) or "obs"
                features += _features(name, size, int(start))
        return json.dumps(features)

    def _encode_number(self, observation: Any) -> int:
        code = int(observation) - self.leaves[0].start
        if 0 <= code < self.leaves[0].sizes[0] and code + self.leaves[0].start == observation:
            return code
        raise BemError(f"the observation {observation!r} is out of its space {self.space}")

    def _encode_bits(self, observation: Any) -> int:
        array = np.asarray(observation)
        if array.shape != self.space.shape:
            raise BemError(f"an observation has the shape {array.shape}; {self.space.shape} is needed")
        if array.dtype.kind not in "iub" or (array.size and (array.max() > 1 or array.min() < 0)):
            return self._encode_any(observation)
        return int.from_bytes(np.packbits(array.reshape(-1), bitorder="little").tobytes(), "little")

    def _encode_any(self, observation: Any) -> int:
        words, many = self.pack(observation)
        if many:
            raise BemError("one observation is needed, not many")
        return int.from_bytes(words[0].tobytes(), "little")

    def pack(self, observation: Any) -> tuple[np.ndarray, bool]:
        """One or many observations as rows of 64-bit words, and whether there are many."""
        if isinstance(observation, np.ndarray) and len(self.leaves) == 1 and self.leaves[0].is_bits:
            packed = self._pack_bits(observation)
            if packed is not None:
                return packed
        words, is_many, count = None, False, 0
        for leaf in self.leaves:
            rows, many = leaf.rows(observation)
            if words is None:
                words, is_many, count = np.zeros((rows.shape[0], self.words), dtype=np.uint64), many, rows.shape[0]
            if rows.shape[0] != count or many != is_many:
                raise BemError(f"{leaf.name()} has {rows.shape[0]} rows; the first part has {count}")
            self._put(words, rows, leaf)
        if words is None:
            raise BemError("the observation space is empty")
        return words, is_many

    def _pack_bits(self, array: np.ndarray) -> tuple[np.ndarray, bool] | None:
        """Numbers that are bits, without copies; nothing where they are something else."""
        extra = array.ndim - len(self.space.shape)
        if array.dtype.kind not in "iub" or not array.dtype.isnative or extra not in (0, 1):
            return None
        if array.shape[extra:] != self.space.shape or not array.flags.c_contiguous:
            return None
        # A negative number is a large one without its sign.
        rows = array.view(f"u{array.dtype.itemsize}").reshape((array.shape[0] if extra else 1, -1))
        words = pack_rows(rows, self.words)
        return None if words is None else (words, bool(extra))

    def _put(self, words: np.ndarray, rows: np.ndarray, leaf: _Leaf) -> None:
        if leaf.is_bits and leaf.low % 8 == 0:
            packed = np.packbits(rows.astype(np.uint8), axis=1, bitorder="little")
            words.view(np.uint8)[:, leaf.low // 8 : leaf.low // 8 + packed.shape[1]] |= packed
            return
        low = leaf.low
        for place, width in enumerate(leaf.widths):
            values = rows[:, place].astype(np.uint64)
            words[:, low // 64] |= values << np.uint64(low % 64)
            if 64 < low % 64 + width:
                words[:, low // 64 + 1] |= values >> np.uint64(64 - low % 64)
            low += width


class Actions:
    """The codec of an action space: actions are counted through."""

    def __init__(self, space: spaces.Space):
        self.space = space
        if not isinstance(space, (spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)):
            raise BemError(f"the action space is {type(space).__name__}; BEM takes Discrete, MultiBinary or MultiDiscrete")
        self.sizes = _sizes(space)
        self.count = 1
        for size in self.sizes:
            self.count *= size
        if ACTIONS_MAX < self.count:
            raise BemError(f"there are {self.count} actions; at most {ACTIONS_MAX} are allowed")
        self.start = _starts(space)
        self.is_plain = isinstance(space, spaces.Discrete)

    def code(self, action: Any) -> int:
        """The number of an action; of spaces with several parts actions are said by their number."""
        first = int(self.start) if self.is_plain else 0
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action - first < self.count:
            raise BemError(f"the action {action!r} is none; it must be {first} to {first + self.count - 1}")
        return int(action) - first

    def decode(self, code: int) -> Any:
        """The action with this number."""
        if self.is_plain:
            return self.start + code
        return self.decode_many(np.asarray([code]))[0]

    def decode_many(self, codes: np.ndarray) -> np.ndarray:
        """The actions with these numbers."""
        if self.is_plain:
            return codes + self.start
        parts = np.empty((len(codes), len(self.sizes)), dtype=np.int64)
        rest = codes.copy()
        for place, size in enumerate(self.sizes):
            parts[:, place] = rest % size
            rest //= size
        actions = parts.reshape((len(codes), *self.space.shape)) + self.start
        return actions.astype(self.space.dtype)
