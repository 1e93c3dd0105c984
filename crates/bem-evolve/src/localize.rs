//! Error localisation: which steps of the log point at a place where structure should change.
//!
//! Suspects are the last steps of episodes with a low return and all steps with a large loss. From them follow the
//! bucket and slot that hurt most, and the bit that would divide a bucket best, with a lower bound of what dividing
//! would gain. Must not know circuits or proofs. Clause: SCC-13.

use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use std::collections::BTreeMap;

/// One step as routing saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedStep {
    /// The bucket it was routed to.
    pub bucket: u16,
    /// The slot of the expert that acted.
    pub slot: u8,
    /// What it lost, from zero to one.
    pub loss: Fixed,
    /// What was seen.
    pub observation: Bits,
}

/// The steps of one episode, in order.
pub type TracedEpisode = Vec<TracedStep>;

/// Where suspicion begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalizeOptions {
    /// The last steps of a bad episode that are suspect.
    pub last_steps: usize,
    /// The worst share of episodes, as one in this many, counts as bad.
    pub worst_one_in: usize,
    /// A step that loses more than this is suspect wherever it stands.
    pub loss_min: Fixed,
}

impl Default for LocalizeOptions {
    fn default() -> LocalizeOptions {
        LocalizeOptions { last_steps: 4, worst_one_in: 4, loss_min: Fixed::from_ratio(3, 4) }
    }
}

/// The suspects of each episode: positions of steps, rising.
#[doc(alias = "G(tau)")]
pub fn localize(episodes: &[TracedEpisode], options: LocalizeOptions) -> Vec<Vec<usize>> {
    let mean = |episode: &TracedEpisode| {
        let sum: i64 = episode.iter().map(|step| step.loss.to_raw()).sum();
        sum / episode.len().max(1) as i64
    };
    let means: Vec<i64> = episodes.iter().map(mean).collect();
    let mut order: Vec<usize> = (0..episodes.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(means[*index]), *index));
    let best = means.iter().copied().min().unwrap_or(0);
    let mut is_bad = vec![false; episodes.len()];
    for index in order.iter().take(episodes.len() / options.worst_one_in.max(1)) {
        // Where all episodes are alike, none of them is bad.
        is_bad[*index] = best < means[*index];
    }
    let suspects = |(index, episode): (usize, &TracedEpisode)| {
        let tail = episode.len().saturating_sub(options.last_steps);
        let suspect = |time: &usize| options.loss_min < episode[*time].loss || is_bad[index] && tail <= *time;
        (0..episode.len()).filter(suspect).collect()
    };
    episodes.iter().enumerate().map(suspects).collect()
}

/// How often each bucket and slot is suspect, most often first; ties go to the lowest bucket and slot.
pub fn blame(episodes: &[TracedEpisode], suspects: &[Vec<usize>]) -> Vec<((u16, u8), u32)> {
    let mut counts: BTreeMap<(u16, u8), u32> = BTreeMap::new();
    for (episode, times) in episodes.iter().zip(suspects) {
        for time in times {
            let step = &episode[*time];
            *counts.entry((step.bucket, step.slot)).or_default() += 1;
        }
    }
    let mut order: Vec<((u16, u8), u32)> = counts.into_iter().collect();
    order.sort_by_key(|(place, count)| (std::cmp::Reverse(*count), *place));
    order
}

/// A bit by which to divide a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The observation bit.
    pub bit: u16,
    /// The best slot where the bit is false, and where it is true.
    pub slots: (u8, u8),
    /// A lower bound of the mean loss that the better choice in each half saves.
    pub gain: Fixed,
    /// Logged steps it rests on.
    pub steps: u32,
}

/// Steps that an arm must have in a half before its mean counts.
const VISITS_MIN: u32 = 16;

/// How far a mean of this many losses may be from the truth, in all of this many comparisons but one case in twenty.
///
/// Hoeffding's bound: losses lie between zero and one, and every comparison gets its share of the twentieth.
pub fn doubt(visits: u32, comparisons: u64) -> Fixed {
    let surprise = Fixed::ln_count_floor(comparisons.saturating_mul(20).max(2)).plus(Fixed::from_raw(2));
    surprise.div_count_floor(2 * u64::from(visits.max(1))).sqrt_floor().plus(Fixed::from_raw(1))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    visits: u32,
    loss: i64,
}

impl Sum {
    fn mean(self) -> Fixed {
        Fixed::from_raw(self.loss / i64::from(self.visits.max(1)))
    }
}

/// The bit that divides a bucket best: in each half, another expert is the best one.
///
/// A gain is only believed after the uncertainty of all four means has been taken off, at a level that knows how many
/// bits and experts were looked at.
pub fn best_division(episodes: &[TracedEpisode], bucket: u16, observation_bits: u16) -> Option<Division> {
    let steps: Vec<&TracedStep> = episodes.iter().flatten().filter(|step| step.bucket == bucket).collect();
    let mut best: Option<Division> = None;
    for bit in 0..observation_bits {
        let mut sums: BTreeMap<(u8, bool), Sum> = BTreeMap::new();
        for step in &steps {
            let sum = sums.entry((step.slot, step.observation.get(usize::from(bit)))).or_default();
            sum.visits += 1;
            sum.loss += step.loss.to_raw();
        }
        let comparisons = u64::from(observation_bits) * sums.len() as u64;
        let Some((slots, gain)) = gain_of(&sums, comparisons) else { continue };
        if best.is_none_or(|division| division.gain < gain) {
            best = Some(Division { bit, slots, gain, steps: steps.len() as u32 });
        }
    }
    best.filter(|division| Fixed::ZERO < division.gain)
}

fn gain_of(sums: &BTreeMap<(u8, bool), Sum>, comparisons: u64) -> Option<((u8, u8), Fixed)> {
    let known =
        |slot: u8, half: bool| sums.get(&(slot, half)).filter(|sum| VISITS_MIN <= sum.visits).copied();
    let mut slots: Vec<u8> = sums.keys().map(|(slot, _)| *slot).collect();
    slots.dedup();
    slots.retain(|slot| known(*slot, false).is_some() && known(*slot, true).is_some());
    let mean = |slot: u8, half: bool| known(slot, half).unwrap_or_default().mean();
    let best = |half: bool| slots.iter().copied().min_by_key(|slot| mean(*slot, half));
    let (first, second) = (best(false)?, best(true)?);
    if first == second {
        return None;
    }
    // The best single expert for both halves, weighted by how often each half occurs.
    let visits = |half: bool| -> i64 {
        sums.iter().filter(|((_, side), _)| *side == half).map(|(_, sum)| i64::from(sum.visits)).sum()
    };
    let share = Fixed::from_ratio(visits(true), visits(false) + visits(true));
    let mixed = |low: Fixed, high: Fixed| low.plus(high.minus(low).mul_floor(share));
    let both = |slot: &u8| mixed(mean(*slot, false), mean(*slot, true));
    let single = slots.iter().copied().min_by_key(both)?;
    let divided = mixed(mean(first, false), mean(second, true));
    let doubt = |slot: u8, half: bool| doubt(known(slot, half).unwrap_or_default().visits, comparisons);
    let doubts =
        mixed(doubt(first, false).plus(doubt(single, false)), doubt(second, true).plus(doubt(single, true)));
    Some(((first, second), both(&single).minus(divided).minus(doubts)))
}

/// Slots that follow each other in time, this many at a time, with how often they do, most often first.
pub fn frequent_sequences(episodes: &[TracedEpisode], length: usize) -> Vec<(Vec<u8>, u32)> {
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for window in episodes.iter().flat_map(|episode| episode.windows(length)) {
        *counts.entry(window.iter().map(|step| step.slot).collect()).or_default() += 1;
    }
    let mut order: Vec<(Vec<u8>, u32)> = counts.into_iter().collect();
    order.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    fn step(slot: u8, loss: Fixed, bits: u64) -> TracedStep {
        let mut observation = Bits::ZERO;
        observation.set_field(0, 8, bits);
        TracedStep { bucket: 0, slot, loss, observation }
    }

    #[test]
    fn the_ends_of_bad_episodes_and_single_large_losses_are_suspect() {
        let good = vec![step(1, Fixed::ZERO, 0); 6];
        let mut bad = vec![step(1, Fixed::HALF, 0); 6];
        bad[0].loss = Fixed::ONE;
        let episodes = vec![good.clone(), good.clone(), good.clone(), bad];
        let suspects = localize(&episodes, LocalizeOptions { last_steps: 2, ..LocalizeOptions::default() });
        assert_eq!(suspects, [vec![], vec![], vec![], vec![0, 4, 5]]);
        assert_eq!(blame(&episodes, &suspects), [((0, 1), 3)]);
        let alike = vec![good; 4];
        assert!(localize(&alike, LocalizeOptions::default()).iter().all(Vec::is_empty));
    }

    #[test]
    fn the_bit_that_decides_which_expert_is_right_is_found() {
        let mut prng = Prng::stream(1, "division");
        let episode = (0..2_000).map(|_| {
            let (bits, slot) = (prng.below(256), prng.below(2) as u8 + 1);
            let right = u64::from(slot - 1) == bits >> 3 & 1;
            step(slot, if right { Fixed::ZERO } else { Fixed::ONE }, bits)
        });
        let division = best_division(&[episode.collect()], 0, 8).unwrap();
        assert_eq!(division.bit, 3);
        assert!(Fixed::from_ratio(1, 4) < division.gain && division.gain < Fixed::HALF);
    }

    #[test]
    fn noise_is_no_reason_to_divide() {
        let mut divided = 0;
        for seed in 0..50 {
            let mut prng = Prng::stream(seed, "noise");
            let episode = (0..400).map(|_| {
                let loss = if prng.bit() { Fixed::ONE } else { Fixed::ZERO };
                step(prng.below(3) as u8, loss, prng.below(256))
            });
            divided += usize::from(best_division(&[episode.collect()], 0, 8).is_some());
        }
        assert!(divided <= 2, "{divided}");
    }

    #[test]
    fn sequences_are_counted_in_time_and_ties_go_to_the_lowest() {
        let slots = [1, 2, 1, 2, 3];
        let episode: TracedEpisode = slots.iter().map(|slot| step(*slot, Fixed::ZERO, 0)).collect();
        let counted = frequent_sequences(&[episode], 2);
        assert_eq!(counted[..2], [(vec![1, 2], 2), (vec![2, 1], 1)]);
    }
}
