//! Counts in sentences that people read: one context, two contexts.
//!
//! It knows the nouns that this project counts, not what they are. Clauses: LOG-4.

use core::fmt::Display;

/// So many of something: `1 context`, `128 contexts`, `2 entries`, `3 leaves`. The last word of the noun is inflected.
pub fn quantity(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("1 {noun}");
    }
    match (noun.strip_suffix('y'), noun.strip_suffix("leaf")) {
        (Some(stem), _) => format!("{count} {stem}ies"),
        (_, Some(stem)) => format!("{count} {stem}leaves"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_is_plural() {
        for (count, noun, want) in [
            (0, "gate", "0 gates"),
            (1, "gate", "1 gate"),
            (2, "memory bit", "2 memory bits"),
            (1, "entry", "1 entry"),
            (3, "entry", "3 entries"),
            (1, "leaf", "1 leaf"),
            (11, "leaf", "11 leaves"),
            (2, "patch", "2 patches"),
        ] {
            assert_eq!(quantity(count, noun), want);
        }
    }
}
