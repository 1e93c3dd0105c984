"""Many random calls with good, wrong and absurd arguments: whatever happens is an exception that Python knows."""

import os
import pickle
import random
import warnings

import bem
import gymnasium
import numpy as np
from gymnasium import spaces

# `cargo xtask python` tries some; BEM_CALLS=100000 tries them all.
CALLS = int(os.environ.get("BEM_CALLS", "20000"))
ABSURD = [
    None, -1, 0, 1, 2, 7, 2**31, 2**64, 2**70, -(2**70), 0.5, float("nan"), float("inf"), "", "parity", "\0", "{", b"", b"bem",
    [], [0], [0, 1, 0], [[0, 1, 0]], [[0, 1, 0]] * 5, [["a"]], {}, {"n": 3}, (), True, object(), np.zeros(3), np.zeros((0, 3), dtype=np.int8),
    np.zeros((4, 3), dtype=np.int8), np.ones((4, 3), dtype=np.uint8), np.full((4, 3), np.nan), np.zeros((2, 2, 2), dtype=np.int8),
    np.array(["x"]), np.zeros(4, dtype=np.int64), np.ones(4), np.array(1), np.zeros((3, 4), dtype=np.int8).T, spaces.Discrete(3),
]


class Whimsical(gymnasium.Env):
    """Answers with whatever comes to its mind, now and then."""

    observation_space = spaces.MultiBinary(3)
    action_space = spaces.Discrete(2)
    horizon = 3

    def __init__(self, draw):
        self.draw, self.steps = draw, 0

    def whim(self, value):
        return self.draw.choice(ABSURD) if self.draw.random() < 0.002 else value

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.whim(self.np_random.integers(0, 2, 3).astype(np.int8)), {}

    def step(self, action):
        self.steps += 1
        seen = self.np_random.integers(0, 2, 3).astype(np.int8)
        return self.whim(seen), self.whim(1.0), self.whim(self.steps == 3), False, {}


def test_no_panic_crosses_the_boundary(tmp_path, monkeypatch):
    # Names of files may be absurd, too.
    monkeypatch.chdir(tmp_path)
    draw = random.Random(int(os.environ.get("BEM_SEED", "1")))
    learner = bem.Learner(bem.make("parity", n=3), seed=1).learn(600)
    odd = bem.Learner(Whimsical(random.Random(3)), seed=1, reward_range=(0, 1), repeats=True)
    bandit = bem.ContextualBandit(3, 3, seed=1)
    circuit, saved, kept = learner.circuit, learner._to_bytes(), bandit._native.to_bytes()
    state = bem.bandit._state(bandit)
    env, envs = bem.make("parity", n=3), bem.make_vec("parity", 4, n=3)
    learner.save("learner")
    bandit.save("bandit")

    def any_of(*good):
        return draw.choice(good) if good and draw.random() < 0.6 else draw.choice(ABSURD)

    def damaged(data):
        data = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])

    def damaged_file(data):
        with open("damaged", "wb") as file:
            file.write(damaged(data))
        return "damaged"

    bits = [np.array([1, 0, 1], dtype=np.int8), [0, 0, 1], np.zeros((4, 3), dtype=np.int8)]
    calls = [
        lambda: learner.predict(any_of(*bits)),
        lambda: learner.predict(any_of(*bits), state=any_of(None)),
        lambda: learner.predict(any_of(*bits), episode_start=any_of(None, True)),
        lambda: learner.learn(any_of(1, 5)) if draw.random() < 0.05 else None,
        lambda: odd.learn(draw.choice([1, 20])) if draw.random() < 0.2 else None,
        lambda: learner.export(any_of("c", "verilog", "aiger", "blif")),
        lambda: learner.summary(),
        lambda: learner.set_env(any_of(env)),
        lambda: learner.decisions,
        lambda: learner.verify() if draw.random() < 0.05 else None,
        lambda: odd.decisions,
        lambda: odd.verify() if draw.random() < 0.05 else None,
        lambda: learner.save(any_of("learner", tmp_path / "learner")) if draw.random() < 0.1 else None,
        lambda: bem.Learner.load(any_of("learner", tmp_path), any_of(env, None)) if draw.random() < 0.2 else None,
        lambda: bem.Learner.load(damaged_file(saved), any_of(env, None)) if draw.random() < 0.2 else None,
        lambda: learner.save_run(any_of("run", tmp_path)) if draw.random() < 0.05 else None,
        lambda: pickle.loads(pickle.dumps(draw.choice([learner, bandit, circuit]))) if draw.random() < 0.1 else None,
        lambda: bem.learner._unpickle(any_of(saved, damaged(saved))) if draw.random() < 0.1 else None,
        lambda: circuit(any_of(*bits)),
        lambda: circuit.act(any_of(np.zeros((2, 1), dtype=np.uint64)), any_of(None)),
        lambda: bem.Circuit.parse(any_of(b"aag 0 0 0 0 0\n", "net")),
        lambda: bem.Circuit.from_bytes(damaged(circuit.to_bytes())),
        lambda: bem.Learner._from_bytes(damaged(saved), env) if draw.random() < 0.1 else None,
        lambda: type(bandit._native).from_bytes(damaged(kept)) if draw.random() < 0.1 else None,
        lambda: bandit.summary(),
        lambda: bandit.online_mean,
        lambda: bandit.export(any_of("c", "net")),
        lambda: bandit.save(any_of("bandit", tmp_path / "bandit")) if draw.random() < 0.1 else None,
        lambda: bem.ContextualBandit.load(any_of("bandit", tmp_path)) if draw.random() < 0.2 else None,
        lambda: bem.ContextualBandit.load(damaged_file(state)) if draw.random() < 0.2 else None,
        lambda: bem.bandit._unpickle(any_of(state, damaged(state))) if draw.random() < 0.1 else None,
        lambda: bandit.predict(any_of(*bits)),
        lambda: bandit.decide(any_of(*bits[:2])),
        lambda: bandit.reward(any_of(0, 1, 2, 3), any_of(0.0, 1.0)),
        lambda: bandit.partial_fit(any_of(bits[2]), any_of(np.zeros(4, dtype=np.int64)), any_of(np.ones(4)), any_of(None)),
        lambda: bem.ContextualBandit(any_of(2), any_of(3), any_of(1), reward_range=any_of((0, 1))),
        lambda: bem.make(any_of("parity", "dyck", "seq(parity{n=2},parity{n=3})"), n=any_of(3)),
        lambda: bem.make_vec(any_of("parity"), any_of(2, 4)) if draw.random() < 0.3 else None,
        lambda: env.reset(seed=any_of(1, None)),
        lambda: env.step(any_of(0, 1, np.int64(1))),
        lambda: envs.reset(seed=any_of(1, None)),
        lambda: envs.step(any_of(np.zeros(4, dtype=np.int64))),
        lambda: bem.Learner(any_of(env), seed=any_of(1), horizon=any_of(None, 3)) if draw.random() < 0.1 else None,
        lambda: bem.wrappers.Binarize(any_of(env), levels=any_of(4)) if draw.random() < 0.1 else None,
    ]
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            try:
                draw.choice(calls)()
            except Exception:  # noqa: BLE001 - a panic is a BaseException, and is what must not come
                refused += 1
    assert CALLS // 20 < refused < CALLS
    assert learner.verify()["verdict"] == odd.verify()["verdict"] == "unanchored"
    assert learner.predict([1, 0, 0])[0] == 1
    learner.save("last")
    assert bem.Learner.load("last", env).summary()["trace_head"] == learner.summary()["trace_head"]
