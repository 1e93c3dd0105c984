"""Functions of bits: samples until 99 % is answered. Peers get labels; BEM only sees whether its own action was right."""

from __future__ import annotations

import argparse
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import GOAL, Column, Group, Row, Run, Watch

TASKS: dict[str, tuple[str, dict[str, int]]] = {
    "parity, 8 bits": ("parity", {"n": 8}),
    "parity, 3 of 16 bits": ("parity", {"n": 16, "relevant": 3}),
    "majority, 9 bits": ("majority", {"n": 9}),
    "compare, 4 and 4 bits": ("compare", {"bits": 4}),
}
SIZES = [int(32 * 1.25**step) for step in range(28)]
BUDGET, JUDGES = SIZES[-1], 4_096


def samples_of(family: str, params: dict[str, int], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations as the family shows them, and the right answers: always saying one is paid where one is right."""
    import bem

    lanes = 256
    envs = bem.make_vec(family, lanes, **params)
    seen, _ = envs.reset(seed=seed)
    rows, labels = [], []
    for _ in range(-(-count // lanes)):
        rows.append(np.array(seen))
        seen, rewards, _, _, _ = envs.step(np.ones(lanes, dtype=np.int64))
        labels.append(rewards > 0.5)
    return np.concatenate(rows)[:count].astype(np.int8), np.concatenate(labels)[:count].astype(int)


def fitted(fit: Callable[[np.ndarray, np.ndarray, int], Any], family: str, params: dict[str, int], seed: int) -> Run:
    """Samples, each number a quarter more than the last, after which a fresh fit is good; seconds are those of the last fit."""
    rows, labels = samples_of(family, params, BUDGET, seed)
    judged, right = samples_of(family, params, JUDGES, 1_000_000 + seed)
    for count in SIZES:
        watch = Watch()
        model = fit(rows[:count], labels[:count], seed)
        watch.stop()
        if (np.asarray(model.predict(judged)) == right).mean() >= GOAL:
            return Run({"samples to 99 %": count}, watch.wall, watch.cpu, size_of(model))
    return Run({"samples to 99 %": None}, watch.wall, watch.cpu, size_of(model))


def size_of(model: Any) -> int:
    return model.size() if hasattr(model, "size") else len(pickle.dumps(model))


def tree(samples: np.ndarray, labels: np.ndarray, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=seed).fit(samples, labels)


def network(samples: np.ndarray, labels: np.ndarray, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    # For small data its documentation recommends lbfgs.
    return MLPClassifier((64, 64), solver="lbfgs", max_iter=300, random_state=seed).fit(samples, labels)


class Tsetlin:
    """A Tsetlin machine; what is deployed is the C program that its library writes."""

    def __init__(self, samples: np.ndarray, labels: np.ndarray, seed: int, epochs: int, **options: Any):
        import green_tsetlin

        bits = samples.shape[1]
        machine = green_tsetlin.TsetlinMachine(n_literals=bits, n_classes=2, literal_budget=bits, **options)
        trainer = green_tsetlin.Trainer(machine, seed=seed, n_jobs=1, n_epochs=epochs, progress_bar=False)
        rows, classes = np.ascontiguousarray(samples, dtype=np.uint8), labels.astype(np.uint32)
        trainer.set_train_data(rows, classes)
        # The best epoch is kept, by what it was trained on: samples are all that it has.
        trainer.set_eval_data(rows, classes)
        trainer.train()
        self.predictor = machine.get_predictor()

    def predict(self, rows: np.ndarray) -> list[int]:
        return [self.predictor.predict(row) for row in np.ascontiguousarray(rows, dtype=np.uint8)]

    def size(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "machine.h"
            self.predictor.export_as_program(str(file))
            return file.stat().st_size


def short_clauses(samples: np.ndarray, labels: np.ndarray, seed: int) -> Tsetlin:
    return Tsetlin(samples, labels, seed, 40, n_clauses=256, s=3.9, threshold=64)


def long_clauses(samples: np.ndarray, labels: np.ndarray, seed: int) -> Tsetlin:
    return Tsetlin(samples, labels, seed, 100, n_clauses=1_000, s=300.0, threshold=150, boost_true_positives=True)


def learner(family: str, params: dict[str, int], seed: int) -> Run:
    import bem

    judged, right = samples_of(family, params, JUDGES, 1_000_000 + seed)
    watch = Watch()
    learned, reached = bem.Learner(bem.make(family, **params), seed=seed), None
    for count in SIZES:
        learned.learn(max(0, count - learned.num_timesteps))
        with watch.paused():
            if (learned.predict(judged)[0] == right).mean() >= GOAL:
                reached = count
                break
    watch.stop()
    return Run({"samples to 99 %": reached}, watch.wall, watch.cpu, len(learned.export("c")))


PEERS: list[tuple[str, str, str, Callable[[np.ndarray, np.ndarray, int], Any]]] = [
    ("scikit-learn tree, labels", "sklearn.tree", "DecisionTreeClassifier()", tree),
    ("scikit-learn MLP, labels", "sklearn.neural_network", "(64, 64), lbfgs, 300 iterations", network),
]
SHORT = ("Tsetlin machine, labels", "green_tsetlin", "256 clauses, s 3.9, threshold 64, 40 epochs", short_clauses)
# Parity of all bits has no short clauses: every one of them must name every bit, and s 3.9 finds none.
LONG = ("Tsetlin machine, labels", "green_tsetlin", "1,000 clauses, s 300, threshold 150, 100 epochs, boosted true positives",
        long_clauses)


def group(arguments: argparse.Namespace) -> Group:
    rows = []
    for task, (family, params) in TASKS.items():
        measure = lambda seed, family=family, params=params: learner(family, params, seed)  # noqa: E731
        rows.append(Row(task, "BEM, rewards of its own actions", ["bem"], "default", measure))
        for who, needs, settings, fit in [*PEERS, LONG if task == "parity, 8 bits" else SHORT]:
            measure = lambda seed, fit=fit, family=family, params=params: fitted(fit, family, params, seed)  # noqa: E731
            rows.append(Row(task, who, ["bem", needs], settings, measure))
    about = (
        f"Samples come as the family shows them, at most {BUDGET:,}; {JUDGES:,} others judge. Everybody is judged at the same "
        "numbers of samples, each a quarter more than the last. Peers are fitted afresh to each, and their seconds are those of "
        "the last fit; BEM learns on, and its seconds are those of all its samples."
    )
    return Group("Functions of bits", about, [Column("samples to 99 %", True)], arguments.seeds, rows)
