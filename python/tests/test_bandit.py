"""The contextual bandit: live decisions, late rewards, logged data, bytes, and wrong input."""

import os
import pickle

import bem
import numpy as np
import pytest
from interrupting import interrupted


def contexts(count, bits, seed):
    return np.random.default_rng(seed).integers(0, 2, (count, bits)).astype(np.int8)


def test_rewards_come_late_or_never_and_are_learned_from():
    bandit, waiting = bem.ContextualBandit(n_actions=4, n_bits=6, seed=1), []
    random = np.random.default_rng(1)
    for place, context in enumerate(contexts(6_000, 6, 2)):
        decision = bandit.decide(context)
        assert 0 < decision.propensity <= 1
        waiting.append((decision, float(decision.action == 2 * context[4] + context[1])))
        if random.integers(0, 10) == 0:
            waiting.pop()
        if place % 50 == 49:
            random.shuffle(waiting)
            while len(waiting) > 20:
                bandit.reward(*waiting.pop())
    rows = contexts(500, 6, 3)
    assert (bandit.predict(rows) == 2 * rows[:, 4] + rows[:, 1]).all()
    assert bandit.online_mean > 0.5 and bandit.circuit.observation_bits == 6


def test_a_log_with_propensities_is_learned_from():
    random = np.random.default_rng(5)
    rows = contexts(20_000, 4, 4)
    # The logging policy favours action 0 where bit 3 is set.
    first = np.where(rows[:, 3] == 1, 0.8, 0.3)
    actions = (random.random(len(rows)) >= first).astype(np.int64)
    chances = np.where(actions == 0, first, 1 - first)
    rewards = (random.random(len(rows)) < np.where(actions == rows[:, 0], 0.8, 0.3)).astype(float)
    bandit = bem.ContextualBandit(2, 4, seed=1).partial_fit(rows, actions, rewards, chances)
    assert (bandit.predict(rows[:100]) == rows[:100, 0]).all()


def test_bytes_and_pickles_go_on_bit_for_bit(tmp_path):
    def play(bandit, start, stop):
        for context in contexts(3_000, 5, 7)[start:stop]:
            decision = bandit.decide(context)
            bandit.reward(decision, float(decision.action == context[2]))
        return bandit

    whole = play(bem.ContextualBandit(3, 5, seed=2), 0, 3_000)
    half = play(bem.ContextualBandit(3, 5, seed=2), 0, 1_234)
    half.save(tmp_path / "bandit")
    parts = play(pickle.loads(pickle.dumps(bem.ContextualBandit.load(tmp_path / "bandit"))), 1_234, 3_000)
    assert parts._native.to_bytes() == whole._native.to_bytes()
    data = (tmp_path / "bandit").read_bytes()
    for cut in (0, 30, len(data) // 2, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises(bem.BemError):
            bem.ContextualBandit.load(tmp_path / "cut")


def test_an_interrupted_log_keeps_the_rows_that_were_taken_in():
    random = np.random.default_rng(6)
    rows = contexts(120_000, 8, 9)
    actions = random.integers(0, 4, len(rows))
    rewards = (actions == rows[:, 0] + 2 * rows[:, 3]).astype(float)
    whole = bem.ContextualBandit(4, 8, seed=3).partial_fit(rows, actions, rewards)
    bandit = bem.ContextualBandit(4, 8, seed=3)
    waited = interrupted(lambda: bandit.partial_fit(rows, actions, rewards), 0.2, again=False)
    assert waited.is_prompt(), waited
    taken = bandit.summary()["rewards"]
    assert 0 < taken < len(rows)
    bandit.partial_fit(rows[taken:], actions[taken:], rewards[taken:])
    assert bandit._native.to_bytes() == whole._native.to_bytes()


def test_saving_that_breaks_off_leaves_the_file_of_before(tmp_path, monkeypatch):
    bandit = bem.ContextualBandit(2, 3)
    bandit.save(tmp_path / "bandit")
    before = (tmp_path / "bandit").read_bytes()
    bandit.reward(bandit.decide([0, 1, 0]), 1.0)

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError):
        bandit.save(tmp_path / "bandit")
    assert (tmp_path / "bandit").read_bytes() == before


def test_wrong_input_is_named_and_nothing_is_taken_in():
    bandit = bem.ContextualBandit(2, 3)
    rows, actions, rewards = contexts(4, 3, 1), np.zeros(4, dtype=np.int64), np.zeros(4)
    decision = bandit.decide([0, 1, 0])
    for words, call in {
        "n_actions is 0": lambda: bem.ContextualBandit(0, 3),
        "n_bits is 999": lambda: bem.ContextualBandit(2, 999),
        "reward_range": lambda: bem.ContextualBandit(2, 3, reward_range=(1, 1)),
        "min_propensity": lambda: bem.ContextualBandit(2, 3, min_propensity=2),
        "shape": lambda: bandit.predict([[0, 1]]),
        "0 or 1": lambda: bandit.predict([[0, 1, 2]]),
        "not float64": lambda: bandit.predict([[0, 1, np.nan]]),
        "one context": lambda: bandit.decide(rows),
        "does not wait": lambda: bandit.reward(77, 1.0),
        "reward 2": lambda: bandit.reward(decision, 2.0),
        "reward NaN": lambda: bandit.reward(decision, float("nan")),
        "a number is needed": lambda: bandit.reward(decision, "much"),
        "as many of each": lambda: bandit.partial_fit(rows, actions, rewards[:2]),
        "action 5 of row 1": lambda: bandit.partial_fit(rows, np.array([0, 5, 0, 0]), rewards),
        "row 2: reward 9": lambda: bandit.partial_fit(rows, actions, np.array([0, 0, 9, 0])),
        "propensity 0": lambda: bandit.partial_fit(rows, actions, rewards, np.zeros(4)),
        "whole numbers": lambda: bandit.partial_fit(rows, rewards, rewards),
    }.items():
        with pytest.raises(bem.BemError, match=words):
            call()
    assert bandit.summary()["rewards"] == 0
    bandit.reward(decision, 1.0)
    with pytest.raises(bem.BemError, match="was rewarded"):
        bandit.reward(decision, 1.0)
