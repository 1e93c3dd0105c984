"""A learner for any Gymnasium environment: trial and error in, a proven circuit out."""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any, Callable

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from bem import _bem, spaces
from bem._bem import BemError
from bem.circuit import Circuit
from bem.envs import Env
from bem.files import write_whole
from bem.wrappers import Binarize

_MAGIC = b"bem learner 1\n"
# A slice of work: Ctrl-C, callbacks and the progress bar wait for its end.
_SLICE_MS = 20
# Episodes and steps that are played at random to see how large rewards are, where nobody has said it.
_PROBE_EPISODES = 16
_PROBE_STEPS = 1_000


class _World:
    """An environment as the native learner asks it: whole numbers in, whole numbers out."""

    __slots__ = ("env", "encode", "decode")

    def __init__(self, env: gymnasium.Env, observations: spaces.Observations, actions: spaces.Actions):
        self.env, self.encode, self.decode = env, observations.encode, actions.decode

    def reset(self, seed: int) -> int:
        observation, _ = self.env.reset(seed=seed)
        return self.encode(observation)

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        observation, reward, terminated, truncated, info = self.env.step(self.decode(action))
        return self.encode(observation), float(reward), bool(terminated or truncated), bool(info.get("bad", False))


def _native(env: gymnasium.Env) -> _bem.Game | None:
    """The game behind an environment of BEM, if nothing in between changes what is seen, done or paid."""
    while isinstance(env, (OrderEnforcing, PassiveEnvChecker)):
        env = env.env
    return env.game if type(env) is Env else None


def config_text(config: Any) -> str:
    """A configuration as the text of its file: a mapping, a path, or the text itself.

    >>> config_text({"stationary": True})
    'stationary = true\\n'
    """
    if config is None:
        return ""
    if isinstance(config, dict):
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items())
    if isinstance(config, os.PathLike) or isinstance(config, str) and "\n" not in config and "=" not in config:
        return Path(config).read_text(encoding="utf-8")
    if isinstance(config, str):
        return config
    raise BemError(f"config is {type(config).__name__}; a mapping, a path or the text of a file is needed")


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise BemError(f"{name} is {value!r}; it must be a whole number")
    if not low <= value <= high:
        raise BemError(f"{name} is {value}; allowed is {low} to {high}")
    return int(value)


def _milli(name: str, bounds: Any) -> tuple[int, int]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise BemError(f"{name} is {bounds!r}; two numbers are needed") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise BemError(f"{name} is ({low}, {high}); the first must be the smaller, and both finite")
    return round(low * 1000), round(high * 1000)


def _rule_text(name: str, rules: Any, actions: spaces.Actions) -> str:
    """A list of rules as the native part reads it: actions by their number."""
    example = '[{"if": {"temp": ">= 28"}, "action": 1}]'
    if not isinstance(rules, (list, tuple)) or not all(isinstance(rule, dict) for rule in rules):
        raise BemError(f"{name} is {rules!r}; a list of rules is needed, such as {example}")
    told = []
    for place, rule in enumerate(rules):
        rule = dict(rule)
        if "action" in rule:
            named = rule["action"]
            try:
                is_list = isinstance(named, (list, tuple, np.ndarray))
                rule["action"] = [actions.code(action) for action in named] if is_list else actions.code(named)
            except BemError as error:
                raise BemError(f"{name} rule {place}: {error}") from None
        told.append(rule)
    try:
        return json.dumps(told, default=lambda value: value.item())
    except (AttributeError, TypeError, ValueError):
        raise BemError(f"{name} is {rules!r}; numbers, words and lists of them are needed, such as {example}") from None


class Learner:
    """Learns an environment by trial and error.

    ``env`` is any environment whose observations are ``Discrete``, ``MultiBinary``, ``MultiDiscrete`` or ``Tuple``/``Dict``
    of them; ``Box`` goes through :class:`bem.wrappers.Binarize`. A world without a step limit of its own needs ``horizon``.
    ``reward_range`` and ``return_range`` help where they are known; without the first, some random episodes show how
    large rewards are. Whether a seed brings an episode back is tried, unless ``repeats`` says it.

    ``forbid`` lists what must never be done, ``bad_if`` what is BAD besides what ``info["bad"]`` says: rules over the parts of
    an observation, ``[{"if": {"temp": ">= 28", "door": 1}, "action": 2}]``. A part is called by the way to it: the names of
    a ``Dict`` and the places in a ``Tuple`` or an array, joined by dots; the number of a ``Discrete`` space is ``obs``. What is
    forbidden, and what is BAD by a rule with an action, is never tried, not even at first, with a proof that
    no policy in force chooses it. Of action spaces with several parts an action is said by its number.

    Same environment, seed, configuration and steps: the same circuit, whether the steps come at once or in pieces.

    >>> import bem
    >>> learner = bem.Learner(bem.make("majority", n=5), seed=1)
    >>> _ = learner.learn(3_000)
    >>> action, state = learner.predict([1, 1, 0, 1, 0])
    >>> int(action), learner.num_timesteps
    (1, 3000)
    """

    def __init__(
        self,
        env: gymnasium.Env,
        seed: int = 1,
        config: Any = None,
        horizon: int | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        return_range: tuple[float, float] | None = None,
        repeats: bool | None = None,
        forbid: list[dict[str, Any]] | None = None,
        bad_if: list[dict[str, Any]] | None = None,
    ):
        if isinstance(env, gymnasium.vector.VectorEnv):
            raise BemError("a vectorised environment cannot be learned: give one environment")
        if not isinstance(env, gymnasium.Env):
            raise BemError(f"env is {type(env).__name__}; a Gymnasium environment is needed")
        self.seed = _whole("seed", seed, 0, 2**64 - 1)
        self._config = config_text(config)
        self._observations = spaces.Observations(env.observation_space)
        self._actions = spaces.Actions(env.action_space)
        self._name = _name_of(env)
        self._env = env
        self._circuit: Circuit | None = None
        self.probe_steps = _played_before(env)
        self._declared = None
        if forbid is not None or bad_if is not None:
            told = (_rule_text(name, rules or [], self._actions) for name, rules in (("bad_if", bad_if), ("forbid", forbid)))
            self._declared = [self._observations.features(), *told]
        rules = self._rules()
        game = _native(env)
        said = (horizon, reward_range, return_range, repeats, rules)
        if game is not None and all(part is None for part in said):
            self._repeats = True
            self._session = _bem.Session(game, None, self.seed, self._config, True, self._name)
            return
        limit = _step_limit(env)
        if horizon is None and limit is None:
            raise BemError("the environment has no step limit: say after how many steps an episode ends with horizon=...")
        given = [_whole("horizon", bound, 1, 2**31 - 1) for bound in (horizon, limit) if bound is not None]
        steps = min(given)
        world = _World(env, self._observations, self._actions)
        declared = _milli("reward_range", reward_range) if reward_range is not None else None
        if declared is None or repeats is None:
            seen, does_repeat = self._probe(world, steps, rules)
            declared = declared or seen
            repeats = does_repeat if repeats is None else repeats
        returns = _milli("return_range", return_range) if return_range is not None else None
        low, high = declared
        self._repeats = bool(repeats)
        shape = {
            "fields": self._observations.fields,
            "actions": self._actions.count,
            "horizon": steps,
            "reward_range": declared,
            "return_range": returns or (min(low, steps * low), max(high, steps * high)),
        }
        self._session = _bem.Session(world, shape, self.seed, self._config, self._repeats, self._name, rules)

    def _rules(self) -> _bem.Rules | None:
        """What is BAD and what must never be done, where somebody has said it."""
        return None if self._declared is None else _bem.Rules(*self._declared, self._actions.count)

    def _probe(self, world: _World, horizon: int, rules: _bem.Rules | None) -> tuple[tuple[int, int], bool]:
        """Plays at random: the range of rewards in milli-units, and whether a seed brings an episode back."""
        random = np.random.default_rng(self.seed)
        low, high, repeats, inexact, before = 0.0, 0.0, True, None, self.probe_steps
        for episode in range(_PROBE_EPISODES):
            seed, played = int(random.integers(0, 2**62)), []
            seen = [world.reset(seed)]
            while len(played) < min(horizon, _PROBE_STEPS):
                allowed = range(self._actions.count) if rules is None else rules.left(seen[-1])
                action = allowed[int(random.integers(0, len(allowed)))]
                answer = world.step(action)
                played.append((action, answer))
                seen.append(answer[0])
                low, high = min(low, answer[1]), max(high, answer[1])
                if abs(answer[1] * 1000 - round(answer[1] * 1000)) > 1e-6:
                    inexact = answer[1]
                if answer[2]:
                    break
            self.probe_steps += len(played)
            if episode == 0:
                repeats = seen[0] == world.reset(seed)
                for action, answer in played:
                    repeats = repeats and world.step(action) == answer
                    self.probe_steps += 1
                    if not repeats:
                        break
            if _PROBE_STEPS <= self.probe_steps - before:
                break
        if not np.isfinite([low, high]).all():
            raise BemError("the environment paid NaN or infinity; rewards are finite numbers")
        if inexact is not None:
            warnings.warn(
                f"the environment paid {inexact}: BEM counts rewards in thousandths and rounds what is finer",
                stacklevel=4,
            )
        if low == high:
            high = 1.0
        return (int(np.floor(low * 1000)), int(np.ceil(high * 1000))), repeats

    # What a user of Stable-Baselines3 expects.

    def learn(
        self,
        total_timesteps: int,
        callback: Callable[["Learner"], Any] | None = None,
        progress_bar: bool = False,
    ) -> "Learner":
        """Takes so many more steps in the environment, measuring candidates included.

        ``callback(learner)`` is called some times a second and stops by returning ``False``. Ctrl-C comes back at once;
        the learner is whole then, and ``learn`` goes on. A search or a proof that was under way is finished beside whatever
        is done next, and what asks for the learner before that waits for it.
        """
        steps = _whole("total_timesteps", total_timesteps, 0, 2**40)
        session, start = self._open(), self.num_timesteps
        bar = _bar(steps) if progress_bar else None
        self._circuit = None
        last, is_shared = time.monotonic(), True
        try:
            while True:
                is_done = session.run(start + steps, _SLICE_MS, is_shared)
                is_shared = False
                if bar is not None:
                    bar.update(min(self.num_timesteps - start, steps) - bar.n)
                now = time.monotonic()
                if callback is not None and (is_done or last + 0.1 < now):
                    last, self._circuit, is_shared = now, None, True
                    if callback(self) is False:
                        break
                if is_done:
                    break
        finally:
            self._circuit = None
            if bar is not None:
                bar.close()
        return self

    def predict(
        self,
        obs: Any,
        deterministic: bool = True,
        state: np.ndarray | None = None,
        episode_start: Any = None,
    ) -> tuple[Any, np.ndarray | None]:
        """The action of the frozen policy, and its memory for the next step.

        Takes one observation or an array of many. A policy without memory hands back ``None``. The frozen policy draws
        nothing, so that ``deterministic`` changes nothing; it is there for those who always say it.
        """
        words, is_many = self._observations.pack(obs)
        actions, state = self.circuit.act(words, state, episode_start)
        chosen = self._actions.decode_many(actions)
        if is_many:
            return chosen, state
        return chosen[0], (None if state is None else state[0])

    @property
    def num_timesteps(self) -> int:
        """Steps taken in the environment so far."""
        return self._open().steps

    @property
    def circuit(self) -> Circuit:
        """What acts when nothing is explored."""
        if self._circuit is None:
            self._circuit = Circuit(self._open().circuit())
        return self._circuit

    @property
    def online_mean(self) -> float | None:
        """The mean return of all episodes played while learning, exploration and measurements included."""
        return self.summary()["online_mean"]

    @property
    def proofs(self) -> int:
        """Proofs that the independent checker has accepted."""
        return self.summary()["proofs_checked"]

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Every decision about a change of the machine, in order, with its evidence."""
        return self._open().decisions()

    def summary(self) -> dict[str, Any]:
        """Counts, the hypothesis in words, and the head of the history; ``probe_steps`` were played at random before.

        ``unexplained`` is what the model cannot represent, if anything: in how many contexts acting surely earns less than
        was predicted, of how many that were compared, and how much less a step.
        """
        return {**self._open().state(), "probe_steps": self.probe_steps}

    def export(self, format: str = "c") -> Any:
        """The policy as a program or a circuit: c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot, net."""
        return self.circuit.export(format)

    def verify(self) -> dict[str, Any]:
        """Writes the history and audits it as ``bem verify`` does: conditions are stated, proofs are checked again."""
        return self._open().verify()

    def save_run(self, path: Any) -> Path:
        """Writes a folder that ``bem verify``, ``bem explain``, ``bem export`` and ``bem replay`` take."""
        ledger = Path(path) / "ledger"
        if ledger.exists():
            raise BemError(f"{path} holds a run already: name another folder")
        files = self._open().ledger()
        aside = ledger.with_name("ledger.tmp")
        aside.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (aside / name).write_bytes(content)
        aside.rename(ledger)
        return Path(path)

    # Saving and going on.

    def _to_bytes(self) -> bytes:
        spec = getattr(self._env, "spec", None)
        try:
            spec = spec.to_json() if spec is not None else None
        except (TypeError, ValueError):
            spec = None
        head = {
            "seed": self.seed,
            "config": self._config,
            "name": self._name,
            "repeats": self._repeats,
            "native": _native(self._env) is not None and self.probe_steps == 0 and self._declared is None,
            "rules": self._declared,
            "probe_steps": self.probe_steps,
            "observation_space": spaces.to_json(self._observations.space),
            "action_space": spaces.to_json(self._actions.space),
            "spec": spec,
        }
        text = json.dumps(head).encode()
        circuit, session = self.circuit.to_bytes(), self._open().to_bytes()
        sizes = b"".join(len(part).to_bytes(8, "little") for part in (text, circuit, session))
        return _MAGIC + sizes + text + circuit + session

    @classmethod
    def _from_bytes(cls, data: bytes, env: gymnasium.Env | None) -> "Learner":
        start = len(_MAGIC) + 24
        if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
            raise BemError("this is no saved learner, or one of another version")
        sizes = [int.from_bytes(data[len(_MAGIC) + 8 * place :][:8], "little") for place in range(3)]
        if len(data) != start + sum(sizes):
            raise BemError("the saved learner is cut off or has something added")
        try:
            head = json.loads(data[start : start + sizes[0]])
            observation_space, action_space = (
                spaces.from_json(head[name]) for name in ("observation_space", "action_space")
            )
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise BemError(f"the saved learner cannot be read: {error}") from None
        learner = cls.__new__(cls)
        learner.seed, learner._config, learner._name = head["seed"], head["config"], head["name"]
        learner._repeats, learner.probe_steps = head["repeats"], head["probe_steps"]
        # Learners that were saved before there were rules have none.
        learner._declared = head.get("rules")
        learner._observations = spaces.Observations(observation_space)
        learner._actions = spaces.Actions(action_space)
        learner._circuit = Circuit.from_bytes(data[start + sizes[0] : start + sizes[0] + sizes[1]])
        learner._env, learner._session = None, None
        learner._saved = (head, data[start + sizes[0] + sizes[1] :])
        if env is None and head["spec"] is not None:
            try:
                env = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(head["spec"]))
            except Exception:  # noqa: BLE001 - whatever is missing here, prediction needs no environment
                env = None
        if env is not None:
            learner.set_env(env)
        return learner

    def set_env(self, env: gymnasium.Env) -> "Learner":
        """Goes on in this environment; its spaces must be those that were learned."""
        pairs = ((env.observation_space, self._observations.space), (env.action_space, self._actions.space))
        if not all(spaces.are_same(*pair) for pair in pairs):
            raise BemError("this is another world than the one that the learner was saved in: its spaces differ")
        head, data = (None, self._session.to_bytes()) if self._session is not None else self._saved
        game = _native(env)
        is_native = game is not None and (head["native"] if head else self.probe_steps == 0 and self._declared is None)
        world = game if is_native else _World(env, self._observations, self._actions)
        self._session = _bem.Session.restore(data, world, self._repeats, self._name, self._rules())
        self._env = env
        return self

    def _open(self) -> _bem.Session:
        if self._session is None:
            raise BemError("the learner has no environment: give it one with set_env(env)")
        return self._session

    def save(self, path: Any) -> None:
        """Writes the learner to a file: :meth:`load` goes on bit for bit."""
        write_whole(path, self._to_bytes())

    @classmethod
    def load(cls, path: Any, env: gymnasium.Env | None = None) -> "Learner":
        """Reads a learner. Without ``env`` it is made by its id; without either, the learner predicts and does not learn."""
        return cls._from_bytes(Path(path).read_bytes(), env)

    def __reduce__(self):
        return _unpickle, (self._to_bytes(),)

    def __repr__(self) -> str:
        if self._session is None:
            return f"<bem.Learner {self._name}, without environment>"
        state = self.summary()
        return f"<bem.Learner {self._name}, {state['steps']} steps, {state['hypothesis']}>"


def _unpickle(data: bytes) -> Learner:
    return Learner._from_bytes(data, None)


def _name_of(env: gymnasium.Env) -> str:
    spec = getattr(env, "spec", None)
    if spec is not None:
        return spec.id
    game = _native(env)
    return game.text if game is not None else type(env.unwrapped).__name__


def _step_limit(env: gymnasium.Env) -> int | None:
    """After how many steps an episode ends, if the environment says it."""
    spec = getattr(env, "spec", None)
    if spec is not None and spec.max_episode_steps is not None:
        return int(spec.max_episode_steps)
    for name in ("_max_episode_steps", "horizon"):
        try:
            limit = env.get_wrapper_attr(name)
        except AttributeError:
            continue
        if isinstance(limit, (int, np.integer)):
            return int(limit)
    return None


def _played_before(env: gymnasium.Env) -> int:
    """Steps that wrappers have played at random to look for thresholds."""
    steps = 0
    while isinstance(env, gymnasium.Wrapper):
        steps += env.probe_steps if isinstance(env, Binarize) else 0
        env = env.env
    return steps


def _bar(steps: int):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise BemError("progress_bar=True needs tqdm: pip install tqdm") from None
    return tqdm(total=steps, unit="step")
