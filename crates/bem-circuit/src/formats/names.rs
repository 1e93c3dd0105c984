//! Names that a format can bear.

use super::model::Model;
use crate::netlist::{Gate, Op};
use std::collections::BTreeSet;

/// The longest name; the rest is cut off.
const NAME_BYTES_MAX: usize = 128;

/// The name with everything replaced that a [`Model`] does not allow; `default` if nothing is left of it. The digits
/// `0` and `1` alone are constants and no names.
pub(super) fn clean_name(name: &str, default: &str) -> String {
    let allowed = |sign: char| sign.is_ascii_graphic() && !matches!(sign, '#' | '=' | '\\' | '"');
    let clean: String =
        name.chars().take(NAME_BYTES_MAX).map(|sign| if allowed(sign) { sign } else { '_' }).collect();
    match clean.as_str() {
        "" | "0" | "1" => default.to_owned(),
        _ => clean,
    }
}

/// Hands out identifiers of a programming language, each once.
pub(super) struct Identifiers {
    taken: BTreeSet<String>,
}

impl Identifiers {
    /// None of the keywords, given with spaces between them, is ever handed out.
    pub fn new(keywords: &str) -> Identifiers {
        Identifiers { taken: keywords.split_whitespace().map(str::to_owned).collect() }
    }

    /// The identifier closest to the name that is still free.
    pub fn take(&mut self, name: &str) -> String {
        let mut base: String =
            name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect();
        if base.starts_with(|sign: char| sign.is_ascii_digit()) || base.chars().all(|sign| sign == '_') {
            base.insert(0, 'n');
        }
        let mut candidate = base.clone();
        let mut number = 2u64;
        while !self.taken.insert(candidate.clone()) {
            candidate = format!("{base}_{number}");
            number += 1;
        }
        candidate
    }

    /// A name for every signal of a model: the constants as given, the inputs, then `n0`, `n1`, ... for the gates.
    pub fn signals(&mut self, model: &Model, constants: [&str; 2]) -> Vec<String> {
        let mut names: Vec<String> = constants.map(str::to_owned).to_vec();
        names.extend(model.input_names().iter().map(|name| self.take(name)));
        names.extend((0..model.circuit().gates().len()).map(|gate| self.take(&format!("n{gate}"))));
        names
    }
}

/// A gate as an expression, with `not` as the sign of the complement.
pub(super) fn expression(gate: &Gate, names: &[String], not: char) -> String {
    let (a, b) = (&names[gate.a.index()], &names[gate.b.index()]);
    match gate.op {
        Op::And => format!("{a} & {b}"),
        Op::Or => format!("{a} | {b}"),
        Op::Xor => format!("{a} ^ {b}"),
        Op::AndNot => format!("{a} & {not}{b}"),
        Op::Nand => format!("{not}({a} & {b})"),
        Op::Nor => format!("{not}({a} | {b})"),
        Op::Xnor => format!("{not}({a} ^ {b})"),
        Op::Implies => format!("{not}{a} | {b}"),
    }
}
