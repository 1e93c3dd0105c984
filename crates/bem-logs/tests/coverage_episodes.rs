//! The intervals of estimates from logged episodes whose truth is known: how often they cover it, and how wide they are.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]
#![allow(clippy::print_stdout, reason = "the battery of estimates keeps the table that is printed")]

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_logs::Interval;
use bem_logs::estimate::{Steps, estimate_episodes};

const STATES: usize = 4;
const STEPS: usize = 3;
const EPISODES: usize = 1_000;
const LOGS: u64 = 1_000;
/// What is one in sums of chances.
const UNIT: u64 = 1_000;

/// A world of four states on a ring and two actions, a logging policy and a target policy.
struct Truth {
    /// In thousandths, by state and action.
    reward: [[u64; 2]; STATES],
    /// The chance of the next state on the ring; the one before otherwise.
    forward: [[u64; 2]; STATES],
    /// The chance of the second action.
    logging: [u64; STATES],
    target: [usize; STATES],
}

impl Truth {
    fn new(prng: &mut Prng) -> Truth {
        let both = |prng: &mut Prng| [20 + prng.below(900), 20 + prng.below(900)];
        Truth {
            reward: core::array::from_fn(|_| both(prng)),
            forward: core::array::from_fn(|_| both(prng)),
            // The rarer action has three chances in ten at least.
            logging: core::array::from_fn(|_| 300 + prng.below(401)),
            target: core::array::from_fn(|_| prng.below(2) as usize),
        }
    }

    /// What the target policy earns in an episode, backward from its last step; sums are exact, in parts of UNIT^3.
    fn value(&self) -> Fixed {
        let mut later = [0u64; STATES];
        for _ in 0..STEPS {
            later = core::array::from_fn(|state| {
                let action = self.target[state];
                let forward = self.forward[state][action];
                let (next, before) = (later[(state + 1) % STATES], later[(state + STATES - 1) % STATES]);
                let after = (forward * next + (UNIT - forward) * before) / UNIT;
                self.reward[state][action] * UNIT * UNIT + after
            });
        }
        let total: u64 = later.iter().sum();
        Fixed::from_ratio(total as i64, (STATES as u64 * UNIT * UNIT * UNIT) as i64)
    }

    /// One episode under the logging policy, with what the target policy would have done.
    fn episode(&self, prng: &mut Prng) -> Steps {
        let mut state = prng.below(STATES as u64) as usize;
        let mut step = || {
            let second = prng.below(UNIT) < self.logging[state];
            let (action, chance) =
                if second { (1, self.logging[state]) } else { (0, UNIT - self.logging[state]) };
            let pays = prng.below(UNIT) < self.reward[state][action];
            let matches = self.target[state] == action;
            let forward = prng.below(UNIT) < self.forward[state][action];
            state = (state + if forward { 1 } else { STATES - 1 }) % STATES;
            let reward = if pays { Fixed::ONE } else { Fixed::ZERO };
            (matches, reward, Fixed::from_ratio(chance as i64, UNIT as i64))
        };
        (0..STEPS).map(|_| step()).collect()
    }

    fn log(&self, prng: &mut Prng) -> Vec<Steps> {
        (0..EPISODES).map(|_| self.episode(prng)).collect()
    }
}

fn holds(interval: &Interval, value: Fixed) -> bool {
    interval.low <= value && value <= interval.high
}

#[test]
fn intervals_of_episodes_cover_the_truth_and_are_not_much_wider_than_the_normal_ones() {
    let mut prng = Prng::stream(19, "coverage/episodes");
    let mut covered = [0u64; 2];
    let mut ratios: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
    let (mut judged, mut withheld) = (0, 0);
    while judged < LOGS {
        let truth = Truth::new(&mut prng);
        let estimate = estimate_episodes(&truth.log(&mut prng));
        // No interval is told of a log that says too little of the policy, so that none is judged.
        if !estimate.is_supported() {
            withheld += 1;
            continue;
        }
        judged += 1;
        let value = truth.value();
        for (place, interval) in [estimate.ips, estimate.snips].iter().enumerate() {
            covered[place] += u64::from(holds(interval, value));
            let width = interval.high.minus(interval.low).to_raw() / 1_000;
            ratios[place].push(interval.normal_width.to_raw() / 1_000 * 1_000 / width.max(1));
        }
    }
    assert!(withheld * 20 < LOGS, "{withheld} intervals are withheld");
    println!(
        "| estimate of episodes | intervals that hold the truth, of {LOGS} | median width, normal one = 1 | withheld beside them |\n\
         |---|---|---|---|"
    );
    for (place, name) in ["per-decision weights", "self-normalised"].into_iter().enumerate() {
        ratios[place].sort_unstable();
        let median = ratios[place][ratios[place].len() / 2];
        let wide = 100_000 / median;
        println!("| {name} | {} | {}.{:02} | {withheld} |", covered[place], wide / 100, wide % 100);
        assert!(930 <= covered[place], "{name} covers the truth in {} of {LOGS} logs", covered[place]);
        assert!(667 <= median, "{name}: the normal width is {median} thousandths of ours");
    }
}

/// A control that must fail: with chances that are wrong, the same intervals miss the truth.
#[test]
fn wrong_chances_are_not_covered() {
    let mut prng = Prng::stream(20, "coverage/episodes");
    let mut covered = 0;
    for _ in 0..100 {
        let truth = Truth::new(&mut prng);
        let mut log = truth.log(&mut prng);
        log.iter_mut().flatten().for_each(|(_, _, chance)| *chance = Fixed::from_ratio(1, 4));
        covered += u32::from(holds(&estimate_episodes(&log).ips, truth.value()));
    }
    assert!(covered < 20, "{covered} of 100 covered");
}
