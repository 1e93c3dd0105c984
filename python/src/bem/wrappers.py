"""Wrappers that make an environment fit for a learner of bits."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bem import _bem
from bem._bem import BemError

# Numbers of a simulation are told apart to so many digits; thresholds are exact decimals.
_DIGITS = 9


class Binarize(gymnasium.ObservationWrapper):
    """Declares the numbers of a ``Box`` as fields of levels: how many thresholds each of them reaches.

    BEM finds the thresholds: at quantiles of what random play shows, or, with ``samples=0``, at round places between
    the bounds of the space. ``levels`` is how many levels a number has at most; a power of two uses its bits well.

    >>> import gymnasium, bem
    >>> env = bem.wrappers.Binarize(gymnasium.make("CartPole-v1"), levels=8, samples=500)
    >>> env.observation_space
    MultiDiscrete([8 8 8 8])
    """

    def __init__(self, env: gymnasium.Env, levels: int = 16, samples: int = 2_000, seed: int = 1):
        super().__init__(env)
        box = env.observation_space
        if not isinstance(box, spaces.Box):
            raise BemError(f"Binarize is for Box observations, not {type(box).__name__}")
        if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or not 2 <= levels <= 256:
            raise BemError(f"levels is {levels!r}; allowed is 2 to 256")
        if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or not 0 <= samples <= 10**7:
            raise BemError(f"samples is {samples!r}; allowed is 0 to 10000000")
        low, high = box.low.reshape(-1), box.high.reshape(-1)
        if samples:
            rows = self._play(int(samples), seed)
            texts = [_bem.thresholds([_text(value) for value in column], None, int(levels) - 1) for column in rows.T]
        elif not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise BemError("the bounds of the Box are infinite: thresholds need samples=... of random play")
        else:
            bounds = zip(low, high)
            texts = [_bem.thresholds([], (_text(one), _text(other)), int(levels) - 1) for one, other in bounds]
        self.thresholds = [np.array([float(text) for text in row], dtype=np.float64) for row in texts]
        self.observation_space = spaces.MultiDiscrete([max(2, len(row) + 1) for row in self.thresholds])

    def _play(self, samples: int, seed: int) -> np.ndarray:
        """What random play shows."""
        self.env.action_space.seed(seed)
        observation, _ = self.env.reset(seed=seed)
        rows = []
        for _ in range(samples):
            rows.append(self._row(observation))
            observation, _, terminated, truncated, _ = self.env.step(self.env.action_space.sample())
            if terminated or truncated:
                observation, _ = self.env.reset()
        return np.array(rows)

    def _row(self, observation: Any) -> np.ndarray:
        row = np.asarray(observation, dtype=np.float64).reshape(-1)
        if not np.isfinite(row).all():
            raise BemError("an observation holds NaN or infinity")
        return row

    def observation(self, observation: Any) -> np.ndarray:
        row = self._row(observation)
        levels = [np.searchsorted(limits, value, side="right") for limits, value in zip(self.thresholds, row)]
        return np.array(levels, dtype=np.int64)


def _text(value: float) -> str:
    return f"{float(value):.{_DIGITS}g}"
