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


def _boxes(space: spaces.Space, path: tuple = ()) -> list[tuple[tuple, spaces.Box]]:
    """The parts of a space that are a ``Box``, with the way to each."""
    if isinstance(space, spaces.Box):
        return [(path, space)]
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [box for name, part in parts for box in _boxes(part, (*path, name))]
    return []


def _replaced(whole: Any, parts: dict[tuple, Any], path: tuple = ()) -> Any:
    """A space or an observation with other parts at these places."""
    if path in parts:
        return parts[path]
    if isinstance(whole, (spaces.Dict, dict)):
        items = {name: _replaced(part, parts, (*path, name)) for name, part in whole.items()}
        return spaces.Dict(items) if isinstance(whole, spaces.Dict) else items
    if isinstance(whole, (spaces.Tuple, tuple, list)):
        items = tuple(_replaced(part, parts, (*path, place)) for place, part in enumerate(whole))
        return spaces.Tuple(items) if isinstance(whole, spaces.Tuple) else items
    return whole


class Binarize(gymnasium.ObservationWrapper):
    """Declares the numbers of a ``Box`` as fields of levels: how many thresholds each of them reaches.

    The observations are a ``Box``, or ``Dict`` and ``Tuple`` in which some parts are; the other parts stay as they are.
    BEM finds the thresholds: at quantiles of what random play shows, or, with ``samples=0``, at round places between
    the bounds of the space. ``levels`` is how many levels a number has at most; a power of two uses its bits well.
    ``probe_steps`` says how many steps were played at random for that; those of a learner count them as well.

    >>> import gymnasium, bem
    >>> env = bem.wrappers.Binarize(gymnasium.make("CartPole-v1"), levels=8, samples=500)
    >>> env.observation_space, env.probe_steps
    (MultiDiscrete([8 8 8 8]), 500)
    """

    def __init__(self, env: gymnasium.Env, levels: int = 16, samples: int = 2_000, seed: int = 1):
        super().__init__(env)
        self._boxes = _boxes(env.observation_space)
        if not self._boxes:
            kind = type(env.observation_space).__name__
            raise BemError(f"Binarize is for Box observations, not {kind}; a Dict or Tuple needs a Box in it")
        if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or not 2 <= levels <= 256:
            raise BemError(f"levels is {levels!r}; allowed is 2 to 256")
        if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or not 0 <= samples <= 10**7:
            raise BemError(f"samples is {samples!r}; allowed is 0 to 10000000")
        self.probe_steps = int(samples)
        low, high = (np.concatenate([bound.reshape(-1) for bound in bounds])
                     for bounds in zip(*((box.low, box.high) for _, box in self._boxes)))
        if samples:
            rows = self._play(int(samples), seed)
            texts = [_bem.thresholds([_text(value) for value in column], None, int(levels) - 1) for column in rows.T]
        elif not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise BemError("the bounds of the Box are infinite: thresholds need samples=... of random play")
        else:
            bounds = zip(low, high)
            texts = [_bem.thresholds([], (_text(one), _text(other)), int(levels) - 1) for one, other in bounds]
        self.thresholds = [np.array([float(text) for text in row], dtype=np.float64) for row in texts]
        sizes = np.array([max(2, len(row) + 1) for row in self.thresholds])
        parts = {path: spaces.MultiDiscrete(part) for path, part in self._split(sizes).items()}
        self.observation_space = _replaced(env.observation_space, parts)

    def _split(self, numbers: np.ndarray) -> dict[tuple, np.ndarray]:
        """The numbers of all boxes, each with its own."""
        ends = np.cumsum([int(np.prod(box.shape)) for _, box in self._boxes])
        return {path: part for (path, _), part in zip(self._boxes, np.split(numbers, ends[:-1]))}

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
        """The numbers of all boxes, one after the other."""
        parts = []
        for path, box in self._boxes:
            part = observation
            for name in path:
                try:
                    part = part[name]
                except (KeyError, IndexError, TypeError):
                    raise BemError(f"observation {'.'.join(map(str, path))} is missing") from None
            part = np.asarray(part, dtype=np.float64)
            if part.size != np.prod(box.shape):
                raise BemError(f"an observation has the shape {part.shape}; {box.shape} is needed")
            parts.append(part.reshape(-1))
        row = np.concatenate(parts)
        if not np.isfinite(row).all():
            raise BemError("an observation holds NaN or infinity")
        return row

    def observation(self, observation: Any) -> Any:
        row = self._row(observation)
        levels = [np.searchsorted(limits, value, side="right") for limits, value in zip(self.thresholds, row)]
        return _replaced(observation, self._split(np.array(levels, dtype=np.int64)))


def _text(value: float) -> str:
    return f"{float(value):.{_DIGITS}g}"
