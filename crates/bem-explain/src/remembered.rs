//! What is remembered, given by name: `steps so far=3`, `left (1 step ago)=2400`, `remembered 2=1`.
//!
//! The names are those that rules and reasons use, so that what was read can be asked about. What is not given is as at the
//! start of an episode; what was some steps ago says that there were as many steps. Must not know observations of now.
//! Clauses: GLE-9.

use crate::subject::refused;
use crate::{AskError, Explainable, Meaning, Topic, Words};
use bem_base::environment::Bits;

/// Names of facts that a message lists.
const LISTED_MAX: usize = 12;

/// What a place of memory is called where somebody gives its value.
fn name(words: &Words<'_>, place: usize) -> String {
    match words.topic(place) {
        Some(topic) => words.topic_name(topic),
        None => words.place(place),
    }
}

impl Explainable<'_> {
    /// Whether something that is remembered is called so.
    pub(crate) fn is_remembered(&self, words: &Words<'_>, fact: &str) -> bool {
        (self.policy.reads().len()..words.places.len()).any(|place| name(words, place) == fact)
    }

    /// What is remembered, by the names that it has.
    pub(crate) fn remembered_names(&self, words: &Words<'_>) -> String {
        let mut names: Vec<String> = Vec::new();
        for place in self.policy.reads().len()..words.places.len() {
            let name = name(words, place);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = if LISTED_MAX < names.len() { ", ..." } else { "" };
        names.truncate(LISTED_MAX);
        names.join(", ") + more
    }

    /// The memory bits in which these facts hold.
    pub(crate) fn memory_with(
        &self,
        words: &Words<'_>,
        facts: &[(&str, &str)],
    ) -> Result<Vec<bool>, AskError> {
        let observed = self.policy.reads().len();
        let mut memory = vec![false; self.policy.memory_bits()];
        let (mut steps, mut earliest): (Option<usize>, usize) = (None, 0);
        for (fact, value) in facts {
            let places: Vec<usize> =
                (observed..words.places.len()).filter(|place| name(words, *place) == *fact).collect();
            let Some(first) = places.first() else {
                let known = self.remembered_names(words);
                return Err(refused(format!("{fact:?} is not remembered: {known} are")));
            };
            let shown = self.shown(words, words.topic(*first), fact, value)?;
            for place in &places {
                memory[place - observed] = shown(words.places[*place]);
            }
            earliest = earliest.max(words.places[*first].back());
            if matches!(words.topic(*first), Some(Topic::Clock | Topic::Begun)) {
                steps = value.parse().ok();
            }
        }
        if let Some(steps) = steps.filter(|steps| *steps < earliest) {
            return Err(refused(format!(
                "cannot be: something {earliest} steps ago is given, and steps so far are {steps}"
            )));
        }
        for place in observed..words.places.len() {
            match words.places[place] {
                Meaning::Begun(least) if steps.is_none() => memory[place - observed] = least <= earliest,
                Meaning::Clock(digit) if steps.is_none() => {
                    memory[place - observed] = earliest >> digit & 1 == 1;
                }
                _ => {}
            }
        }
        Ok(memory)
    }

    /// What the inputs about one thing are where it has this value.
    fn shown<'w>(
        &self,
        words: &Words<'w>,
        topic: Option<Topic>,
        fact: &str,
        value: &str,
    ) -> Result<Box<dyn Fn(Meaning) -> bool + 'w>, AskError> {
        let number = |most: usize| {
            let number = value.parse::<usize>().ok().filter(|number| *number <= most);
            number.ok_or_else(|| {
                refused(format!("{fact}={value}: the value must be a whole number of at most {most}"))
            })
        };
        match topic {
            Some(Topic::Column { column, .. }) => {
                let column = &words.names.map_or(&[][..], |names| names.columns())[column];
                let value =
                    column.feature.value(value).map_err(|error| refused(format!("{fact}: {error}")))?;
                let bits = column.with(Bits::ZERO, value);
                Ok(Box::new(move |meaning| meaning.seen_bit().is_some_and(|bit| bits.get(usize::from(bit)))))
            }
            Some(Topic::Action { .. }) => {
                let action = match self.actions.iter().position(|action| action == value) {
                    Some(action) => action,
                    None => number(usize::from(self.policy.actions()) - 1)?,
                };
                Ok(Box::new(
                    move |meaning| matches!(meaning, Meaning::Acted { digit, .. } if action >> digit & 1 == 1),
                ))
            }
            Some(Topic::Clock) => {
                let steps = number(words.values(Topic::Clock).last().copied().unwrap_or(0))?;
                Ok(Box::new(
                    move |meaning| matches!(meaning, Meaning::Clock(digit) if steps >> digit & 1 == 1),
                ))
            }
            Some(Topic::Begun) => {
                let steps = number(self.horizon.map_or(usize::MAX, |most| most as usize))?;
                Ok(Box::new(move |meaning| matches!(meaning, Meaning::Begun(least) if least <= steps)))
            }
            None => {
                let is_set = number(1)? == 1;
                Ok(Box::new(move |_| is_set))
            }
        }
    }
}
