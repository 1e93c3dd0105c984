//! The routed choice over plain actions: contexts of tested bits with action statistics in each.
//!
//! It starts as one context (decision D-33). Contexts come and go by patches alone ([`crate::contexts`]); what the log says
//! about them is in [`growth`]. Statistics then choose by UCB-V; frozen, the tree compiles into a circuit of its best
//! actions. Must not know which game it plays. Clauses: VM-9, VM-10, VM-16; decisions D-1 to D-4, D-33.

pub(crate) mod growth;

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_circuit::netlist::{Builder, Signal};
use bem_evolve::contexts::{Choice, ContextTree};
use bem_evolve::verify::RETURN_TOLERANCE;
use bem_learn::index::{self, ArmStatistics, Parameters};
use bem_learn::loss::{Loss, PayoffRange};
use bem_learn::ucb_v::estimate;
use bem_synth::experience::{Episode, Step};
use bem_synth::hypothesis::Stated;
use bem_synth::policy::{Policy, PolicyState, action_bits};
use bem_synth::statement::{self, Statement};

/// A logged step with its number in the run.
pub(crate) type Seen<'e> = (u64, &'e Step);

/// The logged steps of every context that count, oldest first; `now` is the number of steps that were ever logged.
pub(crate) fn counted<'e>(choice: &Choice, episodes: &[&'e Episode], now: u64) -> Vec<Vec<Seen<'e>>> {
    let steps = || episodes.iter().flat_map(|episode| &episode.steps);
    let first = now.saturating_sub(steps().count() as u64);
    let mut contexts = vec![Vec::new(); choice.tree().count()];
    for (number, step) in (first..).zip(steps()) {
        let context = choice.tree().context(&step.observation);
        if choice.since()[context] <= number {
            contexts[context].push((number, step));
        }
    }
    contexts
}

/// The steps whose number is even, or odd.
fn every_other<'e>(counted: &[Vec<Seen<'e>>], parity: u64) -> Vec<Vec<Seen<'e>>> {
    let of =
        |steps: &Vec<Seen<'e>>| steps.iter().filter(|(number, _)| number % 2 == parity).copied().collect();
    counted.iter().map(of).collect()
}

/// The standard errors by which a new choice must be better than the one that acts. One is enough, because the judge has
/// had no part in the choice.
const GAIN_ERRORS: i128 = 1;
/// The standard errors by which it must be out of the question that it is worse by more than the tolerance, a share of what
/// the best actions are worth more than chance.
const DOUBT_ERRORS: i128 = 3;

/// What the actions brought in one context.
#[derive(Clone, Debug)]
struct Leaf {
    arms: Vec<ArmStatistics>,
    total: u64,
}

impl Leaf {
    fn new(actions: u16) -> Leaf {
        let half = Fixed::HALF.to_raw() as u64;
        let arm = ArmStatistics { visits: 1, loss_sum: half, loss_sq_sum: half / 2, prior: 0 };
        Leaf { arms: vec![arm; usize::from(actions)], total: 0 }
    }

    fn record(&mut self, action: u16, loss: Loss) {
        let arm = &mut self.arms[usize::from(action)];
        arm.visits += 1;
        arm.loss_sum += loss.to_raw();
        arm.loss_sq_sum += loss.squared_raw();
        self.total += 1;
    }

    fn choose(&self, parameters: &Parameters) -> u16 {
        let ln_total = Fixed::ln_count_floor(self.total + 1).to_raw() as u64;
        let indices =
            self.arms.iter().map(|arm| index::index_of(parameters, &estimate(arm, ln_total), arm.prior));
        indices.enumerate().min_by_key(|(action, index)| (*index, *action)).expect("worlds have actions").0
            as u16
    }

    fn decode(actions: u16, reader: &mut Reader<'_>) -> Result<Leaf, DecodeError> {
        let wild = reader.error("statistics that no play can have left");
        let mut leaf = Leaf::new(actions);
        leaf.total = reader.u64()?;
        for arm in &mut leaf.arms {
            (arm.visits, arm.loss_sum, arm.loss_sq_sum) = (reader.u32()?, reader.u64()?, reader.u64()?);
            let most = u64::from(arm.visits) << FRACTION_BITS;
            if arm.visits == 0 || most < arm.loss_sum || arm.loss_sum < arm.loss_sq_sum {
                return Err(wild);
            }
        }
        if leaf.total < 1 << 48 { Ok(leaf) } else { Err(wild) }
    }

    /// The action with the lowest mean loss; the imagined visit at one half keeps untried ones in the middle.
    fn best(&self) -> u16 {
        let means = self.arms.iter().map(mean_loss).enumerate();
        means.min_by_key(|(action, mean)| (*mean, *action)).expect("worlds have actions").0 as u16
    }
}

/// The mean loss, in parts of [`FRACTION_BITS`].
fn mean_loss(arm: &ArmStatistics) -> i128 {
    i128::from(arm.loss_sum) / i128::from(arm.visits)
}

/// The squared standard error of the mean loss, in parts of [`FRACTION_BITS`]. The imagined visit tells nothing: its loss
/// might have been any.
fn squared_error(arm: &ArmStatistics) -> i128 {
    let visits = i128::from(arm.visits);
    let mean = mean_loss(arm);
    let variance = i128::from(arm.loss_sq_sum) / visits - ((mean * mean) >> FRACTION_BITS);
    let imagined = i128::from(Fixed::ONE.to_raw()) / 4;
    (variance.max(0) + imagined / visits) / visits
}

/// Statistics of every action in every context.
#[derive(Clone, Debug)]
pub struct RoutedBandit {
    contexts: ContextTree,
    leaves: Vec<Leaf>,
    parameters: Parameters,
    range: PayoffRange,
    actions: u16,
    observation_bits: usize,
}

impl RoutedBandit {
    /// One context, nothing known.
    pub fn new(shape: &Shape) -> RoutedBandit {
        RoutedBandit::with(shape, ContextTree::whole())
    }

    fn with(shape: &Shape, contexts: ContextTree) -> RoutedBandit {
        let (low, high) = (i64::from(shape.reward_min), i64::from(shape.reward_max));
        RoutedBandit {
            leaves: vec![Leaf::new(shape.actions); contexts.count()],
            contexts,
            parameters: Parameters { change: None, ..Parameters::DEFAULT },
            range: PayoffRange::new(low, high.max(low + 1)).expect("rewards of 32 bits lie within the span"),
            actions: shape.actions,
            observation_bits: usize::from(shape.observation_bits),
        }
    }

    /// These contexts with the statistics that the logged steps of each give it.
    pub(crate) fn from_counted(shape: &Shape, tree: &ContextTree, counted: &[Vec<Seen<'_>>]) -> RoutedBandit {
        let mut bandit = RoutedBandit::with(shape, tree.clone());
        let range = bandit.range;
        for (leaf, steps) in bandit.leaves.iter_mut().zip(counted) {
            steps.iter().for_each(|(_, step)| leaf.record(step.action, range.loss(i64::from(step.reward))));
        }
        bandit
    }

    /// Whether the best actions are better than those that act by more than chance, and surely not worse. The lowest of many
    /// means is often the luckiest, so that what one half of the steps chooses is judged by the other half.
    pub(crate) fn improves_on(&self, acting: &[u16], shape: &Shape, counted: &[Vec<Seen<'_>>]) -> bool {
        let half =
            |parity: u64| RoutedBandit::from_counted(shape, &self.contexts, &every_other(counted, parity));
        let (even, odd) = (half(0), half(1));
        let judged = |judge: &RoutedBandit, chooser: &RoutedBandit| {
            let best = chooser.best_actions();
            (judge.gain(&best, acting), judge.worth(&best))
        };
        let ((by_odd, odd_worth), (by_even, even_worth)) = (judged(&odd, &even), judged(&even, &odd));
        let (gain, error) = (by_odd.0 + by_even.0, by_odd.1 + by_even.1);
        let worth = (odd_worth + even_worth).max(0);
        let tolerated = (worth * i128::from(RETURN_TOLERANCE.to_raw())) >> FRACTION_BITS;
        let exceeds = |amount: i128, errors: i128| {
            0 < amount && errors * errors * (error << FRACTION_BITS) < amount * amount
        };
        exceeds(gain, GAIN_ERRORS) && exceeds(gain + tolerated, DOUBT_ERRORS)
    }

    /// How much less these actions lose here than the mean of all, over all contexts together.
    fn worth(&self, actions: &[u16]) -> i128 {
        let one = |(leaf, action): (&Leaf, &u16)| {
            let sum: i128 = leaf.arms.iter().map(mean_loss).sum();
            let mean = sum / leaf.arms.len() as i128;
            i128::from(leaf.total) * (mean - mean_loss(&leaf.arms[usize::from(*action)]))
        };
        self.leaves.iter().zip(actions).map(one).sum()
    }

    /// The contexts.
    pub fn tree(&self) -> &ContextTree {
        &self.contexts
    }

    /// The range that losses are measured in.
    pub(crate) fn range(&self) -> PayoffRange {
        self.range
    }

    /// The best action of every context.
    pub fn best_actions(&self) -> Vec<u16> {
        self.leaves.iter().map(Leaf::best).collect()
    }

    /// What a policy without memory does in every context, if it does the same in all of it.
    pub(crate) fn actions_of(&self, policy: &Policy) -> Vec<u16> {
        let action = |path: &Vec<(u16, bool)>| {
            let mut observation = Bits::ZERO;
            path.iter().for_each(|(bit, value)| observation.set(usize::from(*bit), *value));
            PolicyState::new(policy).act(policy, &observation)
        };
        self.contexts.paths().iter().map(action).collect()
    }

    /// How much less these actions lose here than those, over all contexts together, and the squared error of that; both
    /// grow with the number of steps.
    fn gain(&self, actions: &[u16], others: &[u16]) -> (i128, i128) {
        let compare = |(leaf, (action, other)): (&Leaf, (&u16, &u16))| {
            let [ours, theirs] = [action, other].map(|action| &leaf.arms[usize::from(*action)]);
            let steps = i128::from(if action == other { 0 } else { leaf.total });
            let error = squared_error(ours) + squared_error(theirs);
            (steps * (mean_loss(theirs) - mean_loss(ours)), steps * steps * error)
        };
        let parts = self.leaves.iter().zip(actions.iter().zip(others)).map(compare);
        parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    /// The action whose loss could plausibly be lowest here.
    pub fn choose(&self, observation: &Bits) -> u16 {
        self.leaves[self.contexts.context(observation)].choose(&self.parameters)
    }

    /// Books one reward.
    pub fn record(&mut self, observation: &Bits, action: u16, reward: i32) {
        let loss = self.range.loss(i64::from(reward));
        self.leaves[self.contexts.context(observation)].record(action, loss);
    }

    /// Writes contexts and statistics; the rest follows from the shape.
    pub fn encode(&self, writer: &mut Writer) {
        self.contexts.encode(writer);
        for leaf in &self.leaves {
            writer.u64(leaf.total);
            for arm in &leaf.arms {
                writer.u32(arm.visits);
                writer.u64(arm.loss_sum);
                writer.u64(arm.loss_sq_sum);
            }
        }
    }

    /// Reads canonical bytes back and checks that they are a tree over the bits of this shape.
    pub fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<RoutedBandit, DecodeError> {
        let wild = reader.error("contexts that test what cannot be seen");
        let contexts = ContextTree::decode(reader)?;
        if contexts.bits().last().is_some_and(|bit| shape.observation_bits <= *bit) {
            return Err(wild);
        }
        let mut bandit = RoutedBandit::with(shape, contexts);
        for leaf in &mut bandit.leaves {
            *leaf = Leaf::decode(shape.actions, reader)?;
        }
        Ok(bandit)
    }

    /// How many contexts there are.
    pub fn contexts(&self) -> usize {
        self.contexts.count()
    }

    /// An action for every context as one circuit, and what it says.
    pub(crate) fn freeze_stated(&self, actions: &[u16]) -> Option<Stated> {
        let statement = Statement::of(statement::Choice::Tree(self.contexts.branches(actions)));
        Some(Stated { policy: self.freeze(actions)?, statement })
    }

    /// The circuit alone.
    pub(crate) fn freeze(&self, actions: &[u16]) -> Option<Policy> {
        let frozen = self.contexts.freeze(actions, action_bits(self.actions));
        let mut builder = Builder::new(self.observation_bits);
        let inputs: Vec<Signal> =
            self.contexts.bits().iter().map(|bit| Signal::input(usize::from(*bit))).collect();
        let action = builder.embed(&frozen, &inputs);
        Policy::close(builder, self.observation_bits, self.actions, &action, &[]).ok()
    }
}

#[cfg(test)]
mod tests;
