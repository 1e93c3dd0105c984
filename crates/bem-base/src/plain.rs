//! Words of a history, said again for people.
//!
//! What a change is called is part of the history that it stands in, and stays there letter by letter. Where people read
//! it, on a terminal or on a page, the words of the machinery give way to words of the problem. It knows the sentences that
//! are recorded, not what they are about; a sentence that it does not know passes as it is. JSON of commands holds the
//! recorded words. Clauses: LOG-4.

use crate::words::quantity;

/// Nouns that are counted in sentences about what was learned; one of them is one.
const COUNTED: &[&str] = &[
    "actions",
    "bits",
    "changes",
    "comparisons",
    "contexts",
    "fields",
    "gates",
    "labels",
    "observations",
    "pairs",
    "rows",
    "rules",
    "states",
    "steps",
    "terms",
    "weights",
];
/// Words that may stand between a number and such a noun.
const BETWEEN: &[&str] = &["found", "memory", "ranked", "safe"];

/// The words of a change or of a policy as people read them.
pub fn plain(words: &str) -> String {
    let told = contexts(words).or_else(|| circuits(words)).or_else(|| rules(words));
    one_is_one(&told.unwrap_or_else(|| models(&past(words))))
}

/// Kinds of functions: places of bits are those of what a search looked at, which need not be those of an observation, so that
/// they have no names; what stands in brackets is one function of several.
fn models(words: &str) -> String {
    let told = without_brackets(words);
    let mut told = match told.split_once("action of the highest ").zip(told.split_once(", each of ")) {
        Some(((before, _), (_, after))) => {
            let after = after.split_once(" bits").map_or("", |(_, after)| after);
            format!("{before}action of the highest value that is predicted{after}")
        }
        None => told,
    };
    if let Some((before, after)) = told.split_once("first action of ")
        && let Some((count, after)) = after.split_once(" whose reward model says yes")
    {
        told = format!("{before}first of {count} actions that is predicted to pay{after}");
    }
    for (recorded, shown) in WALKS {
        while let Some(other) = replaced(&told, recorded, shown) {
            told = other;
        }
    }
    told
}

/// Where a function goes, as it is recorded with places, and without them.
const WALKS: &[(&str, &str)] = &[
    ("scan over fields at {} and {} {}", "one pass over two fields side by side"),
    ("scan over field at {} {}", "one pass over a field"),
    ("scan over halves of the field at {} {}", "one pass over both halves of a field"),
    ("scan over neighbours in the field at {} {}", "one pass over pairs of bits in a field"),
    ("scan over the whole row {}", "one pass over all bits"),
    ("the count of the field at {}", "how many bits of a field are 1"),
    ("fields at {} and {}", "two fields"),
    ("the last field at {}", "the last field"),
    ("the field at {}", "a field"),
    ("field at {}", "a field"),
];

/// The words with the first place of this form said otherwise, if there is one; a hole is a number or a direction.
fn replaced(words: &str, recorded: &str, shown: &str) -> Option<String> {
    let mut pieces = recorded.split("{}");
    let first = pieces.next()?;
    for (start, _) in words.match_indices(first) {
        let rest = pieces.clone().try_fold(&words[start + first.len()..], |rest, piece| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let is_hole = is_number(&rest[..end]) || matches!(&rest[..end], "upward" | "downward");
            is_hole.then(|| rest[end..].strip_prefix(piece)).flatten()
        });
        if let Some(rest) = rest {
            return Some(format!("{}{shown}{rest}", &words[..start]));
        }
    }
    None
}

/// The words without what stands in brackets, and the space before them.
fn without_brackets(words: &str) -> String {
    let mut told = words.to_string();
    while let Some(start) = told.find(" [") {
        let Some(end) = told[start..].find(']') else { break };
        told.replace_range(start..=start + end, "");
    }
    told
}

/// Changes of what is told apart, and of what is done there.
fn contexts(words: &str) -> Option<String> {
    if let Some([from, to, share]) =
        holes(words, "split {} contexts into {} (explains at least {} of the reward's variance)")
    {
        let (to, share) = (quantity(to, "situation"), percent(share)?);
        return Some(format!("tells {to} apart instead of {from} (explains {share} of how rewards differ)"));
    }
    if let Some([from, to]) = holes(words, "join {} contexts into {} that choose the same") {
        return Some(format!("puts situations together that choose the same ({to} instead of {from})"));
    }
    if let Some([count]) = holes(words, "hold the best action of each of {} contexts") {
        return Some(match count {
            "1" => "takes the action that earned most so far".to_string(),
            _ => format!("takes in each of {count} situations what earned most so far"),
        });
    }
    if let Some([count]) = holes(words, "best action in each of {} contexts") {
        return Some(match count {
            "1" => "the action that earned most so far".to_string(),
            _ => format!("what earned most so far in each of {count} situations"),
        });
    }
    if let Some([place, since, by]) =
        holes(words, "forget context {} before {}: another action has been better by {} since")
    {
        let by = short(by)?;
        return Some(format!(
            "forgets what came before {since} in situation {place}: another action has been better by {by} since"
        ));
    }
    let [place, since, by] =
        holes(words, "forget context {} before {}: what an action earns there has moved by at least {}")?;
    let by = short(by)?;
    Some(format!(
        "forgets what came before {since} in situation {place}: what an action earns there has moved by at least {by}"
    ))
}

/// Changes of circuits.
fn circuits(words: &str) -> Option<String> {
    if let Some([_, to, from]) = holes(words, "slot {} with {} gates in place of {}") {
        let to = quantity(to, "gate");
        return Some(format!("a smaller circuit with the same answers: {to} instead of {from}"));
    }
    if let Some([steps, _, saved]) = holes(words, "{} steps of slot {} in a row, by a counter: {} gates less")
    {
        let saved = quantity(saved, "gate");
        return Some(format!("the same {steps} actions in a row, by a counter of steps: {saved} fewer"));
    }
    if holes::<1>(words, "retire slot {}, which is not held, to make room").is_some() {
        return Some("takes out an earlier circuit that is not in use, to make room".to_string());
    }
    let [gates] = holes(words, "circuit of {} gates that was started from")?;
    Some(format!("the circuit of {} that it was started from", quantity(gates, "gate")))
}

/// What is forbidden, and how actions adapt.
fn rules(words: &str) -> Option<String> {
    if let Some([count]) = holes(words, "forbid {} pairs of observation and action that the user rules out") {
        let pairs = quantity(count, "pair");
        return Some(format!("forbids {pairs} of observation and action that the user rules out"));
    }
    if let Some([count]) =
        holes(words, "forbid {} patterns of observation and action that the user rules out")
    {
        let patterns = quantity(count, "pattern");
        return Some(format!("forbids {patterns} of observation and action that the user rules out"));
    }
    if let Some([count]) = holes(words, "forbid {} actions that were BAD") {
        return Some(match count {
            "1" => "forbids 1 action that was bad".to_string(),
            _ => format!("forbids {count} actions that were bad"),
        });
    }
    let told = match words {
        "forbid nothing any more: another task begins" => "forbids nothing any more: another task begins",
        "adapt within episodes by the index" => "adapts within every episode to what its actions earn",
        "adapt within episodes to changes of the best action" => {
            "adapts within every episode when another action becomes the best"
        }
        _ => return None,
    };
    Some(told.to_string())
}

/// What a plan looks back at, wherever it stands in the words of the plan.
fn past(words: &str) -> String {
    let told = match words.split_once(" steps back") {
        None => words.to_string(),
        Some((before, after)) => match before.rsplit_once(" and ") {
            Some((before, "1")) => format!("{before} and the step before{after}"),
            Some((before, steps)) if is_number(steps) => {
                format!("{before} and the {steps} steps before{after}")
            }
            _ => words.to_string(),
        },
    };
    told.replace(" states of what was", " states of what is remembered")
}

/// One row, not 1 rows.
fn one_is_one(words: &str) -> String {
    let mut told: Vec<String> = words.split(' ').map(str::to_string).collect();
    for place in 0..told.len() {
        let between = told.get(place + 1).is_some_and(|word| BETWEEN.contains(&word.as_str()));
        let noun = place + 1 + usize::from(between);
        if told[place] != "1" || told.len() <= noun {
            continue;
        }
        let end = told[noun].trim_end_matches([',', ';', ':', ')', '.']).len();
        let (counted, stop) = told[noun].split_at(end);
        let one = match counted {
            "leaves" => "leaf",
            _ if COUNTED.contains(&counted) => &counted[..counted.len() - 1],
            _ => continue,
        };
        told[noun] = format!("{one}{stop}");
    }
    told.join(" ")
}

/// What stands in the holes of a pattern, if the words have its form. Only what is said to have happened when may hold a
/// space; all else is one word.
fn holes<'w, const COUNT: usize>(words: &'w str, pattern: &str) -> Option<[&'w str; COUNT]> {
    let mut pieces = pattern.split("{}");
    let mut rest = words.strip_prefix(pieces.next()?)?;
    let mut found = [""; COUNT];
    for hole in &mut found {
        let piece = pieces.next()?;
        let end = if piece.is_empty() { rest.len() } else { rest.find(piece)? };
        (*hole, rest) = (&rest[..end], &rest[end + piece.len()..]);
        let is_moment = hole.starts_with("episode ") || hole.starts_with("step ");
        if hole.is_empty() || hole.contains(' ') && !is_moment {
            return None;
        }
    }
    (rest.is_empty() && pieces.next().is_none()).then_some(found)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of six decimals in millionths.
fn millionths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.')?;
    let is_fit = is_number(whole) && is_number(decimals) && decimals.len() == 6;
    is_fit.then(|| whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(decimals.parse().ok()?))?
}

/// A share that is a lower bound in percent, with two figures, rounded down.
fn percent(share: &str) -> Option<String> {
    let share = millionths(share)?;
    let decimals = match share {
        0 => return Some("little".to_string()),
        100_000.. => 0,
        10_000.. => 1,
        1_000.. => 2,
        100.. => 3,
        _ => 4,
    };
    Some(format!("at least {} %", decimal(share, 4, decimals)))
}

/// A number with three decimals, rounded down.
fn short(text: &str) -> Option<String> {
    millionths(text).map(|value| decimal(value, 6, 3))
}

/// A number that has so many decimals with fewer of them.
fn decimal(value: u64, has: u32, shown: u32) -> String {
    let kept = value / 10u64.pow(has - shown);
    let (whole, part) = (kept / 10u64.pow(shown), kept % 10u64.pow(shown));
    if shown == 0 { whole.to_string() } else { format!("{whole}.{part:0width$}", width = shown as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_form_is_said_in_words_of_the_problem() {
        for (recorded, want) in [
            (
                "split 1 contexts into 4 (explains at least 0.039050 of the reward's variance)",
                "tells 4 situations apart instead of 1 (explains at least 3.9 % of how rewards differ)",
            ),
            (
                "split 16 contexts into 20 (explains at least 0.000000 of the reward's variance)",
                "tells 20 situations apart instead of 16 (explains little of how rewards differ)",
            ),
            (
                "join 16 contexts into 13 that choose the same",
                "puts situations together that choose the same (13 instead of 16)",
            ),
            (
                "join 2 contexts into 1 that choose the same",
                "puts situations together that choose the same (1 instead of 2)",
            ),
            ("hold the best action of each of 1 contexts", "takes the action that earned most so far"),
            (
                "hold the best action of each of 4 contexts",
                "takes in each of 4 situations what earned most so far",
            ),
            (
                "action of the highest value of 3, each of 3 bits [scan over field at 0 upward, ...]",
                "action of the highest value that is predicted",
            ),
            (
                "first action of 4 whose reward model says yes [choose by the count of the field at 12, ...], with the past",
                "first of 4 actions that is predicted to pay, with the past",
            ),
            ("scan over neighbours in the field at 0 upward", "one pass over pairs of bits in a field"),
            (
                "scan over fields at 0 and 18 downward, by 4 labels",
                "one pass over two fields side by side, by 4 labels",
            ),
            (
                "registers for the field at 0 under the last field at 6, written on bit 3",
                "registers for a field under the last field, written on bit 3",
            ),
            ("sum of fields at 0 and 8, decision by 1 rules", "sum of two fields, decision by 1 rule"),
            (
                "fields at 0 and 1, first difference of 11 pairs of bits",
                "two fields, first difference of 11 pairs of bits",
            ),
            ("a field at noon", "a field at noon"),
            ("best action in each of 1 contexts", "the action that earned most so far"),
            ("best action in each of 13 contexts", "what earned most so far in each of 13 situations"),
            (
                "forget context 3 before episode 120: another action has been better by 0.120450 since",
                "forgets what came before episode 120 in situation 3: another action has been better by 0.120 since",
            ),
            (
                "forget context 0 before step 4 of episode 7: what an action earns there has moved by at least 1.500000",
                "forgets what came before step 4 of episode 7 in situation 0: what an action earns there has moved by at \
                 least 1.500",
            ),
            (
                "slot 2 with 5 gates in place of 14",
                "a smaller circuit with the same answers: 5 gates instead of 14",
            ),
            (
                "slot 2 with 1 gates in place of 4",
                "a smaller circuit with the same answers: 1 gate instead of 4",
            ),
            (
                "12 steps of slot 3 in a row, by a counter: 1 gates less",
                "the same 12 actions in a row, by a counter of steps: 1 gate fewer",
            ),
            (
                "retire slot 9, which is not held, to make room",
                "takes out an earlier circuit that is not in use, to make room",
            ),
            ("circuit of 1 gates that was started from", "the circuit of 1 gate that it was started from"),
            (
                "forbid 1 pairs of observation and action that the user rules out",
                "forbids 1 pair of observation and action that the user rules out",
            ),
            (
                "forbid 7 patterns of observation and action that the user rules out",
                "forbids 7 patterns of observation and action that the user rules out",
            ),
            ("forbid 1 actions that were BAD", "forbids 1 action that was bad"),
            ("forbid 3 actions that were BAD", "forbids 3 actions that were bad"),
            ("forbid nothing any more: another task begins", "forbids nothing any more: another task begins"),
            ("adapt within episodes by the index", "adapts within every episode to what its actions earn"),
            (
                "adapt within episodes to changes of the best action",
                "adapts within every episode when another action becomes the best",
            ),
        ] {
            assert_eq!(plain(recorded), want);
        }
    }

    #[test]
    fn a_plan_says_what_it_looks_back_at_and_one_is_singular() {
        for (recorded, want) in [
            ("plan over 71 observations and 1 steps back", "plan over 71 observations and the step before"),
            (
                "plan by steps left over 2 observations and 2 steps back, by counts",
                "plan by steps left over 2 observations and the 2 steps before, by counts",
            ),
            (
                "plan over 1 observations and 3 states of what was",
                "plan over 1 observation and 3 states of what is remembered",
            ),
            ("decision tree of 1 leaves", "decision tree of 1 leaf"),
            ("table of 1 rows, carried over", "table of 1 row, carried over"),
            ("count over 1 ranked bits, 1 changes", "count over 1 ranked bit, 1 change"),
            ("polynomial of degree 1, 1 terms", "polynomial of degree 1, 1 term"),
        ] {
            assert_eq!(plain(recorded), want);
        }
    }

    #[test]
    fn words_of_another_form_pass_as_they_are() {
        for words in [
            "",
            "always 0",
            "xor of 12 bits",
            "plan by steps left over 16 observations",
            "fields at noon, first difference of 11 pairs of bits",
            "split 2 contexts into 4",
            "split 2 contexts into 4 (explains at least much of the reward's variance)",
            "hold the best action of each of 4 contexts and more",
            "a model says: slot 2 with 5 gates in place of 14",
            "steps back",
            "and 2 and x steps back",
            "template parity{n=4}, from template 3",
        ] {
            assert_eq!(plain(words), words);
        }
    }

    #[test]
    fn shares_are_rounded_down_to_two_figures() {
        for (share, want) in [
            ("1.000000", "at least 100 %"),
            ("0.999999", "at least 99 %"),
            ("0.039050", "at least 3.9 %"),
            ("0.002020", "at least 0.20 %"),
            ("0.000469", "at least 0.046 %"),
            ("0.000088", "at least 0.0088 %"),
            ("0.000000", "little"),
        ] {
            assert_eq!(percent(share).as_deref(), Some(want), "{share}");
        }
        assert!(["1", "0.5", "-0.500000", "a.000000"].iter().all(|text| percent(text).is_none()));
    }
}
