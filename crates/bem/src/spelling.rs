//! The name that was probably meant.

/// Changes of a letter, swaps of neighbours included, that still count as a slip.
const SLIPS_MAX: usize = 2;

/// ` (did you mean NAME?)` for the closest known name, or nothing if none is close; ties go to the first.
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let slips = known.into_iter().map(|name| (distance(given, name), name));
    let closest = slips.min_by_key(|(slips, _)| *slips);
    match closest {
        Some((slips, name)) if slips <= SLIPS_MAX && slips < name.chars().count() => {
            format!(" (did you mean {name}?)")
        }
        _ => String::new(),
    }
}

/// Letters to insert, remove, replace or swap with a neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if 1 < i && 1 < j && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_finds_none() {
        let known = ["parity", "parity_stream", "dyck", "add"];
        assert_eq!(hint("partiy", known), " (did you mean parity?)");
        assert_eq!(hint("parity_steam", known), " (did you mean parity_stream?)");
        assert_eq!(hint("dyk", known), " (did you mean dyck?)");
        assert_eq!(hint("chess", known), "");
        assert_eq!(hint("", ["a"]), "");
    }
}
