//! The keys of the page of questions: which key gives which answer where nobody has changed it, and the form that changes them.
//!
//! A person's own keys stay in their browser; the script puts them on the buttons. What is listed here is what the script holds
//! new keys against, so that no key means two things. Must not know what an answer does. Clause: HUM-12.

use crate::page::escaped;
use bem_people::kinds::QuestionKind;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Of a step: right, wrong, and one for each of the other actions.
pub const STEP: [&str; 18] =
    ["Enter", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "g"];
/// Of an episode: five grades, not to be learned from, for the curriculum only, unsafe.
pub const EPISODE: [&str; 8] = ["1", "2", "3", "4", "5", "d", "c", "x"];
/// Of a change: approve, reject, defer.
pub const PATCH: [&str; 3] = ["a", "x", "d"];
/// Of a ranking: one for each of what is ranked.
pub const RANKING: [&str; 16] =
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "g"];
/// Of the configuration: as it is, the four modes, asking by itself, labels that count more and less.
pub const CONFIG: [&str; 8] = ["Enter", "o", "w", "a", "l", "e", "+", "-"];

/// What can be done beside answering: its name in the script, in words, and its key.
const BESIDE: [(&str, &str, &str); 4] = [
    ("skip", "Skip", "s"),
    ("release", "Give back", "r"),
    ("undo", "Take my last answer back", "u"),
    ("help", "Keys", "?"),
];

/// The keys of the answers to questions of a kind.
fn answers_of(kind: QuestionKind) -> &'static [&'static str] {
    match kind {
        QuestionKind::LabelStep => &STEP,
        QuestionKind::ScoreEpisode => &EPISODE,
        QuestionKind::ApprovePatch => &PATCH,
        QuestionKind::RankTemplates => &RANKING,
        QuestionKind::AdjustConfig => &CONFIG,
    }
}

/// The key as `aria-keyshortcuts` spells it.
pub fn spelled(key: &str) -> &str {
    if key == "+" { "Plus" } else { key }
}

/// All usual keys, for the script.
fn usual() -> Value {
    let beside: Vec<Value> =
        BESIDE.iter().map(|(name, words, key)| json!({ "name": name, "words": words, "key": key })).collect();
    let answers: serde_json::Map<String, Value> =
        QuestionKind::ALL.iter().map(|kind| (kind.name().to_string(), json!(answers_of(*kind)))).collect();
    json!({ "beside": beside, "answers": answers })
}

/// The dialog that shows the keys and changes them. The script adds the answers of the question that is on the page.
pub fn dialog() -> String {
    let mut page = format!(
        "<dialog id=help data-keys=\"{}\" aria-labelledby=help-title><h2 id=help-title>Keys</h2>\
         <p>The key on a button answers and goes on to the next question. To change a key, go to its field and press another one; \
         an empty field means the usual key. Your keys are kept in this browser.</p>\
         <fieldset><legend>Beside answers</legend>",
        escaped(&usual().to_string())
    );
    for (name, words, key) in BESIDE {
        let _ = write!(
            page,
            "<p><label>{words} <input id=key-{name} data-usual=\"{key}\" maxlength=5 size=6 autocomplete=off></label></p>"
        );
    }
    page.push_str(
        "</fieldset><fieldset><legend>Answers to questions of this kind</legend>\
         <div id=answer-keys><p class=muted>No question is open: its answers would be listed here.</p></div></fieldset>\
         <p id=keys-said role=alert class=fail></p>\
         <p><button type=button id=save-keys>Keep these keys</button> <button type=button id=usual-keys>Usual keys for everything</button> \
         <button type=button id=close-help>Close</button></p></dialog>",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_people::RANKED_MAX;
    use bem_people::payload::context::CANDIDATES_MAX;
    use std::collections::BTreeSet;

    #[test]
    fn no_usual_key_means_two_things_and_every_answer_has_one() {
        for kind in QuestionKind::ALL {
            let answers = answers_of(*kind).iter().copied();
            let keys: Vec<&str> = answers.chain(BESIDE.iter().map(|(_, _, key)| *key)).collect();
            let different: BTreeSet<&str> = keys.iter().copied().collect();
            assert_eq!(keys.len(), different.len(), "{}", kind.name());
        }
        assert_eq!((STEP.len(), RANKING.len()), (CANDIDATES_MAX + 2, RANKED_MAX));
    }
}
