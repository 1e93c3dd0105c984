"""Bandits without and with context: what is lost while learning, and after how many rounds the best arms are known."""

from __future__ import annotations

import argparse
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import GOAL, Column, Group, Row, Run, Watch, settled

ARMS, GAP, ROUNDS = 16, 0.1, 10_000
BITS, CONTEXT_ROUNDS, CONTEXT_ARMS = 6, 5_000, 2
CHECKPOINTS, VOTES = 25, 7
TARGETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one bit": lambda contexts: contexts[:, 2],
    "parity of two bits": lambda contexts: contexts[:, 2] ^ contexts[:, 4],
}


class Peer:
    """Decides, learns, and says what it would do for rows of contexts if it had to stop learning now."""

    def __init__(self, arms: int, bits: int, seed: int):
        self.arms, self.bits, self.seed = arms, bits, seed
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def decide(self, context: np.ndarray) -> int:
        raise NotImplementedError

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        raise NotImplementedError

    def count(self, action: int, reward: float) -> None:
        """Counts for those whose library does not name its best arm: the one with the highest mean is taken."""
        self.counts[action] += 1
        self.sums[action] += reward

    def frozen(self, contexts: np.ndarray) -> np.ndarray:
        return np.full(len(contexts), np.argmax(self.sums / np.maximum(self.counts, 1)))

    def size(self) -> int:
        return len(pickle.dumps((self.counts, self.sums)))


class Bem(Peer):
    def __init__(self, arms: int, bits: int, seed: int):
        import bem

        super().__init__(arms, bits, seed)
        self.bandit = bem.ContextualBandit(arms, bits, seed=seed)

    def decide(self, context: np.ndarray) -> int:
        self.last = self.bandit.decide(context)
        return self.last.action

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        self.bandit.reward(self.last, reward)

    def frozen(self, contexts: np.ndarray) -> np.ndarray:
        return np.asarray(self.bandit.predict(contexts))

    def size(self) -> int:
        return len(self.bandit.export("c"))


class Ucb1(Peer):
    def decide(self, context: np.ndarray) -> int:
        total = int(self.counts.sum())
        if total < self.arms:
            return total
        return int(np.argmax(self.sums / self.counts + np.sqrt(2 * np.log(total) / self.counts)))

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        self.count(action, reward)


class Mabwiser(Peer):
    """A library of policies that are fitted to a first batch; here that is every arm once, played and paid like all rounds."""

    def __init__(self, arms: int, bits: int, seed: int, policy: str, options: dict[str, Any], has_trees: bool = False):
        from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy

        super().__init__(arms, bits, seed)
        trees = NeighborhoodPolicy.TreeBandit() if has_trees else None
        self.mab = MAB(list(range(arms)), getattr(LearningPolicy, policy)(**options), trees, seed=seed)
        # A tree keeps the shape that it was fitted with, so that it is fitted again whenever there is twice as much.
        self.next_fit, self.has_trees, self.is_fitted = (64 if has_trees else arms), has_trees, False
        self.rounds: list[tuple[int, float, list[float]]] = []

    def decide(self, context: np.ndarray) -> int:
        if not self.is_fitted:
            return len(self.rounds) % self.arms
        return int(self.mab.predict([context.astype(float).tolist()]) if self.bits else self.mab.predict())

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        self.count(action, reward)
        row = context.astype(float).tolist()
        if self.has_trees or not self.is_fitted:
            self.rounds.append((action, reward, row))
        if len(self.rounds) == self.next_fit:
            actions, rewards, rows = (list(part) for part in zip(*self.rounds))
            self.mab.fit(actions, rewards, rows if self.bits else None)
            self.is_fitted, self.next_fit = True, 2 * self.next_fit
        elif self.is_fitted:
            self.mab.partial_fit([action], [reward], [row] if self.bits else None)

    def frozen(self, contexts: np.ndarray) -> np.ndarray:
        if not self.bits or not self.is_fitted:
            return super().frozen(contexts)
        # Predicting draws, so that a copy is asked, and what it says most often counts.
        copy, votes = pickle.loads(pickle.dumps(self.mab)), np.zeros((len(contexts), self.arms))
        for _ in range(VOTES if self.has_trees else 1):
            votes[np.arange(len(contexts)), copy.predict(contexts.astype(float))] += 1
        return votes.argmax(axis=1)

    def size(self) -> int:
        return len(pickle.dumps(self.mab))


class Vowpal(Peer):
    def __init__(self, arms: int, bits: int, seed: int, options: str):
        from vowpalwabbit import Workspace

        super().__init__(arms, bits, seed)
        self.workspace = Workspace(f"--cb_explore {arms} {options} --quiet --random_seed {seed}")
        self.draw, self.chance = np.random.default_rng(seed), 1.0

    def text(self, context: np.ndarray) -> str:
        return "| " + (" ".join(f"b{place}_{bit}" for place, bit in enumerate(context)) if self.bits else "all")

    def decide(self, context: np.ndarray) -> int:
        chances = np.array(self.workspace.predict(self.text(context)))
        action = int(self.draw.choice(self.arms, p=chances / chances.sum()))
        self.chance = chances[action]
        return action

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        self.workspace.learn(f"{action + 1}:{-reward}:{self.chance} {self.text(context)}")

    def frozen(self, contexts: np.ndarray) -> np.ndarray:
        return np.array([np.argmax(self.workspace.predict(self.text(context))) for context in contexts])

    def size(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            self.workspace.save(str(file))
            return file.stat().st_size


class River(Peer):
    def __init__(self, arms: int, bits: int, seed: int, policy: str):
        from river import bandit, preprocessing, proba

        super().__init__(arms, bits, seed)
        self.policy = {
            "UCB": lambda: bandit.UCB(delta=1, seed=seed),
            "UCB, scaled": lambda: bandit.UCB(
                delta=100, reward_scaler=preprocessing.TargetStandardScaler(None), seed=seed
            ),
            "Thompson": lambda: bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed),
            "LinUCB": lambda: bandit.LinUCBDisjoint(seed=seed),
        }[policy]()

    def features(self, context: np.ndarray) -> dict[str, int]:
        return {"one": 1, **{f"b{place}": int(bit) for place, bit in enumerate(context)}}

    def decide(self, context: np.ndarray) -> int:
        if self.bits:
            return self.policy.pull(range(self.arms), context=self.features(context))
        return self.policy.pull(range(self.arms))

    def learn(self, context: np.ndarray, action: int, reward: float) -> None:
        self.count(action, reward)
        if self.bits:
            self.policy.update(action, self.features(context), reward)
        else:
            self.policy.update(action, reward)

    def frozen(self, contexts: np.ndarray) -> np.ndarray:
        if not self.bits:
            return super().frozen(contexts)
        # Pulling learns nothing, but it draws among equals.
        policy = pickle.loads(pickle.dumps(self.policy))
        return np.array([policy.pull(range(self.arms), context=self.features(context)) for context in contexts])

    def size(self) -> int:
        return len(pickle.dumps(self.policy))


Maker = Callable[[int, int, int], Peer]
PLAIN: list[tuple[str, str, str, Maker]] = [
    ("BEM", "bem", "default", Bem),
    ("UCB1", "numpy", "by hand", Ucb1),
    ("MABWiser Thompson", "mabwiser.mab", "ThompsonSampling()", lambda *world: Mabwiser(*world, "ThompsonSampling", {})),
    ("MABWiser UCB1", "mabwiser.mab", "UCB1(alpha=1.25)", lambda *world: Mabwiser(*world, "UCB1", {"alpha": 1.25})),
    ("River Thompson", "river.bandit", "ThompsonSampling(Beta())", lambda *world: River(*world, "Thompson")),
    ("River UCB", "river.bandit", "UCB(delta=1)", lambda *world: River(*world, "UCB")),
    ("River UCB, scaled", "river.bandit", "UCB(delta=100), TargetStandardScaler", lambda *world: River(*world, "UCB, scaled")),
    ("Vowpal Wabbit", "vowpalwabbit", "--cb_explore --squarecb", lambda *world: Vowpal(*world, "--squarecb")),
]
CONTEXTUAL: list[tuple[str, str, str, Maker]] = [
    ("BEM", "bem", "default", Bem),
    ("MABWiser LinUCB", "mabwiser.mab", "LinUCB(alpha=1.25)", lambda *world: Mabwiser(*world, "LinUCB", {"alpha": 1.25})),
    ("MABWiser trees", "mabwiser.mab", "TreeBandit, ThompsonSampling; fitted again at doubled rounds",
     lambda *world: Mabwiser(*world, "ThompsonSampling", {}, True)),
    ("River LinUCB", "river.bandit", "LinUCBDisjoint()", lambda *world: River(*world, "LinUCB")),
    ("Vowpal Wabbit", "vowpalwabbit", "--cb_explore --squarecb", lambda *world: Vowpal(*world, "--squarecb")),
    ("Vowpal Wabbit, pairs", "vowpalwabbit", "--cb_explore --squarecb --interactions ::",
     lambda *world: Vowpal(*world, "--squarecb --interactions ::")),
    ("Vowpal Wabbit, pairs, greedier", "vowpalwabbit", "--cb_explore --squarecb --gamma_scale 1000 --interactions ::",
     lambda *world: Vowpal(*world, "--squarecb --gamma_scale 1000 --interactions ::")),
]


def play(make: Maker, chances: np.ndarray, bits: int, rounds: int, seed: int) -> Run:
    """One run. ``chances`` has a row for every context; contexts and luck are the same for everybody with this seed."""
    draw = np.random.default_rng(1_000 + seed)
    codes, luck = draw.integers(0, 2**bits, rounds), draw.random(rounds)
    contexts = np.array([[code >> bit & 1 for bit in range(bits)] for code in range(2**bits)], dtype=np.int8)
    best, random = chances.max(axis=1), chances.mean()
    everywhere, goal = np.arange(len(chances)), random + GOAL * (best.mean() - random)
    checks, regret, watch = [], 0.0, Watch()
    peer = make(chances.shape[1], bits, seed)
    for at, (code, chance) in enumerate(zip(codes, luck), 1):
        action = peer.decide(contexts[code])
        regret += best[code] - chances[code, action]
        peer.learn(contexts[code], action, float(chance < chances[code, action]))
        if at % (rounds // CHECKPOINTS) == 0:
            with watch.paused():
                checks.append((at, bool(chances[everywhere, peer.frozen(contexts)].mean() >= goal)))
    watch.stop()
    return Run({"regret": regret, "rounds to 99 %": settled(checks)}, watch.wall, watch.cpu, peer.size())


def plain_chances(seed: int) -> np.ndarray:
    """One arm, drawn by the seed, is better than the others."""
    return 0.5 + GAP * (np.arange(ARMS) == np.random.default_rng(seed).integers(ARMS))[None, :]


def chances_of(target: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    contexts = np.array([[code >> bit & 1 for bit in range(BITS)] for code in range(2**BITS)])
    return np.where(np.arange(CONTEXT_ARMS)[None, :] == target(contexts)[:, None], 0.8, 0.2)


def group(arguments: argparse.Namespace) -> Group:
    rows = []
    for who, needs, settings, make in PLAIN:
        measure = lambda seed, make=make: play(make, plain_chances(seed), 0, ROUNDS, seed)  # noqa: E731
        rows.append(Row(f"{ARMS} arms, gap {GAP}, {ROUNDS:,} rounds", who, [needs], settings, measure))
    for name, target in TARGETS.items():
        for who, needs, settings, make in CONTEXTUAL:
            measure = lambda seed, make=make, target=target: play(  # noqa: E731
                make, chances_of(target), BITS, CONTEXT_ROUNDS, seed
            )
            rows.append(Row(f"{BITS} bits, {name}, {CONTEXT_ROUNDS:,} rounds", who, [needs], settings, measure))
    about = (
        "Regret is the expected reward that was lost in all rounds. Rounds to 99 %: from there on, at every 25th part of the "
        "run, the arms that would be taken without exploring gain 99 % of what lies between random play and the best arms; "
        "libraries of bandits without context that do not name such an arm are taken to name the one with the highest mean."
    )
    return Group("Bandits", about, [Column("regret", True), Column("rounds to 99 %", True)], arguments.seeds_bandit, rows)
