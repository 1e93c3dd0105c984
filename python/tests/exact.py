"""What a policy is worth in a tabular environment of Gymnasium, worked out exactly from its table of transitions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Table:
    """The transitions of a toy-text environment over a number of steps."""

    def __init__(self, env: gymnasium.Env, horizon: int):
        world = env.unwrapped
        self.states, self.actions, self.horizon = world.observation_space.n, world.action_space.n, horizon
        shape = (self.states, self.actions, self.states)
        self.next, self.reward = np.zeros(shape), np.zeros((self.states, self.actions))
        for state, moves in world.P.items():
            for action, outcomes in moves.items():
                for chance, after, reward, done in outcomes:
                    self.reward[state, action] += chance * reward
                    if not done:
                        self.next[state, action, after] += chance
        self.start = np.asarray(world.initial_state_distrib, dtype=np.float64)

    def optimum(self) -> float:
        """The undiscounted optimum over the horizon."""
        value = np.zeros(self.states)
        for _ in range(self.horizon):
            value = (self.reward + self.next @ value).max(axis=1)
        return float(self.start @ value)

    def random(self) -> float:
        """The value of random play over the horizon."""
        value = np.zeros(self.states)
        for _ in range(self.horizon):
            value = (self.reward + self.next @ value).mean(axis=1)
        return float(self.start @ value)

    def value(self, learner: Any) -> float:
        """The value of a frozen policy over the horizon; its memory is followed along with the state."""
        circuit = learner.circuit
        if circuit.memory_bits == 0:
            actions, _ = learner.predict(np.arange(self.states))
            every = np.arange(self.states)
            value = np.zeros(self.states)
            for _ in range(self.horizon):
                value = self.reward[every, actions] + self.next[every, actions] @ value
            return float(self.start @ value)
        # Forwards over pairs of state and memory, because memory follows what was seen.
        alive: dict[tuple[int, bytes], float] = {}
        blank = np.zeros((1, max(1, circuit._native.state_words)), dtype=np.uint64).tobytes()
        for state, chance in enumerate(self.start):
            if chance:
                alive[state, blank] = chance
        total = 0.0
        for _ in range(self.horizon):
            if not alive:
                break
            keys = list(alive)
            states = np.array([state for state, _ in keys])
            kept = np.frombuffer(b"".join(memory for _, memory in keys), dtype=np.uint64).reshape(len(keys), -1)
            actions, kept = learner.predict(states, state=kept)
            after: dict[tuple[int, bytes], float] = {}
            for place, (state, memory) in enumerate(keys):
                chance, action = alive[keys[place]], int(actions[place])
                total += chance * self.reward[state, action]
                following = np.flatnonzero(self.next[state, action])
                for target in following:
                    key = (int(target), kept[place].tobytes())
                    after[key] = after.get(key, 0.0) + chance * self.next[state, action, target]
            alive = after
        return total
