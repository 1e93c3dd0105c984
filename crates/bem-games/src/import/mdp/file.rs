//! The JSON file: its form, and every number checked before a process is made of it. Clause: GLE-9.

use super::{Branch, POLICY_ENTRIES_MAX, Process, ROWS_MAX, SOLVE_WORK_MAX, STATES_MAX};
use crate::import::discount::{DISCOUNT_WHOLE, Discount, check_discount};
use crate::import::{ImportError, REWARD_MAX, milli_hint};
use crate::rules::bits_for;
use bem_base::environment::Bits;
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_data::Encoder;
use bem_data::declared::{Declared, OfStates, Texts};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// A decision process as its file is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    states: usize,
    actions: usize,
    horizon: u32,
    start: Vec<(usize, u32)>,
    transitions: Vec<Transition>,
    observe: Observe,
    #[serde(default)]
    features: Option<Box<RawValue>>,
    #[serde(default)]
    bad_if: Option<Box<RawValue>>,
    #[serde(default)]
    forbid: Option<Box<RawValue>>,
    #[serde(default = "undiscounted")]
    discount: u32,
}

fn undiscounted() -> u32 {
    DISCOUNT_WHOLE
}

/// `[s,a,s2,weight,reward,done]`, or with `bad` as a seventh.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Transition((usize, usize, usize, u32, i32, bool, bool));

impl TryFrom<Value> for Transition {
    type Error = String;

    fn try_from(value: Value) -> Result<Transition, String> {
        let form =
            "a transition has the form [state,action,next,weight,reward,done] or with bad as a seventh";
        let Value::Array(entries) = &value else { return Err(format!("{form}, not {value}")) };
        if !(6..=7).contains(&entries.len()) {
            return Err(format!("{form}; this one has {} entries: {value}", entries.len()));
        }
        let number = |place: usize, name: &str, low: i64, high: i64| {
            let entry = &entries[place];
            if place == REWARD_PLACE && entry.is_f64() {
                let hint = milli_hint(entry).map_or(String::new(), |text| format!(": {text}"));
                return Err(format!(
                    "the reward {entry} of {value} must be a whole number of milli-units{hint}"
                ));
            }
            entry.as_i64().filter(|number| (low..=high).contains(number)).ok_or_else(|| {
                format!("the {name} {entry} of {value} must be a whole number from {low} to {high}")
            })
        };
        let flag = |place: usize, name: &str| match entries.get(place) {
            None => Ok(false),
            Some(entry) => {
                entry.as_bool().ok_or_else(|| format!("the {name} {entry} of {value} must be true or false"))
            }
        };
        let index =
            |place: usize, name: &str| number(place, name, 0, i64::from(u32::MAX)).map(|it| it as usize);
        Ok(Transition((
            index(0, "state")?,
            index(1, "action")?,
            index(2, "next state")?,
            index(3, "weight")? as u32,
            number(REWARD_PLACE, "reward", i64::from(i32::MIN), i64::from(i32::MAX))? as i32,
            flag(5, "done")?,
            flag(6, "bad")?,
        )))
    }
}

/// Where the reward stands in a transition.
const REWARD_PLACE: usize = 4;

/// Texts are kept as they are: a number among named values has all its digits.
#[derive(Deserialize)]
#[serde(try_from = "Box<RawValue>")]
enum Observe {
    Name(String),
    Bits(Vec<Vec<u8>>),
    Named(Vec<Box<RawValue>>),
}

impl TryFrom<Box<RawValue>> for Observe {
    type Error = String;

    fn try_from(raw: Box<RawValue>) -> Result<Observe, String> {
        let text = raw.get();
        let name = serde_json::from_str(text).map(Observe::Name);
        let bits = || serde_json::from_str(text).map(Observe::Bits);
        let named = || serde_json::from_str(text).map(Observe::Named).ok().filter(|_| text.contains('{'));
        name.or_else(|_| bits()).ok().or_else(named).ok_or_else(|| {
            "\"observe\" must be \"state\" or a list of zeros and ones for every state, or an object of named values for every \
             state"
                .to_string()
        })
    }
}

fn within(what: &str, value: usize, low: usize, high: usize) -> Result<usize, ImportError> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(ImportError::content(format!("{what} is {value}; allowed is {low} to {high}")))
}

impl File {
    /// The process that the file describes, or the first number that is out of range.
    pub(super) fn check(self) -> Result<Process, ImportError> {
        let states = within("\"states\"", self.states, 1, STATES_MAX)?;
        let actions = within("\"actions\"", self.actions, 1, ACTIONS_MAX)?;
        within("\"horizon\"", self.horizon as usize, 1, EPISODE_STEPS_MAX as usize)?;
        let horizon = self.horizon as usize;
        within("\"states\" times \"actions\"", states * actions, 1, ROWS_MAX)?;
        within("\"states\" times \"horizon\"", states * horizon, 1, POLICY_ENTRIES_MAX)?;
        let discount = check_discount(self.discount).map_err(ImportError::Content)?;
        let branches = if discount.is_whole() { 1 } else { 2 } * self.transitions.len();
        let work = (states * actions + branches) * horizon;
        within("\"horizon\" times all transitions", work, 1, SOLVE_WORK_MAX)?;
        let mut start = Vec::new();
        for (index, (state, weight)) in self.start.iter().enumerate() {
            let state = within(&format!("the state of \"start\" entry {index}"), *state, 0, states - 1)?;
            start.push((state as u32, *weight));
        }
        check_weights("\"start\"", start.iter().map(|(_, weight)| *weight))?;
        let mut rows = vec![Vec::new(); states * actions];
        for (index, transition) in self.transitions.iter().enumerate() {
            let Transition((from, action, to, weight, reward, done, bad)) = *transition;
            let name = |what: &str| format!("the {what} of transition {index}");
            let from = within(&name("first state"), from, 0, states - 1)?;
            let action = within(&name("action"), action, 0, actions - 1)?;
            let target = within(&name("second state"), to, 0, states - 1)? as u32;
            if REWARD_MAX.unsigned_abs() < reward.unsigned_abs() {
                let text =
                    format!("{} is {reward}; allowed is -{REWARD_MAX} to {REWARD_MAX}", name("reward"));
                return Err(ImportError::Content(text));
            }
            let branch = Branch { target, weight, reward, done, bad };
            let parts = discounted(branch, discount).ok_or_else(|| {
                let text = format!("{} is {weight}; with this \"discount\" it is too large", name("weight"));
                ImportError::Content(text)
            })?;
            rows[from * actions + action].extend(parts);
        }
        let declared = self.declared(states)?;
        if let Some((declared, values)) = &declared {
            for (place, row) in rows.iter_mut().enumerate() {
                let (state, action) = (place / actions, (place % actions) as u16);
                for branch in row {
                    branch.bad |= declared.is_bad(&values[state], action, &values[branch.target as usize]);
                }
            }
        }
        let (observations, widths) = match &declared {
            None => self.observe.check(states)?,
            Some((Declared { encoder, .. }, values)) => {
                let widths = encoder.fields().iter().map(|field| usize::from(field.width)).collect();
                (values.iter().map(|values| encoder.encode_values(values)).collect(), widths)
            }
        };
        let forbidden = declared.map_or_else(Vec::new, |(declared, _)| declared.forbidden);
        let process =
            Process { actions, horizon: self.horizon, start, rows, observations, widths, forbidden };
        process.check_rows()?;
        if !process.forbidden.is_empty() && !process.shows_states() {
            return Err(ImportError::content("\"forbid\" needs observations that tell all states apart"));
        }
        Ok(process)
    }

    /// How named features become bits, where they are named.
    pub(super) fn encoder(&self) -> Option<Encoder> {
        let (declared, _) = self.declared(self.states).ok()??;
        Some(declared.encoder)
    }

    /// Named features with the values of every state, if there are any.
    fn declared(&self, states: usize) -> Result<Option<OfStates>, ImportError> {
        let texts = Texts {
            features: self.features.as_deref().map(RawValue::get),
            bad_if: self.bad_if.as_deref().map(RawValue::get),
            forbid: self.forbid.as_deref().map(RawValue::get),
        };
        let objects: Vec<&str> = match (&self.observe, texts.features) {
            (Observe::Named(objects), Some(_)) => objects.iter().map(|object| object.get()).collect(),
            (Observe::Named(_), None) => {
                return Err(ImportError::content(
                    "\"observe\" has named values, but \"features\" are missing",
                ));
            }
            (_, Some(_)) => {
                return Err(ImportError::content(
                    "with \"features\" every entry of \"observe\" must be an object of named values",
                ));
            }
            (_, None) => Vec::new(),
        };
        if texts.features.is_some() && objects.len() != states {
            let text = format!("\"observe\" has {} entries; there are {states} states", objects.len());
            return Err(ImportError::Content(text));
        }
        Declared::of_states(&texts, self.actions as u16, &objects)
            .map_err(|error| ImportError::Content(error.to_string()))
    }
}

/// A branch in a world that discounts: to be worth less by a part with every step is to end with that chance at every step.
/// Nothing where a weight becomes too large.
fn discounted(branch: Branch, discount: Discount) -> Option<Vec<Branch>> {
    if discount.is_whole() {
        return Some(vec![branch]);
    }
    let part =
        |share: u32, done: bool| Some(Branch { weight: branch.weight.checked_mul(share)?, done, ..branch });
    if branch.done {
        return Some(vec![part(discount.whole, true)?]);
    }
    Some(vec![part(discount.kept, false)?, part(discount.whole - discount.kept, true)?])
}

fn check_weights(what: &str, weights: impl Iterator<Item = u32>) -> Result<(), ImportError> {
    let sum: u64 = weights.map(u64::from).sum();
    if sum == 0 || u64::from(u32::MAX) < sum {
        let text = format!("the weights of {what} sum to {sum}; allowed is 1 to {}", u32::MAX);
        return Err(ImportError::Content(text));
    }
    Ok(())
}

impl Observe {
    fn check(&self, states: usize) -> Result<(Vec<Bits>, Vec<usize>), ImportError> {
        match self {
            Observe::Name(name) if name == "state" => {
                let width = bits_for(states as u64);
                let show = |state| {
                    let mut bits = Bits::ZERO;
                    bits.set_field(0, width, state as u64);
                    bits
                };
                Ok(((0..states).map(show).collect(), vec![width]))
            }
            // With features the states' values were read before.
            Observe::Named(_) => Err(ImportError::content("\"observe\" has named values without features")),
            Observe::Name(name) => {
                let text = format!(
                    "\"observe\" is {name:?}; allowed is \"state\" or a list of bits for every state"
                );
                Err(ImportError::Content(text))
            }
            Observe::Bits(lists) => {
                if lists.len() != states {
                    let text = format!("\"observe\" has {} entries; there are {states} states", lists.len());
                    return Err(ImportError::Content(text));
                }
                let width =
                    within("the number of bits of an observation", lists[0].len(), 0, OBSERVATION_BITS_MAX)?;
                let show = |(state, list): (usize, &Vec<u8>)| {
                    if list.len() != width || list.iter().any(|bit| 1 < *bit) {
                        let text = format!("\"observe\" entry {state} must be {width} zeros and ones");
                        return Err(ImportError::Content(text));
                    }
                    let mut bits = Bits::ZERO;
                    list.iter().enumerate().for_each(|(index, bit)| bits.set(index, *bit == 1));
                    Ok(bits)
                };
                let bits: Result<Vec<Bits>, _> = lists.iter().enumerate().map(show).collect();
                Ok((bits?, vec![1; width]))
            }
        }
    }
}

impl Process {
    /// Every state that an episode can stay in needs a way on for every action.
    fn check_rows(&self) -> Result<(), ImportError> {
        let mut reached: BTreeSet<u32> =
            self.start.iter().filter(|(_, weight)| 0 < *weight).map(|(state, _)| *state).collect();
        let mut open: Vec<u32> = reached.iter().copied().collect();
        while let Some(state) = open.pop() {
            for action in 0..self.actions {
                let row = self.row(state, action);
                if row.is_empty() {
                    let text = format!("state {state} has no transition for action {action}");
                    return Err(ImportError::Content(text));
                }
                check_weights(
                    &format!("state {state} and action {action}"),
                    row.iter().map(|branch| branch.weight),
                )?;
                for branch in row.iter().filter(|branch| !branch.done && 0 < branch.weight) {
                    if reached.insert(branch.target) {
                        open.push(branch.target);
                    }
                }
            }
        }
        Ok(())
    }
}
