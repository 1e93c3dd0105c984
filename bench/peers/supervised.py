"""Functions of bits: samples until the whole truth table is answered to 99 %. BEM sees only whether its own action was right."""

from __future__ import annotations

import importlib.util
import pickle
import time

import numpy as np

import bem

TASKS = {
    "parity, 8 bits": (8, "parity", {"n": 8}, lambda rows: rows.sum(axis=1) % 2),
    "majority, 9 bits": (9, "majority", {"n": 9}, lambda rows: (rows.sum(axis=1) > 4).astype(int)),
}
BUDGET = 16_384


def table_of(bits):
    return np.array([[row >> bit & 1 for bit in range(bits)] for row in range(2**bits)], dtype=np.int8)


def doubling(fit, bits, target, seed):
    """Samples, at steps of a quarter, after which a fresh fit answers 99 % of the table; nothing if the budget ends before."""
    rows, count = table_of(bits), 32
    right = target(rows)
    while count <= BUDGET:
        draw = np.random.default_rng(seed)
        samples = draw.integers(0, 2, (int(count), bits)).astype(np.int8)
        model = fit(samples, target(samples), seed)
        if (np.asarray(model.predict(rows)) == right).mean() >= 0.99:
            return int(count), len(pickle.dumps(model))
        count *= 1.25
    return None, None


def tree(samples, labels, seed):
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=seed).fit(samples, labels)


def network(samples, labels, seed):
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((64, 64), solver="lbfgs", max_iter=300, random_state=seed).fit(samples, labels)


class Tsetlin:
    def __init__(self, samples, labels, seed):
        import green_tsetlin as gt

        machine = gt.TsetlinMachine(n_literals=samples.shape[1], n_clauses=64, n_classes=2, s=3.9, threshold=32, literal_budget=samples.shape[1])
        trainer = gt.Trainer(machine, seed=seed, n_jobs=1, n_epochs=40, progress_bar=False)
        data, target = samples.astype(np.uint8), labels.astype(np.uint32)
        trainer.set_train_data(data, target)
        trainer.set_eval_data(data, target)
        trainer.train()
        self.predictor = machine.get_predictor()

    def predict(self, rows):
        return [self.predictor.predict(row.astype(np.uint8)) for row in rows]

    def __reduce__(self):
        return str, ("no size",)


def learner(bits, family, params, target, seed):
    rows = table_of(bits)
    right = target(rows)
    learner = bem.Learner(bem.make(family, **params), seed=seed)
    while learner.num_timesteps < BUDGET:
        learner.learn(16)
        if (learner.predict(rows)[0] == right).mean() >= 0.99:
            return learner.num_timesteps, len(learner.export("c"))
    return None, None


PEERS = [
    ("scikit-learn tree, labels", "sklearn", tree, "DecisionTreeClassifier()"),
    ("scikit-learn MLP, labels", "sklearn", network, "(64, 64), lbfgs, 300 iterations"),
    ("Tsetlin machine, labels", "green_tsetlin", Tsetlin, "64 clauses, s 3.9, threshold 32, 40 epochs"),
]


def rows(arguments):
    table = []
    for task, (bits, family, params, target) in TASKS.items():
        for who, module, fit, settings in [("BEM, rewards of its own actions", "bem", None, "default"), *PEERS]:
            if importlib.util.find_spec(module) is None:
                table.append((task, who, [], [], None, f"{module} is not installed"))
                continue
            counts, seconds, size, failed = [], [], None, 0
            for seed in range(1, arguments.seeds + 1):
                started = time.process_time()
                try:
                    if fit is None:
                        count, bytes_ = learner(bits, family, params, target, seed)
                    else:
                        count, bytes_ = doubling(fit, bits, target, seed)
                except Exception as error:  # noqa: BLE001 - a peer that fails is a row of the table
                    settings = f"failed: {type(error).__name__}: {str(error)[:60]}"
                    break
                seconds.append(time.process_time() - started)
                failed += count is None
                counts += [count] if count else []
                size = bytes_ or size
            note = f"; {failed} of {arguments.seeds} not within {BUDGET}" if failed else ""
            table.append((task, who, counts, seconds, size, settings + note))
    return "Functions of bits", "samples to 99 %", table
