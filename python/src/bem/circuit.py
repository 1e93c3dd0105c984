"""A learned circuit on numpy arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bem import _bem
from bem._bem import BemError


def pack_bits(bits: Any, width: int) -> tuple[np.ndarray, bool]:
    """Rows of zeros and ones as 64-bit words, the lowest bit first, and whether there are many."""
    array = np.asarray(bits)
    if array.dtype.kind not in "iub":
        raise BemError(f"bits are whole numbers or booleans, not {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise BemError(f"bits have the shape {array.shape}; ({width},) or (n, {width}) is needed")
    rows = np.ascontiguousarray(np.atleast_2d(array))
    if not rows.dtype.isnative:
        rows = rows.astype(rows.dtype.newbyteorder("="))
    words = _bem.pack_rows(rows.view(f"u{rows.dtype.itemsize}"), max(1, -(-width // 64)))
    if words is None:
        raise BemError("bits are 0 or 1")
    return words, array.ndim == 2


class Circuit:
    """A circuit from observation bits and memory to an action.

    Called on bits it says the bits of the action at the start of an episode; :meth:`act` goes on from step to step.

    >>> import bem
    >>> circuit = bem.Learner(bem.make("parity", n=3), seed=1).learn(1_000).circuit
    >>> circuit([[1, 0, 0], [1, 1, 0]]).tolist()
    [[1], [0]]
    >>> "module" in circuit.to_verilog() and "bem_decide" in circuit.to_c()
    True
    """

    def __init__(self, native: "_bem.Circuit"):
        self._native = native

    @classmethod
    def parse(cls, content: str | bytes) -> "Circuit":
        """Reads AIGER, BLIF or BEM's own form; inputs are observation bits, outputs the bits of the action.

        >>> Circuit.parse(".model and\\n.inputs a b\\n.outputs y\\n.names a b y\\n11 1\\n.end\\n")([1, 1]).tolist()
        [1]
        """
        return cls(_bem.Circuit.parse(content.encode() if isinstance(content, str) else content))

    @classmethod
    def load(cls, path: Any) -> "Circuit":
        """Reads a circuit from a file."""
        return cls.parse(Path(path).read_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Circuit":
        """Reads what :meth:`to_bytes` wrote."""
        return cls(_bem.Circuit.from_bytes(data))

    def to_bytes(self) -> bytes:
        """The circuit as bytes."""
        return self._native.to_bytes()

    def __call__(self, bits: Any) -> np.ndarray:
        words, is_many = pack_bits(bits, self.observation_bits)
        actions, _ = self.act(words)
        places = np.arange(self.action_bits)
        rows = (actions[:, None] >> places & 1).astype(np.uint8)
        return rows if is_many else rows[0]

    def act(
        self, words: np.ndarray, state: np.ndarray | None = None, episode_start: Any = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Actions for rows of packed observations, and the memory of every row for its next step."""
        rows, width = words.shape[0], self._native.state_words
        if state is None or width == 0:
            kept = np.zeros((rows, width), dtype=np.uint64)
        else:
            try:
                kept = np.ascontiguousarray(np.asarray(state, dtype=np.uint64).reshape((rows, width)))
            except (TypeError, ValueError):
                raise BemError(f"state has the shape {np.shape(state)}; ({rows}, {width}) is needed") from None
        if episode_start is not None and width:
            begun = np.broadcast_to(np.asarray(episode_start, dtype=bool).reshape(-1), (rows,))
            kept = np.where(begun[:, None], np.uint64(0), kept)
        actions, kept = self._native.act(np.ascontiguousarray(words), kept)
        return actions, (kept if width else None)

    def export(self, format: str) -> Any:
        """The circuit in one of the forms of ``bem export``; binary AIGER is bytes, everything else is text."""
        return self._native.export(format)

    def to_c(self) -> str:
        """A C99 header with ``bem_reset`` and ``bem_decide``."""
        return self._native.export("c")

    def to_verilog(self) -> str:
        """A Verilog-2001 module."""
        return self._native.export("verilog")

    @property
    def gates(self) -> int:
        """Gates of two inputs."""
        return self._native.gates

    @property
    def memory_bits(self) -> int:
        """Bits that it keeps from step to step."""
        return self._native.memory_bits

    @property
    def observation_bits(self) -> int:
        """Bits that the world shows."""
        return self._native.observation_bits

    @property
    def action_bits(self) -> int:
        """Bits of the action."""
        return self._native.action_bits

    @property
    def actions(self) -> int:
        """Actions are below this."""
        return self._native.actions

    @property
    def reads(self) -> list[int]:
        """The observation bits that it looks at."""
        return self._native.reads

    @property
    def digest(self) -> str:
        """What ledgers and bundles call it."""
        return self._native.digest

    @property
    def counts_steps(self) -> bool:
        """Whether it counts steps whatever it sees: such a policy is made for episodes that end."""
        return self._native.counts_steps

    def __reduce__(self):
        return Circuit.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Circuit) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<bem.Circuit {self._native.name}, {self.gates} gates, {self.memory_bits} memory bits>"
