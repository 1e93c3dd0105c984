"""The learner on environments of others: spaces, resuming, auditing, export, and worlds that misbehave."""

import json
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import bem
import gymnasium
import numpy as np
import pytest
from exact import Table
from interrupting import interrupted
from gymnasium import spaces

SAMPLE_STEPS = {"FrozenLake-v1": 150_000, "CliffWalking-v1": 40_000}


class Echo(gymnasium.Env):
    """Pays one for repeating a part of what is seen, in a space of one's choice."""

    def __init__(self, space, right, actions=spaces.Discrete(2), horizon=1):
        self.observation_space, self.action_space, self.right, self.horizon = space, actions, right, horizon

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps, self.seen = 0, self.observation_space.sample()
        return self.seen, {}

    def step(self, action):
        reward = float(np.array_equal(action, self.right(self.seen)))
        self.steps, self.seen = self.steps + 1, self.observation_space.sample()
        return self.seen, reward, self.steps >= self.horizon, False, {}


SPACES = {
    "Discrete": (spaces.Discrete(8, start=-3), lambda seen: int(seen >= 1), spaces.Discrete(2)),
    "MultiBinary": (spaces.MultiBinary([2, 3]), lambda seen: int(seen[1, 2]), spaces.Discrete(2, start=0)),
    "MultiDiscrete": (spaces.MultiDiscrete([3, 5]), lambda seen: int(seen[0] == 2), spaces.Discrete(2)),
    "Tuple": (spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(3)]), lambda seen: int(seen[1][0]), spaces.Discrete(2)),
    "Dict": (
        spaces.Dict({"door": spaces.Discrete(2), "rest": spaces.MultiDiscrete([4, 4])}),
        lambda seen: int(seen["door"]),
        spaces.Discrete(2),
    ),
    "MultiBinary action": (spaces.MultiBinary(2), lambda seen: seen, spaces.MultiBinary(2)),
    "MultiDiscrete action": (spaces.Discrete(3), lambda seen: [seen, 1], spaces.MultiDiscrete([3, 2])),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_space_is_learned(name):
    space, right, actions = SPACES[name]
    learner = bem.Learner(Echo(space, right, actions), seed=1).learn(6_000)
    space.seed(9)
    wrong = 0
    for _ in range(200):
        seen = space.sample()
        action, state = learner.predict(seen)
        assert action in actions or int(action) in actions
        wrong += not np.array_equal(action, right(seen))
    assert wrong == 0 and state is None
    assert learner.verify()["verdict"] == "unanchored"


@pytest.mark.parametrize("name", SAMPLE_STEPS)
def test_a_sample_of_toy_text_is_learned_to_one_percent_of_its_exact_optimum(name):
    horizon = 100
    env = gymnasium.make(name, max_episode_steps=horizon)
    table = Table(env, horizon)
    learner = bem.Learner(env, seed=1).learn(SAMPLE_STEPS[name])
    assert learner.num_timesteps == SAMPLE_STEPS[name]
    optimum, value = table.optimum(), table.value(learner)
    assert value <= optimum + 1e-9
    assert optimum - value <= 0.01 * abs(optimum), (value, optimum)


class Warm(gymnasium.Env):
    """Action 2 pays best and must not be taken from 28 on; else what the door says pays."""

    observation_space = spaces.Dict(
        {
            "temp": spaces.Discrete(100, start=-40),
            "rest": spaces.MultiDiscrete([64, 24]),
            "door": spaces.Discrete(2),
        }
    )
    action_space = spaces.Discrete(3, start=1)
    horizon = 4

    def _look(self):
        draw = self.np_random.integers
        self.seen = {"temp": int(draw(-40, 60)), "rest": draw(0, [64, 24]), "door": int(draw(0, 2))}
        return self.seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):
        assert not (self.seen["temp"] >= 28 and action == 3), "the forbidden action was tried"
        reward = 1.0 if action == 3 else 0.6 * float(action - 1 == self.seen["door"])
        self.steps += 1
        return self._look(), reward, self.steps >= 4, False, {}


WARM = [{"if": {"temp": ">= 28"}, "action": 3}]


def test_what_is_forbidden_is_never_tried_also_after_it_was_saved(tmp_path):
    learner = bem.Learner(Warm(), seed=1, forbid=WARM).learn(8_000)
    assert learner.probe_steps > 0
    first = learner.decisions[0]
    assert first["kind"] == "GUARD" and first["accepted"] and first["proofs"] > 0
    assert learner.verify()["verdict"] == "unanchored"
    learner.save(tmp_path / "warm")
    again = bem.Learner.load(tmp_path / "warm", env=Warm()).learn(500)
    draw = np.random.default_rng(1)
    for temp in range(-40, 60):
        seen = {"temp": temp, "rest": draw.integers(0, [64, 24]), "door": int(draw.integers(0, 2))}
        action, _ = again.predict(seen)
        assert temp < 28 or action != 3, seen


def test_rules_make_a_step_bad_and_wrong_ones_are_named():
    # Without an action a rule is about what is seen after a step: nothing is forbidden, much is BAD.
    learner = bem.Learner(Warm(), seed=1, forbid=WARM, bad_if=[{"if": {"rest.1": ">= 12"}}]).learn(500)
    assert learner.num_timesteps == 500
    for rules, words in [
        ({"forbid": [{"if": {"heat": 1}, "action": 1}]}, "\"heat\" is no feature; there are door, rest.0, rest.1, temp"),
        ({"forbid": [{"if": {"door": 1}}]}, "\"action\" is missing"),
        ({"forbid": [{"if": {"door": 1}, "action": 4}]}, "forbid rule 0: the action 4 is none; it must be 1 to 3"),
        ({"forbid": [{"if": {"door": 1}, "action": [1, 2, 3]}]}, "every action is forbidden for some observation"),
        ({"bad_if": "never"}, "a list of rules is needed"),
    ]:
        with pytest.raises(bem.BemError, match=re.escape(words)):
            bem.Learner(Warm(), **rules)


def head(learner):
    return learner.summary()["trace_head"], learner.circuit.digest, learner.num_timesteps


def test_steps_in_pieces_saving_and_pickling_change_nothing(tmp_path):
    def env():
        return gymnasium.make("FrozenLake-v1", is_slippery=True)

    whole = head(bem.Learner(env(), seed=4).learn(9_000))
    pieces = bem.Learner(env(), seed=4)
    for steps in (1, 2, 997, 3_000):
        pieces.learn(steps)
        # Somebody else uses the environment meanwhile.
        pieces._env.reset(seed=99)
    pieces.save(tmp_path / "learner")
    loaded = bem.Learner.load(tmp_path / "learner").learn(2_000)
    pickled = pickle.loads(pickle.dumps(loaded)).learn(3_000)
    assert head(pickled) == whole
    assert head(bem.Learner(env(), seed=5).learn(9_000)) != whole
    broken = (tmp_path / "learner").read_bytes()
    for cut in (0, 10, 60, len(broken) - 1):
        (tmp_path / "cut").write_bytes(broken[:cut])
        with pytest.raises(bem.BemError):
            bem.Learner.load(tmp_path / "cut")


def test_a_native_world_and_the_same_world_in_python_learn_as_well():
    native = bem.Learner(bem.make("parity", n=6), seed=2).learn(2_000)
    wrapped = bem.Learner(gymnasium.wrappers.TransformReward(bem.make("parity", n=6), lambda paid: paid), seed=2)
    wrapped.learn(2_000)
    rows = np.array([[row >> bit & 1 for bit in range(6)] for row in range(64)], dtype=np.int8)
    right = rows.sum(axis=1) % 2
    for learner in (native, wrapped):
        assert (learner.predict(rows)[0] == right).all()
    assert native.probe_steps == 0 < wrapped.probe_steps
    assert native.proofs and native.online_mean > 0.5


def test_memory_is_carried_from_step_to_step():
    learner = bem.Learner(bem.make("parity_stream", n=4), seed=1).learn(30_000)
    env, total = bem.make("parity_stream", n=4), 0.0
    for seed in range(100):
        observation, _ = env.reset(seed=seed)
        done, state = False, None
        while not done:
            action, state = learner.predict(observation, state=state)
            observation, reward, done, _, _ = env.step(action)
            total += reward
    assert learner.circuit.memory_bits and state is not None
    assert total / 100 > 0.99 * env.optimum
    batch = np.stack([observation, observation])
    actions, states = learner.predict(batch, state=np.stack([state, state]), episode_start=[True, False])
    assert actions[0] == learner.predict(observation)[0] and states.shape[0] == 2


def test_runs_are_taken_by_the_command_line(tmp_path):
    program = os.environ.get("BEM_PROGRAM")
    learner = bem.Learner(gymnasium.make("CliffWalking-v1", max_episode_steps=50), seed=1).learn(4_000)
    folder = learner.save_run(tmp_path / "run")
    with pytest.raises(bem.BemError, match="holds a run already"):
        learner.save_run(folder)
    if not program:
        pytest.skip("BEM_PROGRAM is not set: cargo xtask test sets it")
    for words in (["verify", folder], ["replay", folder], ["export", folder, "--format", "c"]):
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


C_DRIVER = """#include <stdint.h>
#include <stdio.h>
#include "policy.h"
int main(void) {
  uint8_t row[12];
  while (fread(row, 1, 12, stdin) == 12) {
    bem_state state;
    bem_reset(&state);
    putchar(bem_decide(&state, row));
  }
  return 0;
}
"""


def test_exported_c_answers_as_predict_does(tmp_path):
    learner = bem.Learner(bem.make("compare", bits=6), seed=1).learn(5_000)
    (tmp_path / "policy.h").write_text(learner.export("c"))
    rows = np.random.default_rng(1).integers(0, 2, (1_000_000, 12)).astype(np.int8)
    (tmp_path / "main.c").write_text(C_DRIVER)
    subprocess.run(["cc", "-O1", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    answered = subprocess.run([tmp_path / "main"], input=rows.tobytes(), capture_output=True, check=True).stdout
    assert (np.frombuffer(answered, dtype=np.uint8) == learner.predict(rows)[0]).all()


# Worlds that misbehave.


class Faulty(Echo):
    """Fails in its own way at some step."""

    def __init__(self, fault, at=500):
        super().__init__(spaces.MultiBinary(3), lambda seen: int(seen[0]), horizon=3)
        self.fault, self.at, self.count = fault, at, 0

    def step(self, action):
        self.count += 1
        answer = list(super().step(action))
        if self.count == self.at:
            self.fault(answer)
        return tuple(answer)


def raise_it(_answer):
    raise ZeroDivisionError("the world fell over")


def put(place, value):
    return lambda answer: answer.__setitem__(place, value)


FAULTS = {
    "raises": (raise_it, ZeroDivisionError, "fell over"),
    "NaN reward": (put(1, float("nan")), ValueError, "paid NaN"),
    "infinite reward": (put(1, float("inf")), ValueError, "paid inf"),
    "huge reward": (put(1, 1e12), ValueError, "a reward is a number from"),
    "no reward": (put(1, None), TypeError, "NoneType"),
    "wrong shape": (put(0, np.zeros(4, dtype=np.int8)), bem.BemError, "shape"),
    "out of its space": (put(0, np.full(3, 7, dtype=np.int8)), bem.BemError, "out of its space"),
    "NaN observation": (put(0, np.full(3, np.nan)), bem.BemError, "NaN"),
    "text observation": (put(0, np.array(["a", "b", "c"])), bem.BemError, "whole numbers are needed"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_faulty_world_taught_is_kept(name):
    fault, error, words = FAULTS[name]
    learner = bem.Learner(Faulty(fault), seed=1)
    with pytest.raises(error, match=words):
        learner.learn(20_000)
    steps = learner.num_timesteps
    assert 0 < steps < 500 and learner.summary()["abandoned"] == 1
    learner.learn(6_000)
    assert learner.num_timesteps == steps + 6_000
    assert learner.predict([1, 0, 0])[0] == 1 and learner.predict([0, 1, 1])[0] == 0
    assert learner.verify()["verdict"] == "unanchored"


class Endless(Echo):
    def __init__(self):
        super().__init__(spaces.MultiBinary(2), lambda seen: int(seen[0]), horizon=10**9)
        del self.horizon

    def step(self, action):
        reward = float(action == self.seen[0])
        self.seen = self.observation_space.sample()
        return self.seen, reward, False, False, {}


def test_a_world_without_end_needs_a_horizon():
    with pytest.raises(bem.BemError, match="no step limit.*horizon="):
        bem.Learner(Endless())
    learner = bem.Learner(Endless(), horizon=5).learn(6_000)
    assert learner.predict([1, 0])[0] == 1 and learner.predict([0, 1])[0] == 0


class Careless(Echo):
    """Takes no notice of seeds."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


def test_a_world_that_does_not_repeat_is_noticed_and_learned():
    env = Careless(spaces.MultiBinary(4), lambda seen: int(seen[3]), horizon=2)
    learner = bem.Learner(env, seed=1).learn(12_000)
    assert learner.summary()["repeats"] is False
    rows = np.array([[row >> bit & 1 for bit in range(4)] for row in range(16)], dtype=np.int8)
    assert (learner.predict(rows)[0] == rows[:, 3]).all()
    # Who claims otherwise is refuted by the pairs.
    claimed = bem.Learner(Careless(spaces.MultiBinary(4), lambda seen: int(seen[3]), horizon=2), seed=1, repeats=True)
    claimed.learn(8_000)
    assert claimed.summary()["repeats"] is False


def test_wrong_arguments_are_named():
    env = bem.make("parity", n=4)
    for words, call in {
        "seed is -1": lambda: bem.Learner(env, seed=-1),
        "seed is 1.5": lambda: bem.Learner(env, seed=1.5),
        "a Gymnasium environment": lambda: bem.Learner("FrozenLake-v1"),
        "vectorised": lambda: bem.Learner(bem.make_vec("parity", 4)),
        "Binarize": lambda: bem.Learner(gymnasium.make("CartPole-v1")),
        "action space is Box": lambda: bem.Learner(Echo(spaces.Discrete(2), int, spaces.Box(0, 1))),
        "at most 256": lambda: bem.Learner(Echo(spaces.MultiBinary(257), int)),
        "horizon is 0": lambda: bem.Learner(env, horizon=0),
        "reward_range": lambda: bem.Learner(env, reward_range=(1, 0)),
        "configuration: ": lambda: bem.Learner(env, config={"no_such": 1}),
        "allowed is \"directory\"": lambda: bem.Learner(env, config={"router": "hamming"}),
        "total_timesteps is -1": lambda: bem.Learner(env).learn(-1),
        "shape": lambda: bem.Learner(env).predict([1, 0]),
        "out of its space": lambda: bem.Learner(env).predict([2, 0, 0, 0]),
        "NaN": lambda: bem.Learner(env).predict([np.nan, 0, 0, 0]),
        "whole numbers": lambda: bem.Learner(env).predict([0.5, 0, 0, 0]),
        "format 'cobol'|format \"cobol\"": lambda: bem.Learner(env).export("cobol"),
        "its spaces differ": lambda: bem.Learner(env).set_env(bem.make("parity", n=5)),
    }.items():
        with pytest.raises(bem.BemError, match=words):
            call()


def test_ctrl_c_stops_at_once_and_costs_nothing():
    def env():
        return gymnasium.make("FrozenLake-v1", is_slippery=True)

    learner = bem.Learner(env(), seed=3)
    waited = interrupted(lambda: learner.learn(10_000_000), 0.4)
    assert waited.is_prompt(), waited
    steps = learner.num_timesteps
    assert 0 < steps
    learner.learn(3_000)
    assert head(learner) == head(bem.Learner(env(), seed=3).learn(steps + 3_000))


def test_an_interrupt_in_the_middle_of_a_thought_loses_nothing_of_it():
    """Searches and proofs go on beside whoever interrupted; what is asked next waits for their end."""
    learner = bem.Learner(bem.make("dyck"), seed=3)
    for pause in (0.01, 0.03, 0.05, 0.08, 0.11, 0.15):
        waited = interrupted(lambda: learner.learn(10_000_000), pause)
        assert waited.is_prompt(), waited
        # A copy is taken of what stands after the thought.
        again = pickle.loads(pickle.dumps(learner))
        again.set_env(bem.make("dyck"))
        assert head(again) == head(learner)
    steps = learner.num_timesteps
    assert steps == learner.summary()["steps"]
    assert head(learner.learn(2_000)) == head(bem.Learner(bem.make("dyck"), seed=3).learn(steps + 2_000))


def test_an_interrupt_while_a_learner_is_audited_or_saved_comes_back_and_loses_nothing(tmp_path):
    learner = bem.Learner(bem.make("majority", n=9), seed=2).learn(20_000)
    before = head(learner)
    for call in (learner.verify, lambda: learner.save(tmp_path / "learner"), lambda: pickle.dumps(learner)):
        waited = interrupted(call, 0.05)
        assert waited.is_prompt(), waited
        assert head(learner) == before
    assert learner.verify()["verdict"] == "unanchored"
    assert head(learner.learn(100)) == head(bem.Learner(bem.make("majority", n=9), seed=2).learn(20_100))


def test_errors_are_found_where_they_are_looked_for_and_go_through_pickles():
    error = pickle.loads(pickle.dumps(bem.BemError("words")))
    assert type(error) is bem.BemError and bem.BemError.__module__ == "bem" and error.args == ("words",)
    learner = bem.Learner(bem.make("parity", n=3), seed=1).learn(600)
    assert learner.predict(obs=[1, 0, 0], deterministic=True)[0] == 1


@pytest.mark.skipif("BEM_PROGRAM" not in os.environ, reason="BEM_PROGRAM names the program")
def test_an_ordinary_environment_with_a_table_is_climbed_as_a_ladder(tmp_path):
    """FrozenLake over horizon and ice: its optimum is worked out from its table by the program that speaks for it."""
    root = Path(__file__).resolve().parents[2]
    words = ["run", "--world", "examples/worlds/frozen_lake.toml", "--stages", "3", "--steps", "60000", "--unit-steps", "10000"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [os.environ["BEM_PROGRAM"], *words, "--out", str(tmp_path / "run"), "--json"],
        cwd=root, env={**os.environ, "PATH": path, "XDG_STATE_HOME": str(tmp_path)}, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report["ladder"]["settings"]) == 6
    # Rows are in the order of their medians by construction; that two halves of the runs order them alike is not.
    assert 0.8 <= report["ladder"]["rank_correlation"], report["ladder"]
    assert report["families"][0]["rungs"] == 3 and 2 <= report["families"][0]["rungs_solved"], report["families"]


def test_callbacks_see_the_learner_and_may_stop_it():
    seen = []

    def callback(learner):
        seen.append((learner.num_timesteps, learner.predict(0)[0]))
        return len(seen) < 3

    learner = bem.Learner(gymnasium.make("FrozenLake-v1"), seed=1)
    learner.learn(10_000_000, callback=callback, progress_bar=True)
    assert len(seen) == 3 and seen[0][0] < seen[2][0]


def test_other_threads_wait_their_turn_or_are_told():
    learner = bem.Learner(gymnasium.make("FrozenLake-v1"), seed=1)
    errors = []

    def work():
        try:
            learner.learn(3_000)
        except RuntimeError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("another thread" in error for error in errors)
    assert 0 < learner.num_timesteps


def test_numbers_become_levels_of_thresholds_that_bem_finds():
    class Thermometer(gymnasium.Env):
        observation_space = spaces.Box(-np.inf, np.inf, (1,), dtype=np.float64)
        action_space = spaces.Discrete(2)
        horizon = 1

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.seen = self.np_random.normal(20, 5, 1)
            return self.seen, {}

        def step(self, action):
            return self.seen, float(action == (self.seen[0] > 20)), True, False, {}

    env = bem.wrappers.Binarize(Thermometer(), levels=16, samples=500)
    assert env.observation_space.nvec[0] == 16
    learner = bem.Learner(env, seed=1).learn(10_000)
    assert learner.predict(env.observation(np.array([10.0])))[0] == 0
    assert learner.predict(env.observation(np.array([30.0])))[0] == 1
    with pytest.raises(bem.BemError, match="NaN"):
        env.observation(np.array([np.nan]))
    with pytest.raises(bem.BemError, match="infinite"):
        bem.wrappers.Binarize(Thermometer(), samples=0)


def test_numbers_beside_other_parts_become_levels_and_random_play_is_counted():
    class Room(gymnasium.Env):
        observation_space = spaces.Dict(
            door=spaces.Discrete(2),
            air=spaces.Tuple([spaces.Box(-np.inf, np.inf, (2, 1), dtype=np.float64), spaces.MultiBinary(1)]),
        )
        action_space = spaces.Discrete(2)
        horizon = 1

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.seen = {
                "door": int(self.np_random.integers(2)),
                "air": (self.np_random.normal(20, 5, (2, 1)), self.np_random.integers(0, 2, 1).astype(np.int8)),
            }
            return self.seen, {}

        def step(self, action):
            is_warm = self.seen["air"][0][1, 0] > 20
            return self.seen, float(action == is_warm), True, False, {}

    env = bem.wrappers.Binarize(Room(), levels=8, samples=400)
    assert env.observation_space["air"][0] == spaces.MultiDiscrete([8, 8])
    assert env.observation_space["door"] == spaces.Discrete(2)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    learner = bem.Learner(env, seed=1)
    assert env.probe_steps == 400 and 400 < learner.probe_steps
    assert learner.learn(10_000).summary()["probe_steps"] == learner.probe_steps
    for warmth in (10.0, 30.0):
        room = {"door": 1, "air": (np.array([[20.0], [warmth]]), np.array([0], dtype=np.int8))}
        assert learner.predict(env.observation(room))[0] == (warmth > 20)
    with pytest.raises(bem.BemError, match="air.0"):
        env.observation({"door": 1})
    with pytest.raises(bem.BemError, match="needs a Box in it"):
        bem.wrappers.Binarize(bem.make("parity"))
