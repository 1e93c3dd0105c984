//! Learning from a log: candidates are fitted on folds, held-out rows choose among them, the winner becomes a circuit.
//!
//! Every row has a gain for every action: one for the label that is right, or the doubly robust score of a logged decision,
//! whose reward model never saw the case. Trees and votes are fitted to gains; a candidate's worth is its mean gain on rows
//! it has not seen. What is claimed of the winner comes from cross-validation (labels) or from rows set aside (logged
//! decisions), and the gate asks whether the lower end of the gain over what is there already is above zero.
//! Clauses: GLE-9, SCC-2.

use crate::cases::{Cases, FOLDS, by_case};
use crate::cuts::{self, Gains};
use crate::design::Design;
use crate::estimate::{self, Estimate, Interval, Row, interval};
use crate::linear::{self, CERTAIN, Weights};
use crate::log::Log;
use crate::rewards::{Scores, predicted, propensities, reward_models, targets};
use crate::support::Support;
use crate::tree::{self, Tree};
use crate::vote::Votes;
use bem_base::fixed::Fixed;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Code, DataError, Encoder};
use bem_synth::policy::{Policy, action_bits};

/// Rows that are learned from at most.
pub const ROWS_MAX: usize = 200_000;
/// Rows without which nothing can be held out.
const ROWS_MIN: usize = 20;
/// Leaves of trees that are tried.
const LEAVES: [usize; 5] = [2, 4, 8, 16, 32];
/// Penalties of votes that are tried.
const PENALTIES: [i64; 3] = [1, 4, 16];
/// Largest weights of votes that are tried.
const LARGEST: [i64; 3] = [3, 7, 15];

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// All random choices come from this number.
    pub seed: u64,
    /// Gates that a circuit may take.
    pub gates_max: usize,
    /// Of logged decisions, how many of a hundred are set aside for the gate.
    pub set_aside: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, gates_max: 7_600, set_aside: 30 }
    }
}

/// A candidate, before it is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelKind {
    /// Always the action that brings most.
    Fixed,
    Tree {
        leaves: usize,
    },
    /// A tree over cuts that the rows ask for, instead of those of the grid.
    Sharp {
        leaves: usize,
    },
    Votes {
        penalty: i64,
        largest: i64,
    },
}

/// A fitted candidate.
enum Fitted {
    Fixed(u16),
    Tree(Tree, usize),
    Votes(Votes),
}

/// The candidate that won, and what it takes to carry it out.
struct Winner {
    fitted: Fitted,
    /// The comparisons that it is made of, where they are not those of the grid.
    own: Option<Design>,
    /// What it does where the log never did what it would do, cell by cell.
    fallbacks: Vec<u16>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lower end of the gain is above zero.
    Supported,
    /// The log does not show that the circuit is better than what is there already.
    NotSupported,
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct Learned {
    /// How rows become the bits that the circuit reads.
    pub encoder: Encoder,
    /// The circuit.
    pub policy: Policy,
    /// What it is, in words.
    pub words: String,
    /// Its mean gain a row: accuracy for labels, the doubly robust estimate for logged decisions.
    pub value: Interval,
    /// How much more that is than always the best fixed action (labels) or the logging policy (logged decisions).
    pub gain: Interval,
    /// Whether the gate lets it through.
    pub verdict: Verdict,
    /// Off-policy estimates on the rows set aside; labels have none.
    pub estimate: Option<Estimate>,
    /// The mean gain of every candidate on rows that it has not seen, best first.
    pub candidates: Vec<(String, Fixed)>,
    /// What to look out for.
    pub warnings: Vec<String>,
}

/// Told what is being done.
pub type OnProgress<'a> = &'a mut dyn FnMut(&str);

/// Learns a policy from rows that are decisions on their own.
pub fn learn(log: &Log, options: &Options, progress: OnProgress<'_>) -> Result<Learned, DataError> {
    let count = log.rows.len();
    if !(ROWS_MIN..=ROWS_MAX).contains(&count) {
        return Err(DataError::new(format!("the log has {count} rows; allowed is {ROWS_MIN} to {ROWS_MAX}")));
    }
    if log.actions.len() < 2 {
        return Err(DataError::new("the log has one action only: there is nothing to decide"));
    }
    let cases = Cases::new(log);
    let order = cases.shuffled(options.seed);
    let aside = if log.is_labelled { 0 } else { count * options.set_aside as usize / 100 };
    let (held, members) = cases.split(&order, aside);
    progress("finding thresholds");
    let support = Support::new(log, members);
    let design = Design::new(log, members, &support.cuts())?;
    let (propensities, mut warnings) = propensities(log, &design, &cases, members);
    progress("modelling rewards");
    let scores = Scores::new(log, &design, &cases, members, &propensities, &support);
    let gates_max = options.gates_max.saturating_sub(support.cost());
    let learner =
        Learner { log, design: &design, cases: &cases, scores: &scores, support: &support, gates_max };
    let (kind, candidates, cross) = learner.choose(members, progress)?;
    progress("fitting the winner");
    let winner = learner.fit_all(kind, members)?;
    let (policy, words) = learner.compile(&winner, kind)?;
    let used = winner.own.as_ref().unwrap_or(&design);
    let chosen =
        |row: u32| support.kept(row, winner.fitted.choose(&used.rows[row as usize]), &winner.fallbacks);
    let (value, gain, estimate) = if log.is_labelled {
        // What cross-validation measured is the procedure; the circuit is fitted on all rows.
        (cross.0.within(Fixed::ZERO, Fixed::ONE), cross.1, None)
    } else {
        let model = reward_models(log, &design, members);
        let row = |row: &u32| {
            let outcome = log.outcomes[*row as usize];
            let predict = |action: u16| predicted(log, &model, &design, *row, action);
            Row {
                matches: chosen(*row) == outcome.action,
                reward: outcome.reward,
                propensity: propensities[*row as usize],
                predicted: predict(chosen(*row)),
                predicted_logged: predict(outcome.action),
                case: cases.of(*row),
            }
        };
        let estimate = estimate::estimate(&held.iter().map(row).collect::<Vec<_>>());
        warnings.extend(estimate.warnings());
        (estimate.dr.unwrap_or(estimate.snips), estimate.gain, Some(estimate))
    };
    let is_supported = Fixed::ZERO < gain.low && estimate.as_ref().is_none_or(Estimate::is_supported);
    let verdict = if is_supported { Verdict::Supported } else { Verdict::NotSupported };
    let (encoder, policy) = narrowed(&used.encoder, policy)?;
    Ok(Learned { encoder, policy, words, value, gain, verdict, estimate, candidates, warnings })
}

/// What a log says about a policy that somebody else made. The rows must be encoded by the policy's encoder already;
/// `chosen` has its action for every row.
pub fn evaluate(log: &Log, chosen: &[u16], options: &Options) -> Result<(Estimate, Vec<String>), DataError> {
    let cases = Cases::new(log);
    let order = cases.shuffled(options.seed);
    let design = Design::new(log, &order, &[])?;
    let (propensities, mut warnings) = propensities(log, &design, &cases, &order);
    let support = Support::new(log, &order);
    let mut rows: Vec<(u32, Row)> = Vec::with_capacity(order.len());
    for fold in 0..FOLDS {
        let (held, rest) = cases.fold(&order, fold);
        let model = reward_models(log, &design, &rest);
        for row in held {
            let outcome = log.outcomes[row as usize];
            let predict = |action: u16| predicted(log, &model, &design, row, action);
            let chosen = chosen[row as usize];
            let known = usize::from(chosen) < log.actions.len();
            let matches = chosen == outcome.action;
            let (propensity, reward) = (propensities[row as usize], outcome.reward);
            let predicted = if known { predict(chosen) } else { Fixed::ZERO };
            rows.push((
                row,
                Row {
                    matches,
                    reward,
                    propensity,
                    predicted,
                    predicted_logged: predict(outcome.action),
                    case: cases.of(row),
                },
            ));
        }
    }
    rows.sort_by_key(|(row, _)| *row);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let beyond = (0..chosen.len()).filter(|row| support.is_never(*row as u32, chosen[*row])).count();
    let (low, high) = log.reward_range();
    let estimate = estimate::estimate(&rows).with_beyond(beyond as u64, high.minus(low));
    warnings.extend(estimate.warnings());
    Ok((estimate, warnings))
}

impl Fitted {
    fn choose(&self, row: &bem_base::environment::Bits) -> u16 {
        match self {
            Fitted::Fixed(action) => *action,
            Fitted::Tree(tree, leaves) => tree.choose(row, *leaves),
            Fitted::Votes(votes) => votes.choose(row),
        }
    }
}

/// What all fits to one log share: its rows, their scores, and the bounds on circuits.
struct Learner<'a> {
    log: &'a Log,
    design: &'a Design,
    cases: &'a Cases,
    scores: &'a Scores,
    support: &'a Support,
    gates_max: usize,
}

/// What a kind is called.
fn name(kind: ModelKind) -> String {
    match kind {
        ModelKind::Fixed => "always one action".to_string(),
        ModelKind::Tree { leaves } => format!("decision tree with {leaves} leaves"),
        ModelKind::Sharp { leaves } => {
            format!("decision tree with {leaves} leaves, thresholds by what rows say")
        }
        ModelKind::Votes { penalty, largest } => {
            format!("vote of bits with weights up to {largest} (penalty {penalty})")
        }
    }
}

impl Learner<'_> {
    fn kinds(&self) -> Vec<ModelKind> {
        let trees = LEAVES.iter().map(|leaves| ModelKind::Tree { leaves: *leaves });
        let votes = LARGEST.iter().flat_map(|largest| {
            PENALTIES.iter().map(|penalty| ModelKind::Votes { penalty: *penalty, largest: *largest })
        });
        let sharp = LEAVES.iter().map(|leaves| ModelKind::Sharp { leaves: *leaves });
        std::iter::once(ModelKind::Fixed).chain(trees).chain(sharp).chain(votes).collect()
    }

    /// The kind that does best on rows it has not seen, all of them with their means, and what choosing so gains in all and
    /// over the best fixed action: in every part of the rows by the kind that the other parts chose, so that no part is judged
    /// by a choice that it had a say in.
    fn choose(&self, members: &[u32], progress: OnProgress<'_>) -> Result<Chosen, DataError> {
        let kinds = self.kinds();
        let mut gains: Vec<Vec<i64>> = vec![Vec::with_capacity(members.len()); kinds.len()];
        let mut cases: Vec<u32> = Vec::with_capacity(members.len());
        let mut parts: Vec<std::ops::Range<usize>> = Vec::with_capacity(FOLDS);
        for fold in 0..FOLDS {
            progress(&format!("comparing candidates, part {} of {FOLDS}", fold + 1));
            let (held, rest) = self.cases.fold(members, fold);
            let fits = self.fit_kinds(&rest)?;
            parts.push(cases.len()..cases.len() + held.len());
            cases.extend(held.iter().map(|row| self.cases.of(*row)));
            for (kind, gains) in kinds.iter().zip(&mut gains) {
                let chosen = fits.choose(*kind, self, &rest, &held);
                gains.extend(held.iter().zip(chosen).map(|(row, action)| self.scores.gain(*row, action)));
            }
        }
        let winner = winner(&cases, &gains);
        let mut own: Vec<i64> = Vec::with_capacity(cases.len());
        for part in parts {
            let others: Vec<Vec<i64>> = gains.iter().map(|gains| without(gains, &part)).collect();
            let chosen = self::winner(&without(&cases, &part), &others);
            own.extend_from_slice(&gains[chosen][part]);
        }
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        order.sort_by_key(|place| (-total(&gains[*place]), *place));
        let mean = |place: usize| {
            Fixed::from_raw((total(&gains[place]) / gains[place].len().max(1) as i128) as i64 * 65_536)
        };
        let listed = order.iter().map(|place| (name(kinds[*place]), mean(*place))).collect();
        let more: Vec<i128> =
            own.iter().zip(&gains[0]).map(|(own, fixed)| i128::from(own - fixed) << 16).collect();
        let own: Vec<i128> = own.iter().map(|gain| i128::from(*gain) << 16).collect();
        let interval = |terms: &[i128]| interval(&by_case(&cases, terms));
        Ok((kinds[winner], listed, (interval(&own), interval(&more))))
    }

    fn fit_kinds(&self, rows: &[u32]) -> Result<Fits, DataError> {
        let largest = LEAVES[LEAVES.len() - 1];
        let sharp = self.sharpened(rows)?;
        Ok(Fits {
            tree: self.grow(self.design, rows, largest),
            sharp_tree: self.grow(&sharp, rows, largest),
            sharp,
            votes: PENALTIES.iter().map(|penalty| (*penalty, self.fit_weights(rows, *penalty))).collect(),
            fallbacks: self.fallbacks(rows),
        })
    }

    fn grow(&self, design: &Design, rows: &[u32], leaves: usize) -> Tree {
        tree::grow(&design.rows, rows, &self.scores.gains, self.scores.actions, leaves)
    }

    fn fallbacks(&self, rows: &[u32]) -> Vec<u16> {
        self.support.fallbacks(rows, &|row, action| self.scores.gain(row, action))
    }

    /// The comparisons that these rows ask for.
    fn sharpened(&self, rows: &[u32]) -> Result<Design, DataError> {
        let gains = match self.log.is_labelled {
            true => Gains::Taken(&self.log.outcomes),
            false => Gains::Each(&self.scores.gains),
        };
        let mut cuts = cuts::cut(self.log, rows, gains, LEAVES[LEAVES.len() - 1]).cuts;
        cuts.extend(self.support.cuts());
        Design::of(self.log, &cuts)
    }

    /// For every action the chance of its reward.
    fn fit_weights(&self, rows: &[u32], penalty: i64) -> Vec<Weights> {
        let (log, columns) = (self.log, &self.design.columns);
        let fit = |action: u16| {
            let mut counts = vec![0; log.rows.len()];
            let target = if log.is_labelled {
                rows.iter().for_each(|row| counts[*row as usize] = 1);
                log.outcomes
                    .iter()
                    .map(|outcome| if outcome.action == action { CERTAIN } else { 0 })
                    .collect()
            } else {
                for row in rows.iter().filter(|row| log.outcomes[**row as usize].action == action) {
                    counts[*row as usize] = 1;
                }
                targets(log)
            };
            linear::fit(columns, &target, &counts, penalty)
        };
        let actions = log.actions.len() as u16;
        // Of two labels the second is what the first is not.
        if log.is_labelled && actions == 2 {
            let second = fit(1);
            return vec![Weights { bits: vec![0; columns.len()], bias: 0 }, second];
        }
        (0..actions).map(fit).collect()
    }

    fn fit_all(&self, kind: ModelKind, rows: &[u32]) -> Result<Winner, DataError> {
        let (fitted, own) = match kind {
            ModelKind::Fixed => (Fitted::Fixed(self.scores.best_fixed(rows)), None),
            ModelKind::Tree { leaves } => (Fitted::Tree(self.grow(self.design, rows, leaves), leaves), None),
            ModelKind::Sharp { leaves } => {
                let own = self.sharpened(rows)?;
                (Fitted::Tree(self.grow(&own, rows, leaves), leaves), Some(own))
            }
            ModelKind::Votes { penalty, largest } => {
                let weights = self.fit_weights(rows, penalty);
                (Fitted::Votes(Votes::within(self.gates_max, &weights, largest)), None)
            }
        };
        Ok(Winner { fitted, own, fallbacks: self.fallbacks(rows) })
    }

    fn compile(&self, winner: &Winner, kind: ModelKind) -> Result<(Policy, String), DataError> {
        let design = winner.own.as_ref().unwrap_or(self.design);
        let (bits, actions) = (design.encoder.bits(), self.log.actions.len() as u16);
        let mut builder = Builder::new(bits);
        let named = |action: u16| &self.log.actions[usize::from(action)];
        let (action, words) = match &winner.fitted {
            Fitted::Fixed(action) => {
                let signals = (0..action_bits(actions)).map(|bit| Signal::constant(action >> bit & 1 == 1));
                let words = match self.support.bars(*action) {
                    true => format!("{}, and another action where the log never did that", named(*action)),
                    false => format!("always {}", named(*action)),
                };
                (signals.collect(), words)
            }
            Fitted::Tree(tree, leaves) => {
                let action = tree.build(&mut builder, actions, *leaves);
                (action, format!("decision tree with {} leaves", tree.leaves().min(*leaves)))
            }
            Fitted::Votes(votes) => {
                let used = votes.weights.iter().flatten().filter(|weight| **weight != 0).count();
                (votes.build(&mut builder), format!("{}: {used} weights", name(kind)))
            }
        };
        let bit = |cut: &cuts::Cut| design.bit_of(cut);
        let action = self.support.build(&mut builder, &action, &winner.fallbacks, &bit);
        // Trees are small and votes are cut to what they may cost, but a vote cannot be cut below the sums of its actions.
        let policy = Policy::close(builder, bits, actions, &action, &[]).map_err(|error| {
            DataError::new(format!("{words}: {error}: allow fewer gates, or log fewer features or actions"))
        })?;
        Ok((policy, words))
    }
}

/// The kind that won, all of them with their means, and what choosing so gains in all and over the best fixed action.
type Chosen = (ModelKind, Vec<(String, Fixed)>, (Interval, Interval));

fn total(gains: &[i64]) -> i128 {
    gains.iter().map(|gain| i128::from(*gain)).sum()
}

/// All but a part of them.
fn without<T: Copy>(all: &[T], part: &std::ops::Range<usize>) -> Vec<T> {
    all.iter().enumerate().filter(|(place, _)| !part.contains(place)).map(|(_, one)| *one).collect()
}

/// The place of the kind that gains most in these cases. Kinds are listed from simple to complex: a simpler one wins where it
/// does as well up to a tenth of the standard error of the difference.
fn winner(cases: &[u32], gains: &[Vec<i64>]) -> usize {
    let best = (0..gains.len()).rev().max_by_key(|place| total(&gains[*place])).unwrap_or(0);
    (0..=best).find(|place| is_as_good(cases, &gains[*place], &gains[best])).unwrap_or(best)
}

/// Whether the first gains are as good as the second up to a tenth of the standard error of their difference.
fn is_as_good(cases: &[u32], gains: &[i64], best: &[i64]) -> bool {
    let terms: Vec<i128> = best.iter().zip(gains).map(|(best, own)| i128::from(best - own) << 16).collect();
    let difference = interval(&by_case(cases, &terms));
    // The normal interval is 3.92 standard errors wide.
    difference.mean.to_raw().saturating_mul(40) <= difference.normal_width.to_raw()
}

/// Everything that was fitted on one part of the rows.
struct Fits {
    tree: Tree,
    sharp: Design,
    sharp_tree: Tree,
    votes: Vec<(i64, Vec<Weights>)>,
    fallbacks: Vec<u16>,
}

impl Fits {
    fn choose(&self, kind: ModelKind, learner: &Learner<'_>, rest: &[u32], held: &[u32]) -> Vec<u16> {
        let grid = &learner.design.rows;
        let chosen: Vec<u16> = match kind {
            ModelKind::Fixed => vec![learner.scores.best_fixed(rest); held.len()],
            ModelKind::Tree { leaves } => {
                held.iter().map(|row| self.tree.choose(&grid[*row as usize], leaves)).collect()
            }
            ModelKind::Sharp { leaves } => {
                let rows = &self.sharp.rows;
                held.iter().map(|row| self.sharp_tree.choose(&rows[*row as usize], leaves)).collect()
            }
            ModelKind::Votes { penalty, largest } => {
                let weights =
                    self.votes.iter().find(|(known, _)| *known == penalty).map(|(_, weights)| weights);
                let weights = weights.map_or(&[][..], Vec::as_slice);
                let votes = Votes::within(learner.gates_max, weights, largest);
                held.iter().map(|row| votes.choose(&grid[*row as usize])).collect()
            }
        };
        let kept = |(row, action): (&u32, u16)| learner.support.kept(*row, action, &self.fallbacks);
        held.iter().zip(chosen).map(kept).collect()
    }
}

/// The encoder of only those bits that the policy reads, and the policy over them.
fn narrowed(encoder: &Encoder, policy: Policy) -> Result<(Encoder, Policy), DataError> {
    let reads = |bit: usize| policy.reads().contains(&(bit as u16));
    let part = |column: &bem_data::Column| {
        let low = usize::from(column.low);
        fn kept<T: Copy>(list: &[T], low: usize, reads: &dyn Fn(usize) -> bool) -> Vec<T> {
            list.iter().enumerate().filter(|(place, _)| reads(low + place)).map(|(_, item)| *item).collect()
        }
        let code = match &column.code {
            _ if !(low..low + usize::from(column.width)).any(&reads) => Code::Unread,
            Code::Steps(thresholds) => Code::Steps(kept(thresholds, low, &reads)),
            Code::Words(words) => Code::Words(kept(words, low, &reads)),
            other => other.clone(),
        };
        (column.feature.clone(), code)
    };
    let encoder = Encoder::new(encoder.columns().iter().map(part).collect())?;
    let count = policy.reads().len() as u16;
    let policy =
        Policy::new(policy.circuit().clone(), (0..count).collect(), policy.memory_bits(), policy.actions())
            .ok_or_else(|| DataError::new("the circuit lost an input"))?;
    Ok((encoder, policy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_data::Table;

    #[test]
    fn a_circuit_that_takes_too_many_gates_is_an_error_that_says_so() {
        const ACTIONS: i64 = 64;
        let rows: Vec<String> =
            (0..320).map(|row| format!("{row},{},{}", row * 7 % 320, row % ACTIONS)).collect();
        let table = Table::from_csv(&format!("x,y,a\n{}\n", rows.join("\n"))).unwrap();
        let roles = crate::Roles {
            features: vec!["x".to_string(), "y".to_string()],
            label: Some("a".to_string()),
            ..crate::Roles::default()
        };
        let log = Log::new(&table, &roles, None).unwrap();
        let every: Vec<u32> = (0..320).collect();
        let (design, cases) = (Design::new(&log, &every, &[]).unwrap(), Cases::new(&log));
        let (scores, support) =
            (Scores { gains: Vec::new(), actions: ACTIONS as usize }, Support::new(&log, &every));
        let learner = Learner {
            log: &log,
            design: &design,
            cases: &cases,
            scores: &scores,
            support: &support,
            gates_max: 0,
        };
        let bits = design.encoder.bits() as i64;
        let compiled = |largest: i64| {
            let weight = |action: i64, bit: i64| (action * 7 + bit * 5) % (2 * largest + 1) - largest;
            let weights =
                (0..ACTIONS).map(|action| (0..bits).map(|bit| weight(action, bit)).collect()).collect();
            let votes = Votes { weights, bias: vec![0; ACTIONS as usize] };
            let winner = Winner { fitted: Fitted::Votes(votes), own: None, fallbacks: vec![0] };
            learner.compile(&winner, ModelKind::Votes { penalty: 1, largest })
        };
        let error = compiled(15).unwrap_err().to_string();
        assert!(
            error.contains("gates exceed the bound of 8192") && error.contains("allow fewer gates"),
            "{error}"
        );
        // The control: votes that weigh nothing.
        assert!(compiled(0).is_ok());
    }
}
