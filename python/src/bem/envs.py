"""BEM's families of games as Gymnasium environments, one at a time and many at once."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bem import _bem
from bem._bem import BemError

NAMESPACE = "BEM"


def families() -> dict[str, dict[str, Any]]:
    """All families: what one does in each, and its parameters with their ranges and defaults.

    >>> families()["parity"]["params"]["n"]["default"]
    8
    """
    described = {}
    for name, about, parameters in _bem.families():
        params = {}
        for parameter, meaning, low, high, default, words in parameters:
            if words:
                params[parameter] = {"about": meaning, "of": list(words), "default": words[0]}
            else:
                params[parameter] = {"about": meaning, "min": low, "max": high, "default": default}
        described[name] = {"about": about, "params": params, "id": id_of(name)}
    return described


def id_of(family: str) -> str:
    """The id of a family in Gymnasium's registry.

    >>> id_of("key_value")
    'BEM/KeyValue-v0'
    """
    return f"{NAMESPACE}/{''.join(part.capitalize() for part in family.split('_'))}-v0"


def family_of(name: str) -> str:
    """The family that an id or a name stands for."""
    if not name.startswith(f"{NAMESPACE}/"):
        return name
    stem = re.sub(r"-v\d+$", "", name.split("/", 1)[1])
    return re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower()


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str, np.integer)):
        raise BemError(f"{name} is {value!r}; a parameter is a whole number or a word")
    return str(value)


def _game(family: str, instance_seed: int, params: dict[str, Any]) -> _bem.Game:
    if not isinstance(family, str):
        raise BemError(f"a family is named by a text, not by {type(family).__name__}")
    if isinstance(instance_seed, bool) or not isinstance(instance_seed, (int, np.integer)):
        raise BemError(f"instance_seed is {instance_seed!r}; it must be a whole number")
    if not 0 <= instance_seed < 2**64:
        raise BemError(f"instance_seed is {instance_seed}; allowed is 0 to 2**64 - 1")
    texts = {str(name): _text(name, value) for name, value in params.items()}
    return _bem.Game(family_of(family), texts, int(instance_seed))


def _observation_space(bits: int) -> spaces.Space:
    # A world that shows nothing shows the same one thing all the time.
    return spaces.MultiBinary(bits) if bits else spaces.Discrete(1)


class Env(gymnasium.Env):
    """One game of a family. Observations are bits, actions are numbers; rewards are in units.

    ``info["bad"]`` says that a step did something that must not happen.

    >>> env = Env("parity", n=4)
    >>> observation, info = env.reset(seed=7)
    >>> observation.shape, int(env.action_space.n), env.optimum
    ((4,), 2, 1.0)
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, family: str, *, instance_seed: int = 1, render_mode: str | None = None, **params: Any):
        if render_mode is not None:
            raise BemError(f"render_mode is {render_mode!r}; these environments are not rendered")
        self.game = _game(family, instance_seed, params)
        shape = self.game.shape()
        self.render_mode = None
        self.horizon: int = shape["horizon"]
        self.bits: int = shape["observation_bits"]
        self.observation_space = _observation_space(self.bits)
        self.action_space = spaces.Discrete(shape["actions"])
        self._episode = self.game.start()

    @property
    def optimum(self) -> float:
        """The expected return of the best policy."""
        return self.game.optimum

    @property
    def random(self) -> float:
        """The expected return of random play."""
        return self.game.random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        bits = self._episode.reset(int(self.np_random.integers(0, 2**63)))
        return (bits if self.bits else 0), {}

    def step(self, action: Any):
        if not self.action_space.contains(action) and not self.action_space.contains(_whole(action)):
            raise BemError(f"action {action!r} is out of range: this world takes 0 to {self.action_space.n - 1}")
        bits, reward, done, bad = self._episode.step(int(action))
        return (bits if self.bits else 0), reward / 1000, done, False, {"bad": bad}


def _whole(action: Any) -> Any:
    """A whole number however it is wrapped; anything else as it is."""
    try:
        array = np.asarray(action)
    except (TypeError, ValueError):
        return action
    return np.int64(array) if array.ndim == 0 and array.dtype.kind in "iu" else action


class VectorEnv(gymnasium.vector.VectorEnv):
    """Many episodes of one game side by side; 256 of them are one block of bits where the game has that form.

    An episode that is over is followed by the next one in the same step, so that what is seen is the new one. Episodes end
    by their own rules and are never cut off, so that nothing depends on the last observation. A list of seeds, one for each
    environment, is taken together: the same list brings the same episodes, and every seed of it counts.

    >>> envs = VectorEnv("parity", num_envs=512, n=16)
    >>> observations, _ = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, _ = envs.step(np.zeros(512, dtype=np.int64))
    >>> observations.shape, rewards.dtype, bool(terminated.all())
    ((512, 16), dtype('float64'), True)
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        family: str,
        num_envs: int = 256,
        *,
        instance_seed: int = 1,
        render_mode: str | None = None,
        sliced: bool = True,
        **params: Any,
    ):
        if render_mode is not None:
            raise BemError(f"render_mode is {render_mode!r}; these environments are not rendered")
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)) or not 1 <= num_envs < 2**31:
            raise BemError(f"num_envs is {num_envs!r}; it must be a whole number of at least 1, and fit in memory")
        self.game = _game(family, instance_seed, params)
        shape = self.game.shape()
        self.render_mode = None
        self.num_envs = int(num_envs)
        # First, because it refuses a number that no memory holds.
        self._lanes = _bem.Lanes(self.game, self.num_envs, sliced)
        self.horizon: int = shape["horizon"]
        self.bits: int = shape["observation_bits"]
        self.single_observation_space = _observation_space(self.bits)
        self.single_action_space = spaces.Discrete(shape["actions"])
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._nothing = np.zeros(self.num_envs, dtype=np.int64)
        self._never = np.zeros(self.num_envs, dtype=np.bool_)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=self._one_seed(seed) if isinstance(seed, (list, tuple, np.ndarray)) else seed)
        bits = self._lanes.reset(int(self.np_random.integers(0, 2**63)))
        return (bits if self.bits else self._nothing.copy()), {}

    def _one_seed(self, seeds: Any) -> int | None:
        """One seed that depends on all of a list: lanes that share their draws cannot each have a seed of its own."""
        if len(seeds) != self.num_envs:
            raise BemError(f"there are {len(seeds)} seeds for {self.num_envs} environments; give one seed, or one for each")
        for seed in seeds:
            if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
                raise BemError(f"a seed is {seed!r}; a whole number from 0 on is needed, or None")
        if all(seed is None for seed in seeds):
            return None
        known = [np.random.SeedSequence().entropy if seed is None else int(seed) for seed in seeds]
        return int(np.random.SeedSequence(known).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def step(self, actions: Any):
        array = np.asarray(actions)
        if array.dtype.kind not in "iu":
            raise BemError(f"actions are whole numbers, not {array.dtype}")
        bits, rewards, terminated, bad = self._lanes.step(np.ascontiguousarray(array, dtype=np.int64))
        return (bits if self.bits else self._nothing.copy()), rewards, terminated, self._never.copy(), {"bad": bad}


def make(name: str, **params: Any) -> Env:
    """The environment of a family, an id such as ``BEM/Parity-v0``, or a composition.

    >>> make("majority", n=5).action_space
    Discrete(2)
    >>> make("seq(parity{n=4},majority{n=5})").horizon
    2
    >>> make("parity", n=1000)
    Traceback (most recent call last):
    ...
    bem.BemError: family parity: parameter n cannot be "1000": it must be a whole number from 1 to 64
    """
    return Env(name, **params)


def make_vec(name: str, num_envs: int = 256, **params: Any) -> VectorEnv:
    """Many episodes of a family at once."""
    return VectorEnv(name, num_envs, **params)


def _register() -> None:
    for family, _, _ in _bem.families():
        if id_of(family) not in gymnasium.registry:
            gymnasium.register(
                id=id_of(family),
                entry_point="bem.envs:Env",
                vector_entry_point="bem.envs:VectorEnv",
                kwargs={"family": family},
            )


_register()
