"""Learners of Stable-Baselines3 for the peers' table: their settings, a callback at checkpoints, and the bytes of an actor."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import gymnasium

# Settings that RL Zoo, the collection of tuned settings of the same authors, has for the smallest world with few actions: PPO and
# DQN of CartPole, recurrent PPO of CartPole without velocities. "linear" falls to zero over the run. Observations here are bits,
# so that the normalisation of recurrent PPO is left out.
ZOO: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
            "learning_rate": ("linear", 0.001), "clip_range": ("linear", 0.2)},
    "DQN": {"learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1_000, "gamma": 0.99,
            "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128, "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04, "policy_kwargs": {"net_arch": [256, 256]}},
}
LSTM = {"ortho_init": False, "activation_fn": "ReLU", "lstm_hidden_size": 64, "enable_critic_lstm": True,
        "net_arch": {"pi": [64], "vf": [64]}}
ZOO["RecurrentPPO"] = {**ZOO["PPO"], "policy_kwargs": LSTM}
# Where they were read: file and commit of github.com/DLR-RM/rl-baselines3-zoo, and the world there.
READ = {"PPO": "hyperparams/ppo.yml at 208b6fdf, CartPole-v1", "DQN": "hyperparams/dqn.yml at ce95481b, CartPole-v1",
        "RecurrentPPO": "hyperparams/ppo_lstm.yml at c94924e5, CartPoleNoVel-v1 without normalisation"}
LANES = {"PPO": 8, "RecurrentPPO": 8, "DQN": 1}


class Recorder(gymnasium.Wrapper):
    """Keeps the returns of all episodes that came to their end."""

    def __init__(self, env: gymnasium.Env, returns: list[float]):
        super().__init__(env)
        self.returns, self.total = returns, 0.0

    def reset(self, **options: Any) -> Any:
        self.total = 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        answer = self.env.step(action)
        self.total += float(answer[1])
        if answer[2] or answer[3]:
            self.returns.append(self.total)
        return answer


def train(
    name: str,
    is_zoo: bool,
    make: Callable[[], gymnasium.Env],
    steps: int,
    every: int,
    seed: int,
    check: Callable[[Any, int], None],
) -> Any:
    """Trains, and calls ``check(model, steps so far)`` every so many steps and at the end."""
    import stable_baselines3
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Checks(BaseCallback):
        due = every

        def _on_step(self) -> bool:
            if self.due <= self.num_timesteps < steps:
                check(self.model, self.due)
                self.due += every
            return True

    options = {word: _option(value) for word, value in (ZOO[name] if is_zoo else {}).items()}
    if name == "RecurrentPPO":
        from sb3_contrib import RecurrentPPO as kind

        policy = "MlpLstmPolicy"
    else:
        kind, policy = getattr(stable_baselines3, name), "MlpPolicy"
    envs = DummyVecEnv([make] * (LANES[name] if is_zoo else 1))
    model = kind(policy, envs, seed=seed, device="cpu", **options)
    model.learn(steps, callback=Checks())
    check(model, steps)
    return model


def prepare() -> None:
    """Loads what the first optimizer loads, so that this is no part of the seconds of the first run."""
    import torch

    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()


def _option(value: Any) -> Any:
    """A setting as Stable-Baselines3 takes it: a schedule as a function, an activation as its class."""
    if isinstance(value, tuple):
        return lambda left: value[1] * left
    if isinstance(value, dict) and "activation_fn" in value:
        import torch

        return {**value, "activation_fn": getattr(torch.nn, value["activation_fn"])}
    return value


def actor_bytes(model: Any) -> int:
    """What acting needs: the networks of values and the copies for training stay at home."""
    import torch

    if hasattr(model, "q_net"):
        weights = model.q_net.state_dict()
    else:
        outside = ("value_net", "critic", "vf_")
        weights = {name: value for name, value in model.policy.state_dict().items() if not any(w in name for w in outside)}
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getbuffer().nbytes


def settings_of(name: str, is_zoo: bool) -> str:
    """The settings in words."""
    if not is_zoo:
        return "defaults"
    words = ", ".join(
        f"{word} {value[1]} falling" if isinstance(value, tuple) else f"{word} {value}" for word, value in ZOO[name].items()
    )
    return f"RL Zoo ({READ[name]}): {LANES[name]} environments, {words}"
