//! What several inputs are about together: a named feature, an action, the number of steps; now or some steps ago.
//!
//! A topic has values, each value shows itself in the inputs, and a set of values has words. Rules, reasons and what can
//! occur are made of these alike. Must not know rules. Clauses: GLE-9.

use crate::Words;
use crate::meaning::Meaning;
use crate::words::{ago, runs};
use bem_data::{Code, Column, Feature, FeatureKind};
use bem_synth::policy::action_bits;

/// What several inputs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// A named feature so many steps ago; 0 is now.
    Column {
        /// Which column of the encoder.
        column: usize,
        /// Steps ago.
        back: usize,
    },
    /// The action so many steps ago.
    Action {
        /// Steps ago.
        back: usize,
    },
    /// The number of steps so far, counted by a clock.
    Clock,
    /// The number of steps so far, as far as memory tells it.
    Begun,
}

impl Topic {
    /// How many steps ago; 0 for what is not about a step.
    pub fn back(&self) -> usize {
        match self {
            Topic::Column { back, .. } | Topic::Action { back } => *back,
            _ => 0,
        }
    }

    /// Whether it is what is seen now.
    pub fn is_seen(&self) -> bool {
        matches!(self, Topic::Column { back: 0, .. })
    }
}

impl Words<'_> {
    /// What an input is about, where that has a name.
    pub fn topic(&self, place: usize) -> Option<Topic> {
        match self.places[place] {
            Meaning::Seen { bit, back } => {
                let has = |column: &Column| (column.low..column.low + column.width).contains(&bit);
                let column = self.names?.columns().iter().position(has)?;
                Some(Topic::Column { column, back })
            }
            Meaning::Acted { back, .. } => Some(Topic::Action { back }),
            Meaning::Clock(_) => Some(Topic::Clock),
            Meaning::Begun(_) => Some(Topic::Begun),
            Meaning::Kept(_) => None,
        }
    }

    /// What it is called.
    pub fn topic_name(&self, topic: Topic) -> String {
        match topic {
            Topic::Column { column, back } => self.columns()[column].feature.name.clone() + &ago(back),
            Topic::Action { back } => format!("action{}", ago(back)),
            Topic::Clock | Topic::Begun => "steps so far".to_string(),
        }
    }

    fn columns(&self) -> &[Column] {
        self.names.map_or(&[], |names| names.columns())
    }

    /// What it can be, rising.
    pub fn values(&self, topic: Topic) -> Vec<usize> {
        let steps_max = self.horizon.map_or(usize::MAX, |steps| steps.max(1) as usize);
        match topic {
            Topic::Column { column, back } => {
                let all = self.columns()[column].values();
                match self.limits.get(column) {
                    None => all,
                    // Before there was such a step, memory shows the first value.
                    Some(met) => all
                        .into_iter()
                        .filter(|value| met.contains(value) || 0 < back && *value == 0)
                        .collect(),
                }
            }
            Topic::Action { .. } if !self.limits.is_empty() || !self.holds_codes_beyond => {
                (0..usize::from(self.actions)).collect()
            }
            // A code beyond the last action stands for action 0.
            Topic::Action { .. } => (0..1 << action_bits(self.actions)).collect(),
            Topic::Clock => {
                let is_digit = |meaning: &&Meaning| matches!(meaning, Meaning::Clock(_));
                let digits = self.places.iter().filter(is_digit).count();
                (0..(1 << digits).min(steps_max)).collect()
            }
            Topic::Begun => {
                let level = |meaning: &Meaning| if let Meaning::Begun(steps) = meaning { *steps } else { 0 };
                let most = self.places.iter().map(level).max().unwrap_or(0);
                (0..(most + 1).min(steps_max)).collect()
            }
        }
    }

    /// Whether an input that is about it is 1 where it has this value.
    pub fn shows(&self, topic: Topic, value: usize, place: usize) -> bool {
        match (self.places[place], topic) {
            (Meaning::Seen { bit, .. }, Topic::Column { column, .. }) => {
                let column = &self.columns()[column];
                column.shows(value, usize::from(bit - column.low))
            }
            (Meaning::Acted { digit, .. } | Meaning::Clock(digit), _) => value >> digit & 1 == 1,
            (Meaning::Begun(steps), _) => steps <= value,
            _ => false,
        }
    }

    /// Whether neighbouring values are neighbours in meaning.
    pub fn is_number(&self, topic: Topic) -> bool {
        match topic {
            Topic::Column { column, .. } => self.columns()[column].is_number(),
            Topic::Action { .. } => false,
            Topic::Clock | Topic::Begun => true,
        }
    }

    /// Whether it is a single bit that may be anything.
    pub fn is_bit(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Column { column, .. } if self.columns()[column].code == Code::Bit)
    }

    /// What it means that the value is one of these, which rise.
    pub fn among(&self, topic: Topic, chosen: &[usize]) -> String {
        match topic {
            Topic::Column { column, .. } => {
                let mut column = self.columns()[column].clone();
                column.feature.name = self.topic_name(topic);
                column.among_of(&self.values(topic), chosen)
            }
            Topic::Action { .. } => {
                let name = |action: usize| match self.action_names.get(action) {
                    Some(name) => name.clone(),
                    None if action < usize::from(self.actions) => action.to_string(),
                    None => format!("0 as {action}"),
                };
                let words = (0..1 << action_bits(self.actions)).map(name).collect();
                let feature = Feature { name: self.topic_name(topic), kind: FeatureKind::Choice(words) };
                let column = Column { feature, code: Code::Index, low: 0, width: 0 };
                column.among_of(&self.values(topic), chosen)
            }
            Topic::Clock | Topic::Begun => steps_among(&self.values(topic), chosen, topic == Topic::Begun),
        }
    }
}

/// What it means that the number of steps is one of these; where the last value is open, it stands for all above it too.
fn steps_among(all: &[usize], chosen: &[usize], is_open: bool) -> String {
    let name = "steps so far";
    let ranges = bem_data::values::runs(all, chosen);
    let (first, last) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
    match ranges.as_slice() {
        [] => format!("{name} is impossible"),
        [(low, high)] if *low == first && *high == last => format!("{name} is anything"),
        [(low, high)] if *high == last && (is_open || low < high) => format!("{name} >= {low}"),
        [(low, high)] if low == high => format!("{name} = {low}"),
        [(low, high)] if *low == first => format!("{name} < {}", high + 1),
        [(low, high)] => format!("{low} <= {name} <= {high}"),
        // Two ends without a middle.
        [(low, end), (start, high)] if *low == first && *high == last && end + 2 == *start => {
            format!("{name} != {}", end + 1)
        }
        _ if is_open && chosen.contains(&last) => {
            let others: Vec<usize> = all.iter().copied().filter(|value| !chosen.contains(value)).collect();
            format!("{name} not in {{{}}}", runs(&others))
        }
        _ => format!("{name} in {{{}}}", runs(chosen)),
    }
}
