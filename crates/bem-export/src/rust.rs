//! Rust: one module, a structure with `reset` and `decide`, one of named values where features have names; nothing but
//! `core`.

use crate::expression::{Complement, Input, action_code, outputs, write_circuit};
use crate::rows::Replay;
use crate::{FileNames, Language, Program, header};
use std::fmt::Write as _;

pub(crate) fn program(program: &Program<'_>) -> String {
    let policy = program.policy;
    let (bits, memory) = (program.observation_bits, policy.memory_bits());
    let mut text = header(Language::Rust, program);
    let _ = write!(
        text,
        "//!\n//! `reset` at the start of an episode, `decide` at every step. No dependencies; fit for `no_std`.\n\n\
         /// The policy and what it remembers between two steps.\n\
         #[derive(Clone, Debug, Default, PartialEq, Eq)]\npub struct Policy {{\n    memory: Memory,\n}}\n\n\
         #[derive(Clone, Debug, PartialEq, Eq)]\nstruct Memory([bool; {memory}]);\n\n\
         impl Default for Memory {{\n    fn default() -> Memory {{\n        Memory([false; {memory}])\n    }}\n}}\n\n\
         #[allow(dead_code, unused_variables, clippy::all)]\nimpl Policy {{\n    \
         /// Bits of an observation.\n    pub const OBS_BITS: usize = {bits};\n    \
         /// Actions are below this.\n    pub const ACTIONS: u16 = {};\n",
        policy.actions()
    );
    if let Some(horizon) = program.horizon {
        let _ = write!(
            text,
            "    /// No episode of the world it was learned in takes more steps.\n    pub const HORIZON: u32 = {horizon};\n"
        );
    }
    let _ = write!(
        text,
        "\n    /// Ready for the first step of an episode.\n    pub const fn new() -> Policy {{\n        \
         Policy {{ memory: Memory([false; {memory}]) }}\n    }}\n\n    \
         /// Forgets everything: an episode starts.\n    pub fn reset(&mut self) {{\n        *self = Policy::new();\n    }}\n\n    \
         /// The action for what is seen, and one step of memory.\n    \
         pub fn decide(&mut self, obs: &[bool; {bits}]) -> u16 {{\n"
    );
    let names = write_circuit(
        &mut text,
        policy,
        ["false", "true"],
        Complement("!"),
        |input| match input {
            Input::Observation(bit) => format!("obs[{bit}]"),
            Input::Memory(bit) => format!("self.memory.0[{bit}]"),
        },
        |name, value| format!("        let {name} = {value};"),
    );
    let (action, next) = outputs(policy, &names);
    let next: Vec<&str> = next.iter().map(|name| name.as_str()).collect();
    let _ = writeln!(text, "        self.memory.0 = [{}];", next.join(", "));
    let code = action_code(&action, "0", |bit, place| format!("({bit} as u16) << {place}"));
    let _ = write!(text, "        {code}\n    }}\n}}\n");
    text + &program.encoder.map_or_else(String::new, |encoder| crate::named::rust(encoder, bits))
}

pub(crate) fn self_test(program: &Program<'_>, files: &FileNames) -> String {
    let (bits, FileNames { program: name, vectors, .. }) = (program.observation_bits, files);
    let replay = Replay::new(program, files).rust();
    let rows = match program.encoder {
        None => "\"\"",
        Some(_) => "format!(\", {} rows of named values\", play_rows())",
    };
    format!(
        "//! Plays {vectors} on {name} and compares every action.\n\n#[path = \"{name}\"]\nmod policy;\n{replay}\n\
         fn main() {{\n    let mut policy = policy::Policy::new();\n    let mut steps = 0;\n    \
         for line in include_str!(\"{vectors}\").lines() {{\n        \
         let words: Vec<&str> = line.split(' ').collect();\n        \
         let mut obs = [false; {bits}];\n        \
         obs.iter_mut().zip(words[1].bytes()).for_each(|(bit, digit)| *bit = digit == b'1');\n        \
         if words[0] == \"1\" {{\n            policy.reset();\n        }}\n        \
         let got = policy.decide(&obs);\n        \
         if got.to_string() != words[2] {{\n            \
         println!(\"step {{steps}}: action {{got}} instead of {{}}\", words[2]);\n            \
         std::process::exit(1);\n        }}\n        steps += 1;\n    }}\n    \
         let rows = {rows};\n    \
         println!(\"{{steps}} steps{{rows}}: {{}}\", if 0 < steps {{ \"ok\" }} else {{ \"nothing to compare\" }});\n    \
         std::process::exit(if 0 < steps {{ 0 }} else {{ 1 }});\n}}\n"
    )
}
