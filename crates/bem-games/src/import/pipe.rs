//! The protocol between BEM and a world in another program: one JSON object per line, either way.
//!
//! The program says `{"hello":1,"obs_bits":n,"actions":m,"horizon":h,"reward_range":[lo,hi],"fields":[[lo,width],..]}`
//! once. Then `{"reset":seed}` is answered by `{"obs":"0101"}`, and `{"act":k}` by
//! `{"obs":"0110","reward":1000,"done":false,"bad":false}`. An episode that reaches the horizon ends there. A program
//! whose episodes pay far less than the best reward at every step does well to say `"return_range":[lo,hi]` as well:
//! the narrower it is, the fewer episodes it takes to show that something is better. `"features":[..]` in place of `obs_bits`
//! and `fields` makes every `obs` an object of named values ([`bem_data`]); then `"bad_if"` and `"forbid"` may list rules
//! over them: what is BAD besides what the program says, and what must never be done. Where observations are bits,
//! `"forbidden":[{"obs":"01-","action":1}]` lists the latter. `"replay":false` says that a seed
//! brings no episode back. A reward may be missing in its own line and come as `"late":[[step,reward],..]` in a later one of
//! the same episode; steps count from 0. `"discount":990` (thousandths a step) ends every episode with the chance of the rest
//! after each step. `"optimum":x,"random":y` say in milli-units what the best policy and random play are worth an episode; then
//! there is a score. What is paid beyond the declared ranges widens them. Lines come and go through a [`Transport`]; processes and time limits are the application's. Clauses: GLE-9, VM-15.

use super::discount::{DISCOUNT_WHOLE, Discount, check_discount};
use super::{REWARD_MAX, milli_hint, without_line};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Forbidden, Late, Outcome, Shape};
use bem_base::limits::{ACTIONS_MAX, EPISODE_STEPS_MAX, OBSERVATION_BITS_MAX};
use bem_base::prng::Prng;
use bem_data::Encoder;
use bem_data::declared::{Declared, Texts, forbidden_bits};
use bem_data::feature::Value;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes of one line.
pub const LINE_BYTES_MAX: usize = 1 << 16;

/// Latest observations whose named values are kept, to see where numbers lie.
pub const ROWS_MAX: usize = 512;

/// What one episode may pay or cost in all, in milli-units.
const RETURN_MAX: i32 = i32::MAX;

/// Carries lines to and from the program.
pub trait Transport {
    /// Sends one line; the line end is added.
    fn send(&mut self, line: &str) -> Result<(), String>;
    /// Waits for one line, without its line end.
    fn receive(&mut self) -> Result<String, String>;
}

/// A world in another program.
pub struct PipeWorld<T> {
    transport: T,
    shape: Shape,
    /// The shape as the first line says it.
    said: Shape,
    /// Features and rules over them, where the program names them.
    declared: Option<Declared>,
    /// What must never be done, in rising order.
    forbidden: Vec<Forbidden>,
    observation: Bits,
    /// The named values behind the observation.
    values: Vec<Value>,
    /// Those of the latest observations, and how many there were.
    rows: Vec<Vec<Value>>,
    seen: usize,
    /// Lines received so far.
    line: u64,
    /// Whether an episode is under way.
    is_open: bool,
    /// Whether the program says that an episode comes back by its seed.
    repeats: bool,
    discount: Discount,
    /// Draws when a discounted episode ends.
    prng: Prng,
    /// The rewards of the episode so far; none of a step whose reward is still to come.
    paid: Vec<Option<i32>>,
    /// Rewards of earlier steps that came with the last one.
    late: Vec<Late>,
    /// What the best policy and random play are worth, where the program says it.
    stated: Option<(i64, i64)>,
}

/// The program's first line: what may be known before playing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    hello: u32,
    #[serde(default)]
    obs_bits: Option<usize>,
    actions: usize,
    horizon: u32,
    reward_range: (i32, i32),
    #[serde(default)]
    fields: Option<Vec<(u16, u16)>>,
    #[serde(default)]
    features: Option<Box<RawValue>>,
    #[serde(default)]
    bad_if: Option<Box<RawValue>>,
    #[serde(default)]
    forbid: Option<Box<RawValue>>,
    #[serde(default)]
    forbidden: Option<Box<RawValue>>,
    #[serde(default)]
    return_range: Option<(i64, i64)>,
    #[serde(default = "yes")]
    replay: bool,
    #[serde(default = "undiscounted")]
    discount: u32,
    #[serde(default)]
    optimum: Option<i64>,
    #[serde(default)]
    random: Option<i64>,
}

fn undiscounted() -> u32 {
    DISCOUNT_WHOLE
}

fn yes() -> bool {
    true
}

/// A reset's line from the program: what is seen first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    obs: Box<RawValue>,
}

/// A step's line from the program: what is seen next, and what the action brought.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    obs: Box<RawValue>,
    #[serde(default)]
    reward: Option<Reward>,
    done: bool,
    #[serde(default)]
    bad: bool,
    #[serde(default)]
    late: Vec<(u64, Reward)>,
}

/// A whole number of milli-units; one with a decimal point is answered with how it is written.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct Reward(i64);

impl TryFrom<serde_json::Value> for Reward {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Reward, String> {
        value.as_i64().map(Reward).ok_or_else(|| {
            let hint = milli_hint(&value).map_or(String::new(), |text| format!(": {text}"));
            format!("\"reward\" is {value}; it must be a whole number of milli-units{hint}")
        })
    }
}

fn external(text: String) -> EnvironmentError {
    EnvironmentError::External(text)
}

impl Hello {
    /// What the best policy and random play are worth; both or neither.
    fn stated(&self) -> Result<Option<(i64, i64)>, String> {
        match (self.optimum, self.random) {
            (None, None) => Ok(None),
            (Some(optimum), Some(random))
                if random <= optimum && optimum.abs().max(random.abs()) <= i64::from(RETURN_MAX) =>
            {
                Ok(Some((optimum, random)))
            }
            (Some(optimum), Some(random)) => Err(format!(
                "\"optimum\" is {optimum} and \"random\" {random}; random must not be the greater, and both at most {RETURN_MAX} milli-units"
            )),
            _ => Err("\"optimum\" and \"random\" belong together: one of them is missing".to_string()),
        }
    }

    /// Features and rules, if there are any.
    fn declared(&self) -> Result<Option<Declared>, String> {
        let texts = Texts {
            features: self.features.as_deref().map(RawValue::get),
            bad_if: self.bad_if.as_deref().map(RawValue::get),
            forbid: self.forbid.as_deref().map(RawValue::get),
        };
        if self.features.is_some() && (self.obs_bits.is_some() || self.fields.is_some()) {
            return Err("\"features\" stand in place of \"obs_bits\" and \"fields\"".to_string());
        }
        Declared::read(&texts, self.actions as u16, self.horizon).map_err(|error| error.to_string())
    }

    /// What must never be done: by rules over features, or pair by pair where observations are bits.
    fn forbidden(&self, shape: &Shape, declared: Option<&Declared>) -> Result<Vec<Forbidden>, String> {
        match (&self.forbidden, declared) {
            (None, declared) => Ok(declared.map_or_else(Vec::new, |declared| declared.forbidden.clone())),
            (Some(_), Some(_)) => {
                Err("\"forbidden\" goes with \"obs_bits\"; where there are \"features\", rules of \"forbid\" say it".to_string())
            }
            (Some(pairs), None) => {
                forbidden_bits(pairs.get(), usize::from(shape.observation_bits), shape.actions)
                    .map_err(|error| error.to_string())
            }
        }
    }

    fn check(&self) -> Result<(Shape, Option<Declared>), String> {
        let within = |what: &str, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("\"{what}\" is {value}; allowed is {low} to {high}"))
            }
        };
        within("hello", self.hello as usize, 1, 1)?;
        within("actions", self.actions, 1, ACTIONS_MAX)?;
        let declared = self.declared()?;
        let obs_bits = match &declared {
            Some(declared) => declared.encoder.bits(),
            None => self.obs_bits.ok_or("\"obs_bits\" is missing, and there are no \"features\"")?,
        };
        within("obs_bits", obs_bits, 0, OBSERVATION_BITS_MAX)?;
        within("horizon", self.horizon as usize, 1, EPISODE_STEPS_MAX as usize)?;
        let (low, high) = self.reward_range;
        if high < low {
            return Err(format!("\"reward_range\" is [{low},{high}]; the first must not be the greater"));
        }
        if low < -REWARD_MAX || REWARD_MAX < high {
            return Err(format!(
                "\"reward_range\" is [{low},{high}]; allowed is -{REWARD_MAX} to {REWARD_MAX} milli-units"
            ));
        }
        let fields = match (&self.fields, &declared) {
            (_, Some(declared)) => declared.encoder.fields(),
            (None, None) => (0..obs_bits as u16).map(|low| Field { low, width: 1 }).collect(),
            (Some(pairs), None) => check_fields(pairs, obs_bits)?,
        };
        let horizon = i64::from(self.horizon);
        let ends = |reward: i32| (i64::from(reward), i64::from(reward) * horizon);
        let widest = (ends(low).0.min(ends(low).1), ends(high).0.max(ends(high).1));
        let (return_min, return_max) = match self.return_range {
            None => widest,
            Some((low, high)) if widest.0 <= low && low <= high && high <= widest.1 => (low, high),
            Some((low, high)) => {
                return Err(format!(
                    "\"return_range\" is [{low},{high}]; it must lie within [{},{}], which horizon and rewards allow",
                    widest.0, widest.1
                ));
            }
        };
        let shape = Shape {
            observation_bits: obs_bits as u16,
            actions: self.actions as u16,
            horizon: self.horizon,
            reward_min: low,
            reward_max: high,
            return_min,
            return_max,
            fields,
        };
        Ok((shape, declared))
    }
}

fn check_fields(pairs: &[(u16, u16)], bits: usize) -> Result<Vec<Field>, String> {
    let mut next = 0usize;
    for (index, (low, width)) in pairs.iter().enumerate() {
        if usize::from(*low) != next || *width == 0 {
            return Err(format!(
                "field {index} is [{low},{width}]; it must start at bit {next} and have a width"
            ));
        }
        next += usize::from(*width);
    }
    if next != bits {
        return Err(format!("the fields end at bit {next}; there are {bits} observation bits"));
    }
    Ok(pairs.iter().map(|(low, width)| Field { low: *low, width: *width }).collect())
}

impl<T: Transport> PipeWorld<T> {
    /// Waits for the program's first line.
    pub fn open(mut transport: T) -> Result<PipeWorld<T>, EnvironmentError> {
        let text = transport.receive().map_err(|error| external(format!("line 1: {error}")))?;
        let ((shape, declared), forbidden, discount, repeats, stated) = parse::<Hello>(&text)
            .and_then(|hello| {
                let (shape, declared) = hello.check()?;
                let forbidden = hello.forbidden(&shape, declared.as_ref())?;
                let discount = check_discount(hello.discount)?;
                Ok(((shape, declared), forbidden, discount, hello.replay, hello.stated()?))
            })
            .map_err(|reason| external(format!("line 1: {reason}: {}", shortened(&text))))?;
        let (observation, values) = (Bits::ZERO, Vec::new());
        Ok(PipeWorld {
            transport,
            said: shape.clone(),
            shape,
            declared,
            forbidden,
            observation,
            values,
            rows: Vec::new(),
            seen: 0,
            line: 1,
            is_open: false,
            repeats,
            discount,
            prng: Prng::stream(0, "pipe/discount"),
            paid: Vec::new(),
            late: Vec::new(),
            stated,
        })
    }

    /// What the best policy and random play are worth an episode, in milli-units, where the program says it.
    pub fn stated(&self) -> Option<(i64, i64)> {
        self.stated
    }

    /// How named features become bits, where the program names them.
    pub fn encoder(&self) -> Option<&Encoder> {
        self.declared.as_ref().map(|declared| &declared.encoder)
    }

    /// The named values of the latest observations, in no order; none where observations are bits.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }

    /// What the program declares of named features, if it names any.
    pub fn declared(&self) -> Option<&Declared> {
        self.declared.as_ref()
    }

    /// Forgets what was paid beyond the declared ranges, and the episode under way: whoever learns begins with what the first line
    /// says, whatever was looked at before.
    pub fn forget_looks(&mut self) {
        (self.is_open, self.shape) = (false, self.said.clone());
    }

    /// Encodes the same features by other places from here on; false where they are not the same, take other bits, or lack a
    /// threshold of a rule. What a bit means changes, so that this comes before anybody learns. Decision D-317.
    pub fn take_encoder(&mut self, encoder: &Encoder) -> bool {
        let Some(declared) = &self.declared else { return false };
        let features =
            |of: &Encoder| of.columns().iter().map(|column| column.feature.clone()).collect::<Vec<_>>();
        let is_same =
            features(encoder) == features(&declared.encoder) && encoder.fields() == self.shape.fields;
        let Some(other) = is_same.then(|| declared.coded(encoder.clone(), self.shape.actions).ok()).flatten()
        else {
            return false;
        };
        self.forbidden.clone_from(&other.forbidden);
        self.declared = Some(other);
        (self.is_open, self.rows, self.seen) = (false, Vec::new(), 0);
        true
    }

    /// Keeps the named values of what an action is chosen by.
    fn keep_row(&mut self) {
        if self.values.is_empty() {
            return;
        }
        let place = self.seen % ROWS_MAX;
        self.seen += 1;
        match self.rows.get_mut(place) {
            Some(row) => row.clone_from(&self.values),
            None => self.rows.push(self.values.clone()),
        }
    }

    /// Gives the transport back, to close it.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Sends a line and reads the answer, which `read` must accept.
    fn ask<A>(
        &mut self,
        line: &str,
        read: impl Fn(&Shape, Option<&Declared>, &str) -> Result<A, String>,
    ) -> Result<A, EnvironmentError> {
        // Whatever goes wrong ends the episode: its state is no longer known.
        let is_open = core::mem::take(&mut self.is_open);
        self.transport.send(line).map_err(|error| external(format!("after line {}: {error}", self.line)))?;
        self.line += 1;
        let number = self.line;
        let text = self.transport.receive().map_err(|error| external(format!("line {number}: {error}")))?;
        let answer = read(&self.shape, self.declared.as_ref(), &text)
            .map_err(|reason| external(format!("line {number}: {reason}: {}", shortened(&text))))?;
        self.is_open = is_open;
        Ok(answer)
    }
}

fn parse<'a, A: Deserialize<'a>>(text: &'a str) -> Result<A, String> {
    if LINE_BYTES_MAX < text.len() {
        return Err(format!("a line of {} bytes; at most {LINE_BYTES_MAX} are allowed", text.len()));
    }
    serde_json::from_str(text).map_err(|error| without_line(&error))
}

/// What is seen, and the named values behind it.
fn observation(
    shape: &Shape,
    declared: Option<&Declared>,
    raw: &RawValue,
) -> Result<(Bits, Vec<Value>), String> {
    if let Some(Declared { encoder, .. }) = declared {
        let values = encoder.values_json(raw.get()).map_err(|error| format!("\"obs\": {error}"))?;
        return Ok((encoder.encode_values(&values), values));
    }
    let wanted = usize::from(shape.observation_bits);
    let text = serde_json::from_str::<String>(raw.get()).unwrap_or_default();
    match Bits::from_text(&text) {
        Some(bits) if text.len() == wanted => Ok((bits, Vec::new())),
        _ => Err(format!("\"obs\" must be {wanted} zeros and ones")),
    }
}

/// At most the first 80 letters.
fn shortened(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    if start.len() < text.len() { format!("{start}...") } else { start }
}

impl<T: Transport> Environment for PipeWorld<T> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn is_awaited(&self) -> bool {
        self.paid.last().is_some_and(Option::is_none)
    }

    fn late(&self) -> &[Late] {
        &self.late
    }

    fn forbidden(&self) -> &[Forbidden] {
        &self.forbidden
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        let read = |shape: &Shape, declared: Option<&Declared>, text: &str| {
            observation(shape, declared, &parse::<Seen>(text)?.obs)
        };
        (self.observation, self.values) = self.ask(&format!("{{\"reset\":{seed}}}"), read)?;
        (self.is_open, self.paid, self.late) = (true, Vec::new(), Vec::new());
        self.prng = Prng::stream(seed, "pipe/discount");
        self.keep_row();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if !self.is_open {
            return Err(EnvironmentError::EpisodeOver);
        }
        if self.shape.actions <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: self.shape.actions - 1 });
        }
        let before = core::mem::take(&mut self.values);
        let paid = core::mem::take(&mut self.paid);
        let is_ended = self.discount.ends(&mut self.prng);
        let read = |shape: &Shape, declared: Option<&Declared>, text: &str| {
            let answer: Answered = parse(text)?;
            let mut paid = paid.clone();
            let late = credit(&mut paid, &answer)?;
            let total: i64 = paid.iter().flatten().map(|reward| i64::from(*reward)).sum();
            let done = answer.done || is_ended || paid.len() == shape.horizon as usize;
            if done && i64::from(RETURN_MAX) < total.abs() {
                return Err(format!(
                    "the episode paid {total}; at most {RETURN_MAX} milli-units can be counted: use larger units"
                ));
            }
            let (bits, values) = observation(shape, declared, &answer.obs)?;
            let bad =
                answer.bad || declared.is_some_and(|declared| declared.is_bad(&before, action, &values));
            Ok(Credited { bits, values, done, bad, late, paid, total })
        };
        let Credited { bits, values, done, bad, late, paid, total } =
            self.ask(&format!("{{\"act\":{action}}}"), read)?;
        self.observation = if done { Bits::ZERO } else { bits };
        // What is paid beyond the range said at the start widens it: the learner notices.
        let own = paid.last().copied().flatten();
        let rewards = own.into_iter().chain(late.iter().map(|late| late.reward));
        rewards.for_each(|reward| self.shape.cover_reward(reward));
        if done {
            self.shape.cover_return(total);
        }
        (self.values, self.late, self.paid) = (values, late, paid);
        self.is_open = !done;
        if !done {
            self.keep_row();
        }
        Ok(Outcome { reward: own.unwrap_or(0), done, bad })
    }
}

/// An answer to an action, with all rewards of the episode so far.
struct Credited {
    bits: Bits,
    values: Vec<Value>,
    done: bool,
    bad: bool,
    late: Vec<Late>,
    paid: Vec<Option<i32>>,
    total: i64,
}

/// Enters the rewards of an answer: its own, and those of earlier steps, which are handed back. The same reward again is
/// nothing new; another one for the same step is refused.
fn credit(paid: &mut Vec<Option<i32>>, answer: &Answered) -> Result<Vec<Late>, String> {
    let checked = |what: &str, Reward(reward): Reward| match i32::try_from(reward) {
        Ok(reward) if (-REWARD_MAX..=REWARD_MAX).contains(&reward) => Ok(reward),
        _ => Err(format!("{what} is {reward}; allowed is -{REWARD_MAX} to {REWARD_MAX} milli-units")),
    };
    paid.push(answer.reward.map(|reward| checked("\"reward\"", reward)).transpose()?);
    let last = paid.len() - 1;
    let mut late = Vec::new();
    for (step, reward) in &answer.late {
        let reward = checked("a reward in \"late\"", *reward)?;
        let place = usize::try_from(*step).ok().filter(|place| *place <= last);
        let Some(place) = place else {
            return Err(format!("\"late\" names step {step}; the last step of this episode is {last}"));
        };
        match paid[place] {
            None => {
                paid[place] = Some(reward);
                if place < last {
                    late.push(Late { step: place as u32, reward });
                }
            }
            Some(before) if before == reward => {}
            Some(before) => {
                return Err(format!(
                    "\"late\" pays {reward} for step {step}, which was paid {before}: leave \"reward\" out where it comes later"
                ));
            }
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests;
