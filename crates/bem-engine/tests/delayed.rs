//! What comes late, learned by a whole learner: a first action whose reward comes a hundred steps later, rewards of which one is
//! a tenth more than the other, and a table of 64 bits that is shown once and asked about by number.
//!
//! All steps pay by chance where a first action decides, and what is seen is drawn anew for every step. One bit of what is seen
//! first says which action is right: no action that is always taken is right more often than half of the time, so that the
//! returns of whole episodes do not suffice. The controls are the same learner without delayed credit, and without memory
//! structures. Clauses: SCC-2, VM-16.

use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::prng::Prng;
use bem_engine::learner::Settings;
use bem_engine::solve::solve_world;

/// What a right first action brings late, and a right answer at once.
const RIGHT: i32 = 1_000;
/// One part in so many of the budget is late, and what must be right of it, in thousandths.
const LATE_ONE_IN: u64 = 10;
const RIGHT_MIN: u64 = 900;

/// The steps at which it showed whether an action had been right, and whether it had.
#[derive(Default)]
struct Shown {
    steps: u64,
    right: Vec<(u64, bool)>,
}

impl Shown {
    fn book(&mut self, is_right: bool) {
        self.right.push((self.steps, is_right));
    }

    /// Thousandths that were right in the last part of the budget.
    fn late(&self, budget: u64) -> u64 {
        let late = || self.right.iter().filter(|(step, _)| budget - budget / LATE_ONE_IN <= *step);
        assert!(0 < late().count(), "nothing showed late in {budget} steps");
        1_000 * late().filter(|(_, is_right)| *is_right).count() as u64 / late().count() as u64
    }

    /// The same in every tenth of the budget, for whoever reads why a test failed.
    fn tenths(&self, budget: u64) -> Vec<u64> {
        let tenth = |place: u64| {
            let within = || self.right.iter().filter(move |(step, _)| 10 * step / budget == place);
            1_000 * within().filter(|(_, is_right)| *is_right).count() as u64 / within().count().max(1) as u64
        };
        (0..10).map(tenth).collect()
    }
}

/// The first action decides what the last step pays.
struct Consequence {
    shape: Shape,
    /// The bit of the first observation that is the number of the right action.
    cue: usize,
    /// What a wrong first action brings late.
    wrong: i32,
    /// Every step pays this or nothing besides, with equal chance.
    chance: i32,
    prng: Prng,
    seen: Bits,
    time: u32,
    is_right: bool,
    shown: Shown,
}

impl Consequence {
    /// A hundred steps between action and reward, a hundred bits that say nothing, and rewards by chance that sum up to ten times
    /// what the first action decides.
    fn hundred() -> Consequence {
        Consequence::new(101, 101, 0, 200)
    }

    /// Fifty steps, and a tenth of what the last of them pays.
    fn tenth() -> Consequence {
        Consequence::new(51, 9, 900, 20)
    }

    fn new(horizon: u32, bits: u16, wrong: i32, chance: i32) -> Consequence {
        let shape = Shape {
            observation_bits: bits,
            actions: 2,
            fields: (0..bits).map(|low| Field { low, width: 1 }).collect(),
            horizon,
            reward_min: 0,
            reward_max: RIGHT + chance,
            return_min: 0,
            return_max: i64::from(RIGHT) + i64::from(horizon) * i64::from(chance),
        };
        Consequence {
            shape,
            cue: usize::from(bits) / 3,
            wrong,
            chance,
            prng: Prng::stream(0, "delayed"),
            seen: Bits::ZERO,
            time: 0,
            is_right: false,
            shown: Shown::default(),
        }
    }

    fn look(&mut self) {
        for bit in 0..usize::from(self.shape.observation_bits) {
            self.seen.set(bit, self.prng.bit());
        }
    }
}

impl Environment for Consequence {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.prng, self.time) = (Prng::stream(seed, "delayed"), 0);
        self.look();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        if self.time == 0 {
            self.is_right = action == u16::from(self.seen.get(self.cue));
        }
        (self.time, self.shown.steps) = (self.time + 1, self.shown.steps + 1);
        let mut reward = self.chance * i32::from(self.prng.bit());
        let done = self.time == self.shape.horizon;
        if done {
            reward += if self.is_right { RIGHT } else { self.wrong };
            self.shown.book(self.is_right);
        }
        self.look();
        Ok(Outcome { reward, done, bad: false })
    }
}

/// Bits of the table, and of a number that names one of them.
const TABLE_BITS: usize = 64;
const NUMBER_BITS: usize = 6;
/// Steps between the table and the first question, and questions.
const PAUSE: u32 = 10;
const QUESTIONS: u32 = 4;

/// A table, a pause, and then bits of the table, asked for by number; right is the action that the bit is.
struct Table {
    shape: Shape,
    prng: Prng,
    seen: Bits,
    table: u64,
    time: u32,
    shown: Shown,
}

impl Table {
    fn new() -> Table {
        let widths = [TABLE_BITS, NUMBER_BITS, 1].map(|width| width as u16);
        let low = |field: usize| widths[..field].iter().sum();
        let shape = Shape {
            observation_bits: widths.iter().sum(),
            actions: 2,
            fields: (0..3).map(|field| Field { low: low(field), width: widths[field] }).collect(),
            horizon: 1 + PAUSE + QUESTIONS,
            reward_min: 0,
            reward_max: RIGHT,
            return_min: 0,
            return_max: i64::from(RIGHT) * i64::from(QUESTIONS),
        };
        let (prng, shown) = (Prng::stream(0, "table"), Shown::default());
        Table { shape, prng, seen: Bits::ZERO, table: 0, time: 0, shown }
    }

    fn is_asking(&self) -> bool {
        PAUSE < self.time
    }
}

impl Environment for Table {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.prng, self.time) = (Prng::stream(seed, "table"), 0);
        self.table = self.prng.next_u64();
        self.seen = Bits([self.table, 0, 0, 0]);
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.seen
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let number = self.seen.field(TABLE_BITS, NUMBER_BITS);
        let is_paid = self.is_asking() && u64::from(action) == self.table >> number & 1;
        if self.is_asking() {
            self.shown.book(is_paid);
        }
        (self.time, self.shown.steps) = (self.time + 1, self.shown.steps + 1);
        self.seen = Bits::ZERO;
        if self.is_asking() {
            self.seen.set_field(TABLE_BITS, NUMBER_BITS, self.prng.below(1 << NUMBER_BITS));
            self.seen.set(TABLE_BITS + NUMBER_BITS, true);
        }
        let done = self.time == self.shape.horizon;
        Ok(Outcome { reward: RIGHT * i32::from(is_paid), done, bad: false })
    }
}

/// What a learner may be left without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    Credit,
    Memory,
}

/// Learns until the budget is spent, and says what acts in the end.
fn learn(world: &mut dyn Environment, seed: u64, budget: u64, without: Without) -> String {
    let settings = Settings { budget, ..Settings::new(seed) }.with(|config| {
        config.until_budget = true;
        config.delayed_credit = without != Without::Credit;
        config.memory_structures = without != Without::Memory;
    });
    solve_world(world, settings, &mut |_| true).expect("this world does not fail").learned.words
}

/// Checks that the first action is nearly always right late in the budget.
fn check_consequence(fresh: fn() -> Consequence, seeds: u64, budget: u64) {
    for seed in 1..=seeds {
        let mut world = fresh();
        let words = learn(&mut world, seed, budget, Without::Nothing);
        let tenths = world.shown.tenths(budget);
        assert!(RIGHT_MIN <= world.shown.late(budget), "seed {seed}: {tenths:?}, {words}");
    }
}

/// Checks that without delayed credit it is not.
fn check_control(fresh: fn() -> Consequence, budget: u64) {
    let mut world = fresh();
    let words = learn(&mut world, 1, budget, Without::Credit);
    let tenths = world.shown.tenths(budget);
    assert!(world.shown.late(budget) < RIGHT_MIN, "without credit: {tenths:?}, {words}");
}

/// Steps of a run: exploring episodes, which are wrong half of the time, are over before the last tenth.
const HUNDRED_BUDGET: u64 = 96_000;
const TENTH_BUDGET: u64 = 60_000;
const TABLE_BUDGET: u64 = 12_000;

#[test]
fn a_first_action_is_learned_by_what_it_brings_a_hundred_steps_later() {
    check_consequence(Consequence::hundred, 2, HUNDRED_BUDGET);
}

#[test]
fn without_delayed_credit_what_comes_a_hundred_steps_later_is_not_learned() {
    check_control(Consequence::hundred, HUNDRED_BUDGET);
}

#[test]
fn a_tenth_more_fifty_steps_later_is_learned() {
    check_consequence(Consequence::tenth, 3, TENTH_BUDGET);
}

#[test]
fn without_delayed_credit_a_tenth_more_fifty_steps_later_is_not_learned() {
    check_control(Consequence::tenth, TENTH_BUDGET);
}

#[test]
fn a_table_of_64_bits_that_is_shown_once_is_learned_to_be_asked_about_by_number() {
    for seed in 1..=3 {
        let mut world = Table::new();
        let words = learn(&mut world, seed, TABLE_BUDGET, Without::Nothing);
        let tenths = world.shown.tenths(TABLE_BUDGET);
        assert!(RIGHT_MIN <= world.shown.late(TABLE_BUDGET), "seed {seed}: {tenths:?}, {words}");
    }
    let mut world = Table::new();
    let words = learn(&mut world, 1, TABLE_BUDGET, Without::Memory);
    let tenths = world.shown.tenths(TABLE_BUDGET);
    assert!(world.shown.late(TABLE_BUDGET) < RIGHT_MIN, "without memory: {tenths:?}, {words}");
}
