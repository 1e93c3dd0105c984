//! Python: a class over plain integers, and the same expressions over numpy's columns for many rows at once.

use crate::expression::{Complement, Input, action_code, outputs, write_circuit};
use crate::rows::Replay;
use crate::{FileNames, Language, Program, header};
use std::fmt::Write as _;

pub(crate) fn program(program: &Program<'_>) -> String {
    let policy = program.policy;
    let (bits, memory) = (program.observation_bits, policy.memory_bits());
    let mut text = header(Language::Python, program);
    let _ = write!(
        text,
        "#\n# policy = Policy(); policy.reset() at the start of an episode; policy.decide(obs) at every step.\n\n\
         OBS_BITS = {bits}\nACTIONS = {}\nMEMORY_BITS = {memory}\nHORIZON = {}\n\n\n\
         def _circuit(o, m):\n    \"\"\"Action and next memory of zeros and ones, or of columns of them.\"\"\"\n",
        policy.actions(),
        program.horizon.map_or("None".to_string(), |horizon| horizon.to_string())
    );
    let names = write_circuit(
        &mut text,
        policy,
        ["0", "1"],
        Complement("1 ^ "),
        |input| match input {
            Input::Observation(bit) => format!("o[{bit}]"),
            Input::Memory(bit) => format!("m[{bit}]"),
        },
        |name, value| format!("    {name} = {value}"),
    );
    let (action, next) = outputs(policy, &names);
    let code = action_code(&action, "0", |bit, place| format!("{bit} << {place}"));
    let next: Vec<&str> = next.iter().map(|name| name.as_str()).collect();
    let _ = write!(text, "    return {code}, [{}]\n{CLASS}", next.join(", "));
    text.push_str(&program.encoder.map_or_else(String::new, crate::named::python));
    text
}

const CLASS: &str = r#"

class Policy:
    """One policy at work in one episode after the other."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forgets everything: an episode starts."""
        self.memory = [0] * MEMORY_BITS

    def decide(self, obs):
        """The action for one observation: a sequence of OBS_BITS zeros and ones, or text of them."""
        if len(obs) != OBS_BITS:
            raise ValueError(f"an observation has {OBS_BITS} bits, not {len(obs)}")
        bits = [int(bit) & 1 for bit in obs]
        action, self.memory = _circuit(bits, self.memory)
        return action


def decide_batch(obs, memory=None):
    """Actions and next memory for many rows at once, with numpy.

    obs has shape (rows, OBS_BITS), memory (rows, MEMORY_BITS); without memory every row starts an episode.
    """
    import numpy

    obs = numpy.asarray(obs).astype(numpy.int64) & 1
    rows = obs.shape[0]
    if obs.shape != (rows, OBS_BITS):
        raise ValueError(f"observations have shape (rows, {OBS_BITS}), not {obs.shape}")
    if memory is None:
        memory = numpy.zeros((rows, MEMORY_BITS), dtype=numpy.int64)
    memory = numpy.asarray(memory).astype(numpy.int64) & 1
    if memory.shape != (rows, MEMORY_BITS):
        raise ValueError(f"memory has shape (rows, {MEMORY_BITS}), not {memory.shape}")
    action, following = _circuit(obs.T, memory.T)
    action = numpy.broadcast_to(numpy.asarray(action), (rows,)).copy()
    columns = [numpy.broadcast_to(numpy.asarray(column), (rows,)) for column in following]
    following = numpy.stack(columns, axis=1) if columns else numpy.zeros((rows, 0), dtype=numpy.int64)
    return action, following
"#;

pub(crate) fn self_test(program: &Program<'_>, files: &FileNames) -> String {
    let FileNames { program: name, vectors, .. } = files;
    let bits = program.observation_bits;
    let replay = Replay::new(program, files).python();
    let rows = if program.encoder.is_some() { ", {len(named)} rows of named values" } else { "" };
    format!(
        r#"# Plays {vectors} on {name} and compares every action; with numpy also many rows at once.
import importlib.machinery
import importlib.util
import pathlib
import sys

here = pathlib.Path(__file__).parent
loader = importlib.machinery.SourceFileLoader("exported_policy", str(here / "{name}"))
exported = importlib.util.module_from_spec(importlib.util.spec_from_loader("exported_policy", loader))
loader.exec_module(exported)

policy = exported.Policy()
rows, memories, wanted = [], [], []
for line in (here / "{vectors}").read_text().splitlines():
    reset, shown, action = line.split(" ")
    if reset == "1":
        policy.reset()
    obs = shown[:{bits}]
    rows.append([int(digit) for digit in obs])
    memories.append(list(policy.memory))
    wanted.append(int(action))
    got = policy.decide(obs)
    if got != wanted[-1]:
        sys.exit(f"step {{len(rows) - 1}}: action {{got}} instead of {{action}}")
if not rows:
    sys.exit("nothing to compare")
try:
    import numpy
except ImportError:
    batch = "numpy is not installed, so that many rows at once were not tried"
else:
    shape = (len(rows), {bits})
    actions, _ = exported.decide_batch(numpy.array(rows).reshape(shape), memories)
    wrong = [row for row, action in enumerate(actions.tolist()) if action != wanted[row]]
    if wrong:
        sys.exit(f"row {{wrong[0]}} of the batch: action {{actions[wrong[0]]}} instead of {{wanted[wrong[0]]}}")
    batch = "many rows at once with numpy too"
{replay}print(f"{{len(rows)}} steps{rows} ({{batch}}): ok")
"#
    )
}
