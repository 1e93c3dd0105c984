"""Families as Gymnasium environments: the contract, vectors, and errors."""

import doctest
import warnings

import bem
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

FAMILIES = sorted(bem.families())


@pytest.mark.parametrize("family", FAMILIES)
def test_check_env_passes_for_every_family(family):
    env = gymnasium.make(bem.families()[family]["id"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_keep_to_their_spaces_and_repeat(family):
    def play():
        envs = gymnasium.make_vec(bem.families()[family]["id"], num_envs=300)
        assert type(envs.unwrapped) is bem.VectorEnv
        rows = [envs.reset(seed=3)[0]]
        assert rows[0] in envs.observation_space
        random = np.random.default_rng(1)
        for _ in range(20):
            observations, rewards, terminated, truncated, info = envs.step(
                random.integers(0, envs.single_action_space.n, 300)
            )
            assert observations in envs.observation_space
            assert rewards.shape == terminated.shape == truncated.shape == info["bad"].shape == (300,)
            assert not truncated.any()
            rows += [observations, rewards, terminated]
        return np.concatenate([row.reshape(-1).astype(float) for row in rows])

    assert (play() == play()).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_sliced_lanes_pay_what_single_lanes_pay(family):
    """Random play earns the same in both forms, and as much as the family says."""
    game = bem.make(family).game
    if not game.is_sliced:
        pytest.skip(f"{family} has no sliced form")
    means = []
    for sliced in (True, False):
        envs = bem.VectorEnv(family, num_envs=512, sliced=sliced)
        envs.reset(seed=5)
        random = np.random.default_rng(2)
        paid, episodes = 0.0, 0
        # All lanes play as many whole episodes where episodes are as long.
        for _ in range(max(400, game.shape()["horizon"])):
            _, rewards, terminated, _, _ = envs.step(random.integers(0, envs.single_action_space.n, 512))
            paid, episodes = paid + rewards.sum(), episodes + terminated.sum()
            if terminated.all() and 4 * 512 < episodes:
                break
        means.append(paid / episodes)
    low, high = (bound / 1000 for bound in game.shape()["return_range"])
    assert abs(means[0] - means[1]) < 0.03 * (high - low)
    assert abs(means[0] - game.random) < 0.03 * (high - low)


@pytest.mark.parametrize("sliced", [True, False])
def test_every_seed_of_a_list_counts(sliced):
    def first(seeds):
        return bem.VectorEnv("parity", 4, n=32, sliced=sliced).reset(seed=seeds)[0]

    assert (first([1, 2, 3, 4]) == first((1, 2, 3, 4))).all()
    for other in ([0, 2, 3, 4], [1, 0, 3, 4], [1, 2, 0, 4], [1, 2, 3, 0], [2, 1, 3, 4], [1, None, 3, 4]):
        assert (first([1, 2, 3, 4]) != first(other)).any()
    with pytest.raises(bem.BemError, match="3 seeds for 4"):
        first([1, 2, 3])
    with pytest.raises(bem.BemError, match="a seed is -1"):
        first([1, 2, 3, -1])


def test_compositions_and_wrong_names_are_answered_as_on_the_command_line():
    assert bem.make("seq(parity{n=4},majority{n=5})").horizon == 2
    assert bem.make("BEM/KeyValue-v0").game.text == "key_value"
    with pytest.raises(bem.BemError, match="no family called \"chess\""):
        bem.make("chess")
    with pytest.raises(bem.BemError, match="parameter n cannot be \"1000\""):
        bem.make("parity", n=1000)
    with pytest.raises(bem.BemError, match="a whole number or a word"):
        bem.make("parity", n=2.5)
    with pytest.raises(bem.BemError, match="instance_seed"):
        bem.make("parity", instance_seed=-1)


def test_wrong_actions_are_refused():
    env = bem.make("parity", n=4)
    env.reset(seed=1)
    for action in (2, -1, 0.5, None, "a"):
        with pytest.raises(bem.BemError, match="out of range"):
            env.step(action)
    env.step(0)
    with pytest.raises(bem.BemError, match="reset before"):
        env.step(0)
    envs = bem.make_vec("parity", 4, n=4)
    with pytest.raises(bem.BemError, match="reset before"):
        envs.step(np.zeros(4, dtype=np.int64))
    envs.reset(seed=1)
    with pytest.raises(bem.BemError, match="action 2 of environment 3"):
        envs.step(np.array([0, 1, 0, 2]))
    with pytest.raises(bem.BemError, match="3 actions for 4"):
        envs.step(np.array([0, 1, 0]))
    with pytest.raises(bem.BemError, match="whole numbers"):
        envs.step(np.zeros(4))


@pytest.mark.parametrize("module", ["bem", "bem.envs", "bem.learner", "bem.circuit", "bem.bandit", "bem.wrappers", "bem.spaces"])
def test_examples_in_docstrings_run(module):
    import importlib

    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.attempted and not result.failed
