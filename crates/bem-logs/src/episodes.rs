//! Logged episodes: the grammar of hypotheses proposes policies, per-decision weights say what they would have earned.
//!
//! Numbers become binary fields, the code that planners do better with; their thresholds are quantiles, moved to where rewards and
//! what comes after them differ. One part of the episodes is set aside before anything is proposed; the gate judges by it alone.
//! Clauses: GLE-9, SCC-2.

use crate::cases::Cases;
use crate::cuts::{self, Cut, Gains, Test};
use crate::design::Design;
use crate::estimate::{self, Estimate, Steps};
use crate::learn::{Learned, OnProgress, Options, Verdict};
use crate::log::Log;
use crate::rewards::propensities;
use crate::support::Support;
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_data::feature::Value;
use bem_data::grid::quantiles;
use bem_data::{Code, DataError, Decimal, Encoder, Feature, FeatureKind};
use bem_synth::experience::{Episode, Experience, Step};
use bem_synth::policy::{Player, Policy};
use bem_synth::propose::{Settings, propose};

/// Levels of a number.
const LEVELS: usize = 32;
/// Parts that steps are cut into where rewards differ, and again where what is earned from there on does.
const PARTS: usize = 8;
/// Episodes without which nothing can be set aside.
const EPISODES_MIN: usize = 20;
/// Steps that are learned from at most: what an experience holds.
pub const STEPS_MAX: usize = 1 << 18;

/// A log's episodes: for each the rows that it takes.
pub fn spans(log: &Log) -> Vec<core::ops::Range<usize>> {
    let mut spans: Vec<core::ops::Range<usize>> = Vec::new();
    for (row, outcome) in log.outcomes.iter().enumerate() {
        match spans.last_mut() {
            Some(span) if log.outcomes[span.start].episode == outcome.episode => span.end = row + 1,
            _ => spans.push(row..row + 1),
        }
    }
    spans
}

fn encoder(log: &Log, cuts: &[Cut]) -> Result<Encoder, DataError> {
    let code = |(place, feature): (usize, &Feature)| match &feature.kind {
        FeatureKind::Number { .. } => {
            let number = |values: &Vec<Value>| match values[place] {
                Value::Number(number) => Some(number),
                _ => None,
            };
            let numbers: Vec<Decimal> = log.rows.iter().filter_map(number).collect();
            Code::Level(moved(quantiles(&numbers, LEVELS - 1), place, cuts))
        }
        FeatureKind::Choice(_) => Code::Index,
        FeatureKind::Bit => Code::Bit,
    };
    let codes: Vec<Code> = log.features.iter().enumerate().map(code).collect();
    Encoder::new(log.features.iter().cloned().zip(codes).collect())
}

/// Thresholds of a number, as many as there were: for every cut the nearest of them gives way to it.
fn moved(mut thresholds: Vec<Decimal>, place: usize, cuts: &[Cut]) -> Vec<Decimal> {
    let mut kept: Vec<Decimal> = Vec::new();
    for cut in cuts.iter().filter(|cut| cut.feature == place) {
        let Test::AtLeast(threshold) = cut.test else { continue };
        let away = |own: &Decimal| threshold.max(*own).minus(threshold.min(*own));
        if let Some(nearest) = (0..thresholds.len()).min_by_key(|at| away(&thresholds[*at])) {
            thresholds.remove(nearest);
            kept.push(threshold);
        }
    }
    thresholds.extend(kept);
    thresholds.sort_unstable();
    thresholds.dedup();
    thresholds
}

/// Where in these episodes the reward of what was done changes, or what was earned from there on.
fn changes(log: &Log, spans: &[core::ops::Range<usize>], chances: &[Fixed]) -> Vec<Cut> {
    let actions = log.actions.len();
    let rows: Vec<u32> = spans.iter().flat_map(|span| span.clone().map(|row| row as u32)).collect();
    let mut later = vec![0i128; log.rows.len()];
    let mut own = vec![0i128; log.rows.len()];
    for span in spans {
        let mut sum = 0;
        for row in span.clone().rev() {
            own[row] = i128::from(log.outcomes[row].reward.to_raw());
            sum += own[row];
            later[row] = sum;
        }
    }
    let found = |worth: &[i128]| {
        let total: i128 = rows.iter().map(|row| worth[*row as usize]).sum();
        let mean = total / rows.len().max(1) as i128;
        let mut gains = vec![0i64; log.rows.len() * actions];
        for row in rows.iter().map(|row| *row as usize) {
            let weighted = ((worth[row] - mean) << 16) / i128::from(chances[row].to_raw()).max(1);
            gains[row * actions + usize::from(log.outcomes[row].action)] =
                weighted.clamp(-(1 << 50), 1 << 50) as i64;
        }
        cuts::cut(log, &rows, Gains::Each(&gains), PARTS).cuts
    };
    let mut all = found(&own);
    all.extend(found(&later));
    all.sort_unstable();
    all.dedup();
    all
}

/// A reward in milli-units, rounded down.
fn milli(reward: Fixed) -> i32 {
    let raw = (i128::from(reward.to_raw()) * 1_000) >> 32;
    raw.clamp(i128::from(i32::MIN / 2), i128::from(i32::MAX / 2)) as i32
}

fn shape(log: &Log, encoder: &Encoder, episodes: &[Episode]) -> Shape {
    let rewards = || episodes.iter().flat_map(|episode| &episode.steps).map(|step| step.reward);
    let totals = || episodes.iter().map(Episode::total);
    Shape {
        observation_bits: encoder.bits() as u16,
        actions: log.actions.len() as u16,
        horizon: episodes.iter().map(|episode| episode.steps.len()).max().unwrap_or(1) as u32,
        reward_min: rewards().min().unwrap_or(0),
        reward_max: rewards().max().unwrap_or(0),
        return_min: totals().min().unwrap_or(0),
        return_max: totals().max().unwrap_or(0),
        fields: encoder.fields(),
    }
}

/// The log as episodes of experience.
fn experience(
    log: &Log,
    rows: &[Bits],
    spans: &[core::ops::Range<usize>],
    chances: &[Fixed],
) -> Vec<Episode> {
    let step = |row: usize, last: bool| {
        let outcome = log.outcomes[row];
        let propensity = ((i128::from(chances[row].to_raw()) * 65_535) >> 32).clamp(1, 65_535) as u16;
        Step {
            observation: rows[row],
            action: outcome.action,
            reward: milli(outcome.reward),
            done: last,
            bad: false,
            uniform: u32::from(propensity).abs_diff(65_535 / log.actions.len() as u32) <= 1,
            propensity,
        }
    };
    let episode = |(serial, span): (usize, &core::ops::Range<usize>)| Episode {
        serial: serial as u64,
        steps: span.clone().map(|row| step(row, row + 1 == span.end)).collect(),
    };
    spans.iter().enumerate().map(episode).collect()
}

/// A log as judge: what a policy sees in its rows, the chances of what was done, and where the log never did something.
struct Judge<'a> {
    log: &'a Log,
    rows: &'a [Bits],
    chances: &'a [Fixed],
    support: &'a Support,
}

impl Judge<'_> {
    /// What these episodes say about a policy.
    fn judge(&self, policy: &Policy, spans: &[core::ops::Range<usize>]) -> Estimate {
        let mut player = Player::new(policy);
        let mut beyond = 0;
        let mut steps = |span: &core::ops::Range<usize>| -> Steps {
            player.begin();
            let (mut follows, mut is_beyond) = (true, false);
            let mut step = |row: usize| {
                let outcome = self.log.outcomes[row];
                let action = player.act(&self.rows[row]);
                // What comes after the policy has gone another way is no history of its own.
                is_beyond |= follows && self.support.is_never(row as u32, action);
                follows &= action == outcome.action;
                (action == outcome.action, outcome.reward, self.chances[row])
            };
            let steps = span.clone().map(&mut step).collect();
            beyond += u64::from(is_beyond);
            steps
        };
        let episodes: Vec<Steps> = spans.iter().map(&mut steps).collect();
        let total = |steps: &Steps| steps.iter().fold(Fixed::ZERO, |sum, (_, reward, _)| sum.plus(*reward));
        let totals = || episodes.iter().map(total);
        let spread = totals().max().unwrap_or_default().minus(totals().min().unwrap_or_default());
        estimate::estimate_episodes(&episodes).with_beyond(beyond, spread)
    }
}

fn chances(log: &Log, seed: u64) -> Result<(Vec<Fixed>, Vec<String>), DataError> {
    let cases = Cases::new(log);
    let order = cases.shuffled(seed);
    let design = Design::new(log, &order, &[])?;
    Ok(propensities(log, &design, &cases, &order))
}

/// Learns a policy from logged episodes.
pub fn learn(log: &Log, options: &Options, progress: OnProgress<'_>) -> Result<Learned, DataError> {
    let spans = spans(log);
    if spans.len() < EPISODES_MIN || STEPS_MAX < log.rows.len() {
        return Err(DataError::new(format!(
            "the log has {} episodes and {} steps; at least {EPISODES_MIN} episodes and at most {STEPS_MAX} steps are needed",
            spans.len(),
            log.rows.len()
        )));
    }
    let (chances, mut warnings) = chances(log, options.seed)?;
    let mut order: Vec<usize> = (0..spans.len()).collect();
    Prng::stream(options.seed, "logs/episodes").shuffle(&mut order);
    let aside = spans.len() * options.set_aside as usize / 100;
    let pick = |places: &[usize]| places.iter().map(|place| spans[*place].clone()).collect::<Vec<_>>();
    let (held, kept) = (pick(&order[..aside]), pick(&order[aside..]));
    progress("finding thresholds");
    let encoder = encoder(log, &changes(log, &kept, &chances))?;
    let rows: Vec<Bits> = log.rows.iter().map(|values| encoder.encode_values(values)).collect();
    let kept_rows: Vec<u32> = kept.iter().flat_map(|span| span.clone().map(|row| row as u32)).collect();
    let support = Support::new(log, &kept_rows);
    let judge = Judge { log, rows: &rows, chances: &chances, support: &support };
    progress("searching the grammar");
    let episodes = experience(log, &rows, &kept, &chances);
    let shape = shape(log, &encoder, &episodes);
    let mut log_of = Experience::new(STEPS_MAX);
    episodes.into_iter().for_each(|episode| log_of.push(episode));
    let proposal = propose(&shape, &log_of, &[], None, &Settings::default());
    let fixed = (0..shape.actions).map(|action| {
        (format!("always {}", log.actions[usize::from(action)]), Policy::constant(shape.actions, action))
    });
    let found = proposal.hypotheses.into_iter().map(|hypothesis| (hypothesis.words, hypothesis.policy));
    progress("comparing candidates");
    // A policy that does what the log never did comes after all others, whatever it promises.
    let mut judged: Vec<((bool, Fixed), String, Policy)> = (fixed.chain(found))
        .map(|(words, policy)| {
            let estimate = judge.judge(&policy, &kept);
            ((estimate.beyond == 0, estimate.snips.low), words, policy)
        })
        .collect();
    judged.sort_by_key(|(worth, ..)| core::cmp::Reverse(*worth));
    let candidates = judged.iter().map(|((_, low), words, _)| (words.clone(), *low)).collect();
    let Some((_, words, policy)) = judged.into_iter().next() else {
        return Err(DataError::new("nothing was proposed"));
    };
    let estimate = judge.judge(&policy, &held);
    warnings.extend(estimate.warnings());
    let is_supported = Fixed::ZERO < estimate.gain.low && estimate.is_supported();
    let verdict = if is_supported { Verdict::Supported } else { Verdict::NotSupported };
    let (value, gain) = (estimate.ips, estimate.gain);
    Ok(Learned {
        encoder,
        policy,
        words,
        value,
        gain,
        verdict,
        estimate: Some(estimate),
        candidates,
        warnings,
    })
}

/// What logged episodes say about a policy; `rows` are what it sees.
pub fn evaluate(
    log: &Log,
    policy: &Policy,
    rows: &[Bits],
    options: &Options,
) -> Result<(Estimate, Vec<String>), DataError> {
    let (chances, mut warnings) = chances(log, options.seed)?;
    let every: Vec<u32> = (0..log.rows.len() as u32).collect();
    let support = Support::new(log, &every);
    let judge = Judge { log, rows, chances: &chances, support: &support };
    let estimate = judge.judge(policy, &spans(log));
    warnings.extend(estimate.warnings());
    Ok((estimate, warnings))
}
