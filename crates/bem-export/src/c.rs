//! C: one header, all functions `static inline`, a state that the caller owns.

use crate::expression::{Complement, Input, action_code, outputs, write_circuit};
use crate::rows::Replay;
use crate::{FileNames, Language, Program, header};
use std::fmt::Write as _;

pub(crate) fn program(program: &Program<'_>) -> String {
    let policy = program.policy;
    let (bits, memory) = (program.observation_bits, policy.memory_bits());
    let mut text = header(Language::C, program);
    let _ = write!(
        text,
        "//\n// bem_state s; bem_reset(&s) at the start of an episode; action = bem_decide(&s, obs) at every step.\n\
         // obs has one byte for every bit of the observation: zero or not zero.\n\
         #ifndef BEM_POLICY_H\n#define BEM_POLICY_H\n\n#include <stdint.h>\n\n\
         #define BEM_OBS_BITS {bits}\n#define BEM_ACTIONS {}\n#define BEM_MEMORY_BITS {memory}\n",
        policy.actions()
    );
    if let Some(horizon) = program.horizon {
        let _ = writeln!(text, "#define BEM_HORIZON {horizon}");
    }
    let _ = write!(
        text,
        "\n/* What the policy remembers between two steps. */\ntypedef struct {{ uint8_t memory[{}]; }} bem_state;\n\n\
         static inline void bem_reset(bem_state *state)\n{{\n    \
         for (unsigned bit = 0; bit < sizeof state->memory; bit++) state->memory[bit] = 0;\n}}\n\n\
         static inline int bem_decide(bem_state *state, const uint8_t *obs)\n{{\n",
        memory.max(1)
    );
    let names = write_circuit(
        &mut text,
        policy,
        ["0u", "1u"],
        Complement("1u ^ "),
        |input| match input {
            Input::Observation(bit) => format!("obs[{bit}] != 0"),
            Input::Memory(bit) => format!("state->memory[{bit}]"),
        },
        |name, value| format!("    const unsigned {name} = {value};"),
    );
    let (action, next) = outputs(policy, &names);
    text.push_str("    (void)state;\n    (void)obs;\n");
    for (bit, signal) in next.iter().enumerate() {
        let _ = writeln!(text, "    state->memory[{bit}] = (uint8_t){signal};");
    }
    let code = action_code(&action, "0u", |bit, place| format!("{bit} << {place}"));
    let _ = write!(text, "    return (int)({code});\n}}\n\n");
    text.push_str(&program.encoder.map_or_else(String::new, crate::named::c));
    text.push_str("#endif\n");
    text
}

pub(crate) fn self_test(program: &Program<'_>, files: &FileNames) -> String {
    let bits = program.observation_bits.max(1);
    let replay = Replay::new(program, files).c();
    let (rows, said, told) = match program.encoder {
        None => (String::new(), "", ""),
        Some(_) => (
            format!(
                "    const long rows = play_rows(2 < count ? words[2] : \"{}\");\n    if (rows < 0) return 1;\n",
                files.rows
            ),
            ", %ld rows of named values",
            "rows, ",
        ),
    };
    let FileNames { program, vectors, .. } = files;
    format!(
        "// Plays {vectors} on {program} and compares every action. Run it in their folder.\n\
         #include <stdio.h>\n#include <string.h>\n#include \"{program}\"\n{replay}\n\
         int main(int count, char **words)\n{{\n    \
         FILE *file = fopen(1 < count ? words[1] : \"{vectors}\", \"r\");\n    \
         char text[{0} + 2];\n    uint8_t obs[{bits}];\n    int reset, action;\n    long steps = 0;\n    \
         bem_state state;\n    bem_reset(&state);\n    \
         if (!file) {{ perror(\"{vectors}\"); return 2; }}\n    \
         while (fscanf(file, \"%d %{bits}s %d\", &reset, text, &action) == 3) {{\n        \
         if (strlen(text) != {bits}) {{ printf(\"step %ld: not {bits} bits\\n\", steps); return 1; }}\n        \
         for (int bit = 0; bit < {bits}; bit++) obs[bit] = text[bit] == '1';\n        \
         if (reset) bem_reset(&state);\n        \
         const int got = bem_decide(&state, obs);\n        \
         if (got != action) {{ printf(\"step %ld: action %d instead of %d\\n\", steps, got, action); return 1; }}\n        \
         steps++;\n    }}\n    fclose(file);\n{rows}    \
         printf(\"%ld steps{said}: %s\\n\", steps, {told}steps ? \"ok\" : \"nothing to compare\");\n    return steps ? 0 : 1;\n}}\n",
        bits
    )
}
