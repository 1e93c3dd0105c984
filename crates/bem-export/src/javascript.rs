//! JavaScript: an ECMAScript module with one class, and a function over named values where features have names; no
//! dependencies, runs in browsers and in Node.

use crate::expression::{Complement, Input, action_code, outputs, write_circuit};
use crate::rows::Replay;
use crate::{FileNames, Language, Program, header};
use std::fmt::Write as _;

pub(crate) fn program(program: &Program<'_>) -> String {
    let policy = program.policy;
    let (bits, memory) = (program.observation_bits, policy.memory_bits());
    let mut text = header(Language::JavaScript, program);
    let _ = write!(
        text,
        "//\n// const policy = new Policy(); policy.reset() at the start of an episode; policy.decide(obs) at every step.\n\n\
         export const OBS_BITS = {bits};\nexport const ACTIONS = {};\nexport const MEMORY_BITS = {memory};\n\
         export const HORIZON = {};\n\n\
         /** One policy at work in one episode after the other. */\nexport class Policy {{\n  constructor() {{\n    \
         this.reset();\n  }}\n\n  /** Forgets everything: an episode starts. */\n  reset() {{\n    \
         this.memory = new Uint8Array(MEMORY_BITS);\n  }}\n\n  \
         /** The action for one observation: an array of OBS_BITS zeros and ones. */\n  decide(obs) {{\n    \
         if (obs.length !== OBS_BITS) throw new RangeError(`an observation has ${{OBS_BITS}} bits, not ${{obs.length}}`);\n    \
         const m = this.memory;\n",
        policy.actions(),
        program.horizon.map_or("null".to_string(), |horizon| horizon.to_string())
    );
    let names = write_circuit(
        &mut text,
        policy,
        ["0", "1"],
        Complement("1 ^ "),
        |input| match input {
            Input::Observation(bit) => format!("obs[{bit}] ? 1 : 0"),
            Input::Memory(bit) => format!("m[{bit}]"),
        },
        |name, value| format!("    const {name} = {value};"),
    );
    let (action, next) = outputs(policy, &names);
    for (bit, signal) in next.iter().enumerate() {
        let _ = writeln!(text, "    m[{bit}] = {signal};");
    }
    let code = action_code(&action, "0", |bit, place| format!("({bit} << {place})"));
    let _ = write!(text, "    return {code};\n  }}\n}}\n");
    text + &program.encoder.map_or_else(String::new, crate::named::javascript)
}

pub(crate) fn self_test(program: &Program<'_>, files: &FileNames) -> String {
    let replay = Replay::new(program, files).javascript();
    let rows = if program.encoder.is_some() { ", ${rows} rows of named values" } else { "" };
    let FileNames { program, vectors, .. } = files;
    format!(
        r#"// Plays {vectors} on {program} and compares every action.
import {{ readFileSync }} from "node:fs";
import {{ OBS_BITS, Policy }} from "./{program}";

const policy = new Policy();
let steps = 0;
for (const line of readFileSync(new URL("./{vectors}", import.meta.url), "utf8").split("\n")) {{
  if (line === "") continue;
  const [reset, shown, action] = line.split(" ");
  if (reset === "1") policy.reset();
  const got = policy.decide(Array.from(shown).slice(0, OBS_BITS).map(Number));
  if (got !== Number(action)) {{
    console.log(`step ${{steps}}: action ${{got}} instead of ${{action}}`);
    process.exit(1);
  }}
  steps += 1;
}}
{replay}console.log(`${{steps}} steps{rows}: ${{steps ? "ok" : "nothing to compare"}}`);
process.exit(steps ? 0 : 1);
"#
    )
}
