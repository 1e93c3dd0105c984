"""BEM, the Boolean Expert Machine: any Gymnasium environment in, a proven circuit out.

>>> import gymnasium, bem
>>> env = gymnasium.make("BEM/Parity-v0", n=6)
>>> learner = bem.Learner(env, seed=1).learn(2_000)
>>> learner.verify()["verdict"]
'unanchored'
>>> "bem_decide" in learner.export("c")
True
"""

from bem import wrappers
from bem._bem import BemError, __version__
from bem.bandit import ContextualBandit, Decision
from bem.circuit import Circuit
from bem.envs import Env, VectorEnv, families, make, make_vec
from bem.learner import Learner

__all__ = [
    "BemError",
    "Circuit",
    "ContextualBandit",
    "Decision",
    "Env",
    "Learner",
    "VectorEnv",
    "__version__",
    "families",
    "make",
    "make_vec",
    "wrappers",
]
