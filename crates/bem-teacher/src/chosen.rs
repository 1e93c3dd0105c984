//! Rungs whose measured steps lie on a line, written by `cargo xtask ladder choose`. Do not edit. Clauses: GLE-5.

/// The chosen rungs of a family, from the easiest to the hardest; nothing where none were measured.
pub fn chosen(family: &str) -> &'static [&'static str] {
    match family {
        _ => &[],
    }
}
