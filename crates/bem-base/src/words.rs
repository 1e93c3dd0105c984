//! Counts in sentences that people read: one context, two contexts.
//!
//! It knows the nouns that this project counts, not what they are. Clauses: LOG-4.

use core::fmt::Display;

/// So many of something: `1 context`, `128 contexts`, `2 entries`, `3 leaves`. The last word of the noun is inflected.
pub fn quantity(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    format!("{count} {}", self::noun(&count, noun))
}

/// The noun behind a number that is written elsewhere: `context` behind 1, `contexts` behind 128.
pub fn noun(count: impl Display, noun: &str) -> String {
    if count.to_string() == "1" {
        return noun.to_string();
    }
    match (noun.strip_suffix('y'), noun.strip_suffix("leaf")) {
        (Some(stem), _) => format!("{stem}ies"),
        (_, Some(stem)) => format!("{stem}leaves"),
        _ if noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
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
            assert_eq!(Some(super::noun(count, noun).as_str()), want.split_once(' ').map(|(_, word)| word));
        }
    }
}
