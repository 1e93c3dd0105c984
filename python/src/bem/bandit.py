"""A contextual bandit over bits: decisions now, rewards later or never, and data that others logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bem import _bem
from bem._bem import BemError
from bem.circuit import Circuit, pack_bits
from bem.files import write_whole
from bem.learner import _whole, config_text


class Decision(NamedTuple):
    """A decision: its number for :meth:`ContextualBandit.reward`, the action, and the chance that the action had."""

    id: int
    action: int
    propensity: float


class ContextualBandit:
    """Chooses among ``n_actions`` for contexts of ``n_bits`` bits.

    Rewards lie in ``reward_range`` and come when they come; a decision whose reward never comes is not learned from.
    ``min_propensity`` promises every action that chance, for those who will judge another policy by the log.

    >>> import numpy as np, bem
    >>> bandit = bem.ContextualBandit(n_actions=2, n_bits=3, seed=1)
    >>> random = np.random.default_rng(1)
    >>> for _ in range(2_000):
    ...     context = random.integers(0, 2, 3)
    ...     decision = bandit.decide(context)
    ...     bandit.reward(decision, float(decision.action == context[1]))
    >>> bandit.predict([[0, 1, 0], [1, 0, 1]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        n_actions: int,
        n_bits: int,
        seed: int = 1,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        min_propensity: float = 0.0,
        config: Any = None,
    ):
        self.n_actions = _whole("n_actions", n_actions, 1, _bem.ACTIONS_MAX)
        self.n_bits = _whole("n_bits", n_bits, 0, _bem.OBSERVATION_BITS_MAX)
        self.seed = _whole("seed", seed, 0, 2**64 - 1)
        try:
            low, high = (float(bound) for bound in reward_range)
        except (TypeError, ValueError):
            raise BemError(f"reward_range is {reward_range!r}; two numbers are needed") from None
        fields = [1] * self.n_bits
        self._native = _bem.Bandit(
            self.n_actions, fields, self.seed, (low, high), float(min_propensity), config_text(config)
        )

    def predict(self, X: Any) -> Any:
        """The best action for one context or for rows of them, nothing explored."""
        words, is_many = pack_bits(X, self.n_bits)
        actions = self._native.predict(words)
        return actions if is_many else actions[0]

    def decide(self, x: Any) -> Decision:
        """Decides for a context, exploring where that is worth it."""
        words, is_many = pack_bits(x, self.n_bits)
        if is_many:
            raise BemError("decide takes one context; predict takes many")
        return Decision(*self._native.decide(words[0].tolist()))

    def reward(self, decision: Decision | int, reward: float) -> None:
        """What a decision brought, whenever that is known."""
        number = decision.id if isinstance(decision, Decision) else _whole("decision", decision, 0, 2**64 - 1)
        self._native.reward(number, _number("reward", reward))

    def partial_fit(self, X: Any, actions: Any, rewards: Any, propensities: Any = None) -> "ContextualBandit":
        """Learns from a log: contexts, what was done, what it brought, and the chance that it had.

        With propensities a random part of the rows, in which every action is as likely, counts as evidence; the rest, and a
        log without propensities, only helps to find out what to try.
        """
        words, is_many = pack_bits(X, self.n_bits)
        if not is_many:
            raise BemError(f"X has the shape {np.shape(X)}; (n, {self.n_bits}) is needed")
        chosen = np.asarray(actions)
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
            raise BemError(f"actions are a row of whole numbers, not {chosen.dtype} of shape {chosen.shape}")
        chances = None if propensities is None else _floats("propensities", propensities)
        self._native.fit(words, chosen.astype(np.int64), _floats("rewards", rewards), chances)
        return self

    @property
    def circuit(self) -> Circuit:
        """What acts when nothing is explored."""
        return Circuit(self._native.circuit())

    @property
    def online_mean(self) -> float | None:
        """The mean of all rewards that came."""
        return self.summary()["online_mean"]

    def summary(self) -> dict[str, Any]:
        """Counts, and what acts in words."""
        return self._native.state()

    def export(self, format: str = "c") -> Any:
        """The policy as a program or a circuit."""
        return self.circuit.export(format)

    def save(self, path: Any) -> None:
        """Writes it to a file: :meth:`load` goes on bit for bit."""
        write_whole(path, _state(self))

    @classmethod
    def load(cls, path: Any) -> "ContextualBandit":
        """Reads what :meth:`save` wrote."""
        return _unpickle(Path(path).read_bytes())

    def __reduce__(self):
        return _unpickle, (_state(self),)


def _state(bandit: ContextualBandit) -> bytes:
    head = b"".join(number.to_bytes(8, "little") for number in (bandit.n_actions, bandit.n_bits, bandit.seed))
    return head + bandit._native.to_bytes()


def _unpickle(data: bytes) -> ContextualBandit:
    bandit = ContextualBandit.__new__(ContextualBandit)
    numbers = [int.from_bytes(data[8 * place : 8 * place + 8], "little") for place in range(3)]
    bandit.n_actions, bandit.n_bits, bandit.seed = numbers
    bandit._native = _bem.Bandit.from_bytes(data[24:])
    return bandit


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BemError(f"{name} is {value!r}; a number is needed") from None


def _floats(name: str, values: Any) -> np.ndarray:
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BemError(f"{name} are numbers") from None
    if array.ndim != 1:
        raise BemError(f"{name} have the shape {array.shape}; a row of numbers is needed")
    return array
