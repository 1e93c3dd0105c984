//! A served world's policy and decisions as they are taken away: where they come from, what was measured, what to look out for.
//!
//! The same words stand in what the server hands out and in what `bem export` and `bem explain` make of its folder. Must not know HTTP
//! nor files. Clauses: GLE-9, LOG-4; decisions D-191, D-255, D-256.

use crate::api::interval;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_circuit::formats::{Format, Model};
use bem_data::feature::Value;
use bem_data::{DataError, Declared, Encoder, FeatureKind};
use bem_engine::agent::Agent;
use bem_explain::counts_steps;
use bem_export::comments;
use bem_runtime::history::played::{LoggedEpisode, LoggedStep};
use bem_runtime::input::WorldSpec;
use bem_runtime::statistics::{Moments, Statistics};
use bem_synth::policy::Policy;
use std::fmt::Write as _;

/// The fewest episodes that are called the latest ones.
const LATEST_MIN: u64 = 200;
/// Columns of a log besides what was seen.
const COLUMNS: [&str; 4] = ["action", "reward", "propensity", "episode"];

/// What is said of what goes on learning within an episode.
pub const ADAPTING: &str = "what was measured adapts within an episode to what it earns; the circuit alone does what it does \
    before anything is learned, and earns less";

/// What to look out for where a policy remembers.
pub fn memory_warnings(policy: &Policy, horizon: u32) -> Vec<String> {
    if policy.memory_bits() == 0 {
        return Vec::new();
    }
    let mut warnings =
        vec![format!("learned in episodes of at most {horizon} steps; call bem_reset at the start of each")];
    let counting = counts_steps(policy);
    if 0 < counting {
        warnings.push(format!(
            "counts steps ({counting} memory bits move whatever is seen): made for episodes that end, not for a world \
             without end"
        ));
    }
    warnings
}

/// The circuit of a policy in one line.
pub fn circuit_line(policy: &Policy, bits: usize) -> String {
    format!(
        "circuit: {}, {} gates, {} memory bits, reads {} of {bits} observation bits, {} actions",
        policy.digest(),
        policy.gates(),
        policy.memory_bits(),
        policy.reads().len(),
        policy.actions()
    )
}

/// The policy in force of a served world, with what is known of it.
pub struct TakenPolicy<'t> {
    /// The world.
    pub spec: &'t WorldSpec,
    /// What was earned there.
    pub statistics: &'t Statistics,
    /// What acts when nothing is explored.
    pub agent: &'t Agent,
    /// What that is, in words.
    pub words: &'t str,
    /// The newest signed head of its history, with the last input that it covers.
    pub head: Option<(u64, Digest)>,
}

impl TakenPolicy<'_> {
    /// Where it comes from and what was measured, one line each.
    pub fn provenance(&self) -> Vec<String> {
        let (spec, shape, policy) = (self.spec, &self.spec.shape, self.agent.policy());
        let bits = usize::from(shape.observation_bits);
        let steps = quantity(shape.horizon, "step");
        let mut lines = vec![
            format!("BEM policy {}", spec.name),
            format!("served world: {bits} bits, {} actions, episodes of at most {steps}", shape.actions),
            match self.head {
                Some((input, head)) => format!("history: {head}, up to input {input}"),
                None => "history: nothing of it is signed yet".to_string(),
            },
            circuit_line(policy, bits),
            measured(self.statistics),
        ];
        let baselines = baselines(self.statistics, shape.horizon);
        if !baselines.is_empty() {
            lines.push(format!("baselines: {}", baselines.join(", ")));
        }
        let patches = quantity(self.statistics.applied, "patch");
        lines.push(format!("learned in {patches}: {}", plain(self.words)));
        if !spec.forbidden.is_empty() {
            let are_whole = spec.forbidden.iter().all(|pair| pair.seen.only().is_some());
            let noun = if are_whole { "forbidden pair" } else { "forbidden pattern" };
            let pairs = quantity(spec.forbidden.len(), noun);
            lines.push(format!("never takes {pairs} of observation and action"));
        }
        lines
    }

    /// What to look out for.
    pub fn warnings(&self) -> Vec<String> {
        let adapting = self.agent.adapts().then(|| ADAPTING.to_string());
        adapting.into_iter().chain(memory_warnings(self.agent.policy(), self.spec.shape.horizon)).collect()
    }

    /// Both, as the first lines of a file.
    pub fn lines(&self) -> Vec<String> {
        let warnings = self.warnings().into_iter().map(|warning| format!("warning: {warning}"));
        self.provenance().into_iter().chain(warnings).collect()
    }
}

/// A mean with half the width of its interval, in units.
fn figure(moments: &Moments) -> Option<String> {
    interval(moments).map(|(mean, half)| format!("{:.3} ± {:.3}", mean / 1_000.0, half / 1_000.0))
}

fn measured(statistics: &Statistics) -> String {
    let Some(all) = figure(&statistics.returns) else {
        return "measured: nothing, no episode is complete".to_string();
    };
    let episodes = statistics.returns.count;
    let mut line = format!(
        "measured: mean return {all} online (95 % interval, {episodes} episodes, exploring included)"
    );
    let mut latest = Moments::default();
    for point in statistics.curve.iter().rev() {
        if LATEST_MIN <= latest.count {
            break;
        }
        latest.count += point.count;
        latest.sum += point.sum;
        latest.squares = latest.squares.saturating_add(point.squares);
    }
    if let Some(mean) = figure(&latest).filter(|_| latest.count < episodes) {
        let _ = write!(line, ", {mean} of the latest {}", latest.count);
    }
    line
}

/// What simple policies earn, as far as it was seen.
fn baselines(statistics: &Statistics, horizon: u32) -> Vec<String> {
    let random = figure(&statistics.random).map(|mean| format!("random play {mean}"));
    // The rewards of drawn steps are returns only where an episode is one step.
    let best = statistics.best_fixed().filter(|_| horizon == 1);
    let best =
        best.and_then(|(action, moments)| Some(format!("best fixed action {action} {}", figure(&moments)?)));
    random.into_iter().chain(best).collect()
}

/// A policy as a circuit that other tools read, with where it comes from as comments.
pub fn circuit_bytes(
    policy: &Policy,
    name: &str,
    lines: &[String],
    format: Format,
) -> Result<Vec<u8>, String> {
    let memory = || 0..policy.memory_bits();
    let inputs: Vec<String> = (policy.reads().iter().map(|bit| format!("observation_{bit}")))
        .chain(memory().map(|bit| format!("memory_{bit}")))
        .collect();
    let actions = policy.circuit().outputs().len() - policy.memory_bits();
    let outputs: Vec<String> = ((0..actions).map(|bit| format!("action_{bit}")))
        .chain(memory().map(|bit| format!("next_memory_{bit}")))
        .collect();
    let model = Model::with_memory(&name.replace('/', "_"), policy.circuit().clone(), policy.memory_bits());
    let model = model.map_err(|error| error.to_string())?.named(&inputs, &outputs);
    let mut bytes = match format {
        // An AIGER file ends in a comment.
        Format::Aiger | Format::AigerAscii => Vec::new(),
        Format::Dot => comments(lines, "// ").into_bytes(),
        _ => comments(lines, "# ").into_bytes(),
    };
    bytes.extend(format.write(&model));
    if matches!(format, Format::Aiger | Format::AigerAscii) {
        bytes.extend(comments(lines, "").into_bytes());
    }
    Ok(bytes)
}

/// The lines of a world's log: what was seen, done and brought, as `bem learn`, `bem evaluate` and `--start-from` read it.
pub struct LogLines<'l> {
    spec: &'l WorldSpec,
    encoder: Option<Encoder>,
}

impl<'l> LogLines<'l> {
    /// The lines of this world; an error where a feature is called like one of the other columns.
    pub fn new(spec: &'l WorldSpec) -> Result<LogLines<'l>, DataError> {
        let encoder = Declared::encoder_of(&spec.note).ok();
        let columns = encoder.iter().flat_map(Encoder::columns);
        if let Some(column) = columns.into_iter().find(|column| COLUMNS.contains(&&*column.feature.name)) {
            return Err(DataError::new(format!(
                "the log of world {} cannot be written: its feature {:?} is called like a column of the log",
                spec.name, column.feature.name
            )));
        }
        Ok(LogLines { spec, encoder })
    }

    /// Writes the lines of an episode.
    pub fn write(&self, episode: &LoggedEpisode, text: &mut String) {
        for step in &episode.steps {
            text.push('{');
            self.seen(step, text);
            let (action, reward, chance) = (step.action, step.reward, decimal(step.propensity));
            let _ = write!(text, "\"action\":{action},\"reward\":{reward},\"propensity\":{chance}");
            // An episode of one step needs no name, and a column without a role would be a feature.
            if 1 < self.spec.shape.horizon {
                let _ = write!(text, ",\"episode\":{}", episode.first);
            }
            text.push_str("}\n");
        }
    }

    /// What was seen: a value of every feature that shows the same, or bits.
    fn seen(&self, step: &LoggedStep, text: &mut String) {
        let Some(encoder) = &self.encoder else {
            let bit = |bit| if step.observation.get(usize::from(bit)) { '1' } else { '0' };
            text.push_str("\"obs\":\"");
            text.extend((0..self.spec.shape.observation_bits).map(bit));
            text.push_str("\",");
            return;
        };
        let quoted = |word: &str| serde_json::Value::from(word).to_string();
        for (column, value) in encoder.columns().iter().zip(encoder.values_of(&step.observation)) {
            let _ = write!(text, "{}:", quoted(&column.feature.name));
            let _ = match (value, &column.feature.kind) {
                (Value::Number(number), _) => write!(text, "{number},"),
                (Value::Bit(bit), _) => write!(text, "{},", u8::from(bit)),
                (Value::Choice(place), FeatureKind::Choice(words)) => {
                    let word = words.get(usize::from(place)).map_or("", String::as_str);
                    write!(text, "{},", quoted(word))
                }
                (Value::Choice(place), _) => write!(text, "{place},"),
            };
        }
    }
}

/// A chance as a decimal number of twelve digits, rounded to the nearest: closer than the chance itself is known.
fn decimal(chance: Fixed) -> String {
    const UNIT: i128 = 1_000_000_000_000;
    let rounded = (i128::from(chance.to_raw()) * UNIT + (1 << 31)) >> 32;
    let (whole, rest) = (rounded / UNIT, rounded % UNIT);
    let digits = format!("{rest:012}");
    match digits.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Bits;
    use bem_data::Table;

    const HOUSE: &str = r#"{"name":"house","features":[{"name":"temp","kind":"number","min":-40,"max":60},
        {"name":"mode","kind":"choice","of":["off","o'n"]},{"name":"door","kind":"bit"}],"actions":3,"reward_range":[-100,100]"#;

    fn world(more: &str) -> WorldSpec {
        crate::api::read_world(format!("{HOUSE}{more}}}").as_bytes()).unwrap_or_else(|_| panic!("a world"))
    }

    fn lines(spec: &WorldSpec, steps: &[(Bits, i64)]) -> String {
        let step = |(observation, raw): &(Bits, i64)| LoggedStep {
            observation: *observation,
            action: 2,
            propensity: Fixed::from_raw(*raw),
            reward: -5,
        };
        let steps = steps.iter().map(step).collect();
        let mut text = String::new();
        let episode = LoggedEpisode { first: 7, complete: 9, steps };
        LogLines::new(spec).unwrap().write(&episode, &mut text);
        text
    }

    #[test]
    fn a_line_says_values_that_are_encoded_as_what_was_seen() {
        for more in ["", r#","horizon":4"#] {
            let spec = world(more);
            let encoder = Declared::encoder_of(&spec.note).unwrap();
            for seen in [
                r#"{"temp":21.37,"mode":"o'n","door":1}"#,
                r#"{"temp":-40,"mode":"off","door":0}"#,
                r#"{"temp":60,"mode":"off","door":1}"#,
            ] {
                let bits = encoder.encode_json(seen).unwrap();
                let text = lines(&spec, &[(bits, 1 << 30), (bits, 1 << 32)]);
                let table = Table::from_jsonl(&text).unwrap();
                let cell = |name: &str| table.rows[0].get(table.column(name).ok()?).map(String::as_str);
                assert_eq!(encoder.encode(cell).unwrap(), bits, "{text}");
                assert_eq!(
                    (cell("action"), cell("reward"), cell("propensity")),
                    (Some("2"), Some("-5"), Some("0.25"))
                );
                assert_eq!(cell("episode").is_some(), !more.is_empty(), "{text}");
                assert_eq!(table.rows[1][table.column("propensity").unwrap()], "1");
            }
        }
    }

    #[test]
    fn a_chance_keeps_more_digits_than_it_has() {
        for (raw, wanted) in [
            (1i64 << 32, "1"),
            ((1 << 32) - 1, "0.999999999767"),
            (1, "0.000000000233"),
            ((1 << 32) / 20, "0.049999999814"),
        ] {
            assert_eq!(decimal(Fixed::from_raw(raw)), wanted);
        }
    }

    #[test]
    fn a_feature_called_like_a_column_of_the_log_is_named() {
        let text = br#"{"name":"shop","features":[{"name":"reward","kind":"bit"}],"actions":2,"reward_range":[0,1]}"#;
        let spec = crate::api::read_world(text).unwrap_or_else(|_| panic!("a world"));
        let error = LogLines::new(&spec).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("feature \"reward\" is called like a column of the log"), "{error}");
    }
}
