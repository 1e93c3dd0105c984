"""Bandits without and with context: what is lost while learning."""

from __future__ import annotations

import importlib.util
import pickle
import time

import numpy as np

import bem

ARMS, GAP, ROUNDS = 16, 0.1, 10_000
BITS, CONTEXT_ROUNDS, CONTEXT_ARMS = 6, 5_000, 2


def is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


# Each peer: a function of the seed that hands back (decide(context), learn(context, action, chance, reward), size()).


def bem_bandit(arms, bits, seed):
    bandit = bem.ContextualBandit(arms, bits, seed=seed)
    decisions = {}

    def decide(context):
        decisions["last"] = bandit.decide(context)
        return decisions["last"].action

    return decide, lambda context, action, reward: bandit.reward(decisions["last"], reward), lambda: len(bandit.export("c"))


def ucb1(arms, bits, seed):
    counts, sums, total = np.zeros(arms), np.zeros(arms), [0]

    def decide(context):
        if total[0] < arms:
            return total[0]
        return int(np.argmax(sums / counts + np.sqrt(2 * np.log(total[0]) / counts)))

    def learn(context, action, reward):
        counts[action] += 1
        sums[action] += reward
        total[0] += 1

    return decide, learn, lambda: len(pickle.dumps((counts, sums)))


def mabwiser(policy):
    def make(arms, bits, seed):
        from mabwiser.mab import MAB

        mab = MAB(arms=list(range(arms)), learning_policy=policy(), seed=seed)
        mab.fit(decisions=list(range(arms)), rewards=[0] * arms, contexts=[[0.0] * bits] * arms if bits else None)
        row = lambda context: [list(map(float, context))]  # noqa: E731

        def decide(context):
            return mab.predict(row(context)) if bits else mab.predict()

        def learn(context, action, reward):
            if bits:
                mab.partial_fit([action], [reward], row(context))
            else:
                mab.partial_fit([action], [reward])

        return decide, learn, lambda: len(pickle.dumps(mab))

    return make


def vowpal(options):
    def make(arms, bits, seed):
        from vowpalwabbit import Workspace

        vw = Workspace(f"--cb_explore {arms} {options} --quiet --random_seed {seed}")
        draw = np.random.default_rng(seed)
        kept = {}

        def text(context):
            return "| " + " ".join(f"b{place}_{bit}" for place, bit in enumerate(context)) if bits else "| all"

        def decide(context):
            chances = np.array(vw.predict(text(context)))
            action = int(draw.choice(arms, p=chances / chances.sum()))
            kept["chance"] = chances[action]
            return action

        def learn(context, action, reward):
            vw.learn(f"{action + 1}:{-reward}:{kept['chance']} {text(context)}")

        return decide, learn, lambda: None

    return make


def river_ucb(arms, bits, seed):
    from river import bandit

    policy = bandit.UCB(delta=1, seed=seed)

    def decide(context):
        return policy.pull(range(arms))

    return decide, lambda context, action, reward: policy.update(action, reward), lambda: len(pickle.dumps(policy))


def learning(name):
    def policy():
        from mabwiser.mab import LearningPolicy

        return {
            "ucb": LearningPolicy.UCB1(alpha=1.25),
            "thompson": LearningPolicy.ThompsonSampling(),
            "linucb": LearningPolicy.LinUCB(alpha=1.25),
        }[name]

    return policy


PLAIN = [
    ("BEM", "bem", bem_bandit, "default"),
    ("UCB1", "numpy", ucb1, "by hand"),
    ("MABWiser Thompson", "mabwiser", mabwiser(learning("thompson")), "ThompsonSampling()"),
    ("MABWiser UCB1", "mabwiser", mabwiser(learning("ucb")), "alpha 1.25"),
    ("River UCB", "river", river_ucb, "delta 1"),
    ("Vowpal Wabbit squarecb", "vowpalwabbit", vowpal("--squarecb"), "--squarecb"),
]
CONTEXTUAL = [
    ("BEM", "bem", bem_bandit, "default"),
    ("MABWiser LinUCB", "mabwiser", mabwiser(learning("linucb")), "alpha 1.25"),
    ("Vowpal Wabbit squarecb", "vowpalwabbit", vowpal("--squarecb"), "--squarecb"),
    ("Vowpal Wabbit squarecb, pairs", "vowpalwabbit", vowpal("--squarecb --interactions ::"), "--squarecb --interactions ::"),
]
TARGETS = {
    "one bit": lambda context: int(context[2]),
    "parity of two bits": lambda context: int(context[2] ^ context[4]),
}


def play(make, arms, bits, rounds, chance, seed):
    """The regret of one run, its CPU seconds, and the size of what it leaves."""
    draw = np.random.default_rng(1000 + seed)
    decide, learn, size = make(arms, bits, seed)
    regret, started = 0.0, time.process_time()
    for _ in range(rounds):
        context = draw.integers(0, 2, bits)
        action = int(decide(context))
        chances = [chance(context, arm) for arm in range(arms)]
        reward = float(draw.random() < chances[action])
        regret += max(chances) - chances[action]
        learn(context, action, reward)
    return regret, time.process_time() - started, size()


def rows(arguments):
    table = []
    best = {seed: int(np.random.default_rng(seed).integers(ARMS)) for seed in range(1, arguments.seeds_bandit + 1)}
    plain = (f"{ARMS} arms, gap {GAP}, {ROUNDS} rounds", PLAIN, ARMS, 0, ROUNDS,
             lambda seed: lambda context, arm: 0.5 + GAP * (arm == best[seed]))
    tasks = [plain] + [
        (f"{BITS} bits, {name}, {CONTEXT_ROUNDS} rounds", CONTEXTUAL, CONTEXT_ARMS, BITS, CONTEXT_ROUNDS,
         lambda seed, target=target: lambda context, arm: 0.8 if arm == target(context) else 0.2)
        for name, target in TARGETS.items()
    ]
    for task, peers, arms, bits, rounds, chances in tasks:
        for who, module, make, settings in peers:
            if not is_there(module):
                table.append((task, who, [], [], None, f"{module} is not installed"))
                continue
            runs = [play(make, arms, bits, rounds, chances(seed), seed) for seed in range(1, arguments.seeds_bandit + 1)]
            regrets, seconds, sizes = zip(*runs)
            table.append((task, who, list(regrets), list(seconds), sizes[-1], settings))
    return "Bandits", "regret", table
