//! What is earned while learning in worlds drawn from a seed, beside three kinds of peers.
//!
//! The seeds come from a digest that names the sources under test and from a published salt, so that nobody can have tuned
//! for them. Only aggregates are handed out; there is no way to ask for one world. Clauses: VM-16, SCC-8; decision D-64.

mod changing;
mod peers;
pub mod served;

use self::changing::Changing;
pub use self::changing::NAME as CHANGING;
use self::served::OpenDoor;
use crate::Edges;
use crate::beside::Beside;
use crate::figures::to_float;
use crate::losses::Lost;
use anyhow::{Context as _, Result};
use bem_base::digest::hash_parts;
use bem_base::environment::Environment;
use bem_engine::evaluate::Yardstick;
use bem_engine::learner::Settings;
use bem_engine::parameters::check_world;
use bem_engine::solve::{Lesson, teach_world};
use bem_games::game::Game;
use bem_games::generated::WorldKind;
use bem_machine::config::{ChoiceRule, GenesisConfig};
use serde_json::{Value, json};
use std::sync::Arc;

/// Two-sided 95 % quantiles of Student's t by degrees of freedom; the normal one beyond.
const QUANTILES: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086,
];

/// The name of the learner, and how it is called without one of its parts.
const LEARNER: &str = "bem";

fn without(name: &str) -> String {
    format!("{LEARNER} without {name}")
}

/// The learner behind a service.
const SERVED: &str = "bem served";

/// What may be switched off to see what it is worth.
struct Switched {
    name: &'static str,
    switch: fn(&mut GenesisConfig),
}

impl Switched {
    /// The learner without it.
    fn off(&self, config: &Arc<GenesisConfig>) -> (String, Arc<GenesisConfig>) {
        let mut changed = GenesisConfig::clone(config);
        (self.switch)(&mut changed);
        (without(self.name), Arc::new(changed))
    }
}

/// What only a world that changes can show the worth of.
const ALARMS: &str = "alarms";

/// Everything that can be switched off, one after the other.
const SWITCHES: [Switched; 9] = [
    Switched { name: "delayed credit", switch: |config| config.delayed_credit = false },
    Switched { name: "memory structures", switch: |config| config.memory_structures = false },
    Switched { name: "the quota of exploration", switch: |config| config.exploration_episodes = 0 },
    Switched { name: "the root of exploration", switch: |config| config.exploration_root = false },
    Switched { name: "plans of the explorer", switch: |config| config.exploration_plans = false },
    Switched { name: "hope by the counts", switch: |config| config.exploration_hope = false },
    // Without it an index is the mean and the bonus on top: what is known least is chosen last.
    Switched { name: "optimism of the index", switch: |config| config.choice_rule = ChoiceRule::AsPrinted },
    Switched { name: ALARMS, switch: |config| config.alarms = false },
    Switched { name: "synthesis", switch: |config| config.synthesis = false },
];

/// The part of the best peer's median online score that the learner's is at least, on every kind.
pub const SHARE_MIN: f64 = 0.97;
/// The mean over kinds of the learner's median online score at least.
pub const MEAN_MIN: f64 = 0.85;
/// The part of the learner's online score that the service's is at least, over all worlds.
pub const SERVED_SHARE_MIN: f64 = 0.95;
/// The online score that is asked to stay where steps are counted until it does.
const STEADY_MIN: f64 = 0.95;
/// A peer whose median is below this has learned nothing: there is nothing to fall behind.
const NOTHING: f64 = 0.01;

/// What one player did in one world.
#[derive(Clone, Copy)]
pub struct Played {
    score: f64,
    last_half: Option<f64>,
    /// The step from which on the score over everything so far stays high; none where it never does.
    steady: Option<u64>,
    seconds: f64,
}

impl Played {
    /// What was earned in a game in so many seconds, by what was lost against best play on the same seeds.
    fn of(beside: &Beside, seconds: f64) -> Result<Played> {
        let (losses, Yardstick { optimum, random }) = (beside.losses()?, Yardstick::of(beside));
        let worth = (to_float(optimum) - to_float(random)).max(f64::MIN_POSITIVE);
        let now = losses.now();
        let score = |before: &Lost| now.score_since(before, worth);
        let (whole, last_half) = (score(&Lost::default()), score(&losses.at(now.steps / 2)));
        let steady = losses.steady_from(STEADY_MIN, worth);
        Ok(Played { score: whole.unwrap_or(0.0), last_half, steady, seconds })
    }
}

/// One player over all worlds of a kind.
pub struct Column {
    name: String,
    played: Vec<Played>,
}

/// A kind of worlds with its columns, one for every player.
pub type KindColumns = (WorldKind, Vec<Column>);

/// The share of what the learner alone earns that the service earns, over all worlds of these kinds.
pub fn served_share(kinds: &[KindColumns]) -> f64 {
    let sum = |is_served: bool| -> f64 {
        let columns = kinds.iter().flat_map(|(_, columns)| columns);
        let wanted = columns.filter(|column| (column.name == SERVED) == is_served);
        wanted.flat_map(Column::scores).sum()
    };
    sum(true) / sum(false).max(f64::MIN_POSITIVE)
}

/// The seed of one world.
fn seed_of(sources: &str, salt: &str, kind: &str, index: u64) -> u64 {
    let parts = [sources.as_bytes(), salt.as_bytes(), kind.as_bytes(), &index.to_le_bytes()];
    let digest = hash_parts("bem/generated/world", &parts);
    let first: [u8; 8] = core::array::from_fn(|place| digest.as_bytes()[place]);
    u64::from_le_bytes(first) >> 2
}

/// The worlds that are drawn, and who plays them.
pub struct Drawing<'a> {
    /// What names the sources under test.
    pub sources: &'a str,
    /// Published beside the result; another salt draws other worlds.
    pub salt: &'a str,
    /// Worlds of every kind.
    pub worlds: u64,
    /// Steps of every player in every world.
    pub steps: u64,
    /// Whether parts of the learner are switched off in turn.
    pub ablate: bool,
    /// The door at which the learner is also asked as a service; the peers are left out then.
    pub served: Option<OpenDoor>,
    /// The frozen parameters.
    pub config: &'a Arc<GenesisConfig>,
}

impl Drawing<'_> {
    /// Everybody plays all worlds of a kind.
    pub fn run(&self, kind: WorldKind, edges: &Edges) -> Result<Vec<Column>> {
        let mut learners: Vec<(String, Arc<GenesisConfig>)> =
            vec![(LEARNER.to_string(), Arc::clone(self.config))];
        if self.ablate {
            learners.extend(SWITCHES.iter().map(|switched| switched.off(self.config)));
        }
        // Beside the service stands the learner that it is compared with, and nobody else.
        let peers: &[&str] = if self.served.is_some() { &[] } else { &peers::NAMES };
        let served = self.served.map(|_| SERVED.to_string());
        let others = served.into_iter().chain(peers.iter().map(|name| (*name).to_string()));
        let names = learners.iter().map(|(name, _)| name.clone()).chain(others);
        let mut columns: Vec<Column> = names.map(|name| Column { name, played: Vec::new() }).collect();
        for index in 0..self.worlds {
            if (edges.is_asked)() {
                break;
            }
            let seed = seed_of(self.sources, self.salt, kind.name(), index);
            let game = kind.draw(seed);
            for (column, (_, config)) in columns.iter_mut().zip(&learners) {
                column.played.push(learn(&game, seed, self.steps, config, edges)?);
            }
            if let Some(open) = self.served {
                let played = served::serve(&game, seed, self.steps, self.config, open, edges)?;
                columns[learners.len()].played.push(played);
            }
            for (column, name) in columns[learners.len()..].iter_mut().zip(peers) {
                let started = (edges.cpu_seconds)();
                let mut peer = peers::fresh(name, game.shape(), seed);
                let beside = Beside::new(Arc::clone(&game));
                peers::play(beside.start().as_mut(), peer.as_mut(), seed, self.steps)?;
                column.played.push(Played::of(&beside, (edges.cpu_seconds)() - started)?);
            }
        }
        Ok(columns)
    }

    /// As many worlds that change, which are none of the kinds: the learner, the learner without alarms, and the peers.
    pub fn changing(&self, edges: &Edges) -> Result<Vec<Column>> {
        let alarms = SWITCHES.iter().filter(|switched| switched.name == ALARMS);
        let mut learners = vec![(LEARNER.to_string(), Arc::clone(self.config))];
        learners.extend(alarms.map(|switched| switched.off(self.config)));
        let names = learners.iter().map(|(name, _)| name.as_str()).chain(peers::NAMES);
        let mut columns: Vec<Column> =
            names.map(|name| Column { name: name.to_string(), played: Vec::new() }).collect();
        for index in 0..self.worlds {
            if (edges.is_asked)() {
                break;
            }
            let seed = seed_of(self.sources, self.salt, changing::NAME, index);
            let fresh = || ((edges.cpu_seconds)(), Changing::draw(seed, self.steps));
            for (column, (_, config)) in columns.iter_mut().zip(&learners) {
                let (started, mut world) = fresh();
                learn_world(&mut world, seed, self.steps, config, edges)?;
                column.played.push(world.played((edges.cpu_seconds)() - started));
            }
            for (column, name) in columns[learners.len()..].iter_mut().zip(peers::NAMES) {
                let (started, mut world) = fresh();
                let mut peer = peers::fresh(name, world.shape(), seed);
                peers::play(&mut world, peer.as_mut(), seed, self.steps)?;
                column.played.push(world.played((edges.cpu_seconds)() - started));
            }
        }
        Ok(columns)
    }
}

fn learn(
    game: &Arc<dyn Game>,
    seed: u64,
    budget: u64,
    config: &Arc<GenesisConfig>,
    edges: &Edges,
) -> Result<Played> {
    let started = (edges.cpu_seconds)();
    let beside = Beside::new(Arc::clone(game));
    learn_world(beside.start().as_mut(), seed, budget, config, edges)?;
    Played::of(&beside, (edges.cpu_seconds)() - started)
}

fn learn_world(
    world: &mut dyn Environment,
    seed: u64,
    budget: u64,
    config: &Arc<GenesisConfig>,
    edges: &Edges,
) -> Result<()> {
    check_world(config, world.shape()).context("a drawn world does not fit the configuration")?;
    let settings = Settings { seed, budget, config: Arc::clone(config) };
    let settings = settings.with(|config| config.until_budget = true);
    let lesson = Lesson { keeps_play: false, ..Lesson::alone(settings) };
    teach_world(world, lesson, &mut |_| !(edges.is_asked)())?;
    Ok(())
}

/// The middle; with an even count, the mean of the two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[half]),
        _ => Some((values[half - 1] + values[half]) / 2.0),
    }
}

/// The mean and half the width of its 95 % interval, which needs two values.
fn mean_and_half(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = values.len().saturating_sub(1);
    let half = (1 <= freedom).then(|| {
        let quantile = QUANTILES.get(freedom - 1).copied().unwrap_or(1.96);
        quantile * (squares / freedom as f64 / count).sqrt()
    });
    (mean, half)
}

impl Column {
    fn scores(&self) -> Vec<f64> {
        self.played.iter().map(|played| played.score).collect()
    }

    fn median(&self) -> f64 {
        median(self.scores().into_iter()).unwrap_or(0.0)
    }

    fn last_half(&self) -> Option<f64> {
        median(self.played.iter().filter_map(|played| played.last_half))
    }

    /// Steps until the online score stays high, in the middle of all worlds, and those in which it never does: they count as more
    /// steps than any other.
    fn steady(&self) -> (Option<u64>, usize) {
        let never = self.played.iter().filter(|played| played.steady.is_none()).count();
        let mut steps: Vec<u64> = self.played.iter().filter_map(|played| played.steady).collect();
        steps.sort_unstable();
        (steps.get(self.played.len() / 2).copied(), never)
    }

    fn seconds(&self) -> f64 {
        self.played.iter().map(|played| played.seconds).sum::<f64>() / self.played.len().max(1) as f64
    }

    /// Its cells, in the order of the columns of the table.
    pub fn to_line(&self) -> String {
        let (mean, half) = mean_and_half(&self.scores());
        let half = half.map_or(String::new(), |half| format!(" ± {half:.3}"));
        let last = self.last_half().map_or("-".to_string(), |last| format!("{last:.3}"));
        let (steady, never) = self.steady();
        let steady = steady.map_or("never".to_string(), |steps| steps.to_string());
        let (median, seconds) = (self.median(), self.seconds());
        format!("{} | {median:.3} | {mean:.3}{half} | {last} | {steady} ({never}) | {seconds:.2}", self.name)
    }

    fn to_json(&self) -> Value {
        let (mean, half) = mean_and_half(&self.scores());
        let (steady, never) = self.steady();
        json!({ "player": self.name, "median": self.median(), "mean": mean, "half_width95": half,
            "median_last_half": self.last_half(), "median_steps_to_95": steady, "never_95": never,
            "cpu_seconds": self.seconds() })
    }
}

/// A kind and everybody who played it.
pub fn to_json((kind, columns): &KindColumns) -> Value {
    named_json(kind.name(), kind.about(), columns)
}

/// The worlds that change and everybody who played them.
pub fn changing_json(columns: &[Column]) -> Value {
    named_json(changing::NAME, changing::ABOUT, columns)
}

fn named_json(name: &str, about: &str, columns: &[Column]) -> Value {
    let players: Vec<Value> = columns.iter().map(Column::to_json).collect();
    json!({ "kind": name, "about": about, "players": players })
}

/// The learner's median on one kind beside the best peer's.
pub struct Compared {
    kind: &'static str,
    ours: f64,
    best: f64,
}

impl Compared {
    /// On this kind.
    pub fn of((kind, columns): &KindColumns) -> Compared {
        let is_peer = |column: &&Column| peers::NAMES.contains(&column.name.as_str());
        let best = columns.iter().filter(is_peer).map(Column::median).fold(f64::MIN, f64::max);
        Compared { kind: kind.name(), ours: columns[0].median(), best }
    }

    fn share(&self) -> f64 {
        if self.best < NOTHING { 1.0 } else { self.ours / self.best }
    }
}

/// The mean over kinds of the learner's median, and its least share of the best peer's.
pub fn summary(compared: &[Compared]) -> (f64, f64) {
    let sum: f64 = compared.iter().map(|kind| kind.ours).sum();
    let least = compared.iter().map(Compared::share).fold(f64::MAX, f64::min);
    (sum / compared.len().max(1) as f64, if compared.is_empty() { 0.0 } else { least })
}

/// Everything that is asked for and was not reached, in words.
pub fn missed(compared: &[Compared]) -> Vec<String> {
    let behind = compared.iter().filter(|kind| kind.share() < SHARE_MIN).map(|kind| {
        let Compared { kind: name, ours, best } = kind;
        let share = kind.share();
        format!("{name}: {ours:.3} is {share:.3} of the best peer's {best:.3}, {SHARE_MIN} is asked")
    });
    let mean = summary(compared).0;
    let low = (mean < MEAN_MIN).then(|| format!("the mean over kinds is {mean:.3}, {MEAN_MIN} is asked"));
    behind.chain(low).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::Losses;

    #[test]
    fn seeds_follow_sources_and_salt() {
        let seed = |sources, salt, index| seed_of(sources, salt, WorldKind::Chain.name(), index);
        assert_eq!(seed("a", "1", 0), seed("a", "1", 0));
        let others = [seed("b", "1", 0), seed("a", "2", 0), seed("a", "1", 1)];
        assert!(others.iter().all(|other| *other != seed("a", "1", 0)));
        assert_ne!(seed("a", "1", 0), seed_of("a", "1", WorldKind::Noise.name(), 0));
    }

    #[test]
    fn every_peer_learns_what_it_can() {
        // On a short chain the counted model finds the end, and repeated first actions do not.
        let game = (0..)
            .map(|seed| WorldKind::Chain.draw(seed))
            .find(|game| game.shape().horizon == 6)
            .expect("a short chain is drawn sooner or later");
        let score = |beside: &Beside| Played::of(beside, 0.0).expect("best play is played").score;
        let score_of = |name: &str| {
            let mut peer = peers::fresh(name, game.shape(), 1);
            let beside = Beside::new(Arc::clone(&game));
            peers::play(beside.start().as_mut(), peer.as_mut(), 1, 20_000).expect("it is played");
            score(&beside)
        };
        assert!(0.8 < score_of("psrl"), "{}", score_of("psrl"));
        assert!(0.5 < score_of("q"), "{}", score_of("q"));
        assert!(score_of("ucb_first") < 0.5, "{}", score_of("ucb_first"));
        // Where a first action decides what is paid later, bounds on first actions find it.
        let game = (0..).map(|seed| WorldKind::Difference.draw(seed)).find(|game| game.shape().horizon == 50);
        let game = game.expect("a long one is drawn sooner or later");
        let mut peer = peers::fresh("ucb_first", game.shape(), 1);
        let beside = Beside::new(Arc::clone(&game));
        peers::play(beside.start().as_mut(), peer.as_mut(), 1, 50_000).expect("it is played");
        assert!(0.7 < score(&beside), "{}", score(&beside));
    }

    #[test]
    fn what_falls_behind_a_peer_or_below_the_mean_is_named() {
        let kinds = |scores: &[(f64, f64)]| -> Vec<Compared> {
            let names = ["chain", "noise", "table"].into_iter();
            names
                .zip(scores)
                .map(|(kind, (ours, best))| Compared { kind, ours: *ours, best: *best })
                .collect()
        };
        // As good as is asked for, and where no peer learns anything there is nobody to fall behind.
        assert_eq!(missed(&kinds(&[(0.97, 1.0), (0.9, 0.9), (0.7, 0.004)])), Vec::<String>::new());
        let behind = missed(&kinds(&[(0.96, 1.0), (0.9, 0.9), (0.9, 0.0)]));
        assert!(behind.len() == 1 && behind[0].starts_with("chain: 0.960 is 0.960 of"), "{behind:?}");
        let low = missed(&kinds(&[(0.5, 0.5), (0.9, 0.9), (0.9, 0.0)]));
        assert!(low.len() == 1 && low[0].starts_with("the mean over kinds is 0.767"), "{low:?}");
        assert_eq!(summary(&[]), (0.0, 0.0));
    }

    #[test]
    fn steps_until_the_score_stays_high_are_the_median_of_all_worlds_and_never_is_more_than_any() {
        let column = |steps: &[Option<u64>]| {
            let played =
                |steady: &Option<u64>| Played { score: 1.0, last_half: None, steady: *steady, seconds: 0.0 };
            Column { name: LEARNER.to_string(), played: steps.iter().map(played).collect() }
        };
        assert_eq!(column(&[Some(30), None, Some(10)]).steady(), (Some(30), 1));
        assert_eq!(column(&[None, Some(10), None]).steady(), (None, 2));
        assert!(column(&[Some(7)]).to_line().contains("| 7 (0) | 0.00"));
        // The first two episodes lose everything, and no other loses anything: that is a twentieth of forty.
        let mut losses = Losses::default();
        (0..400).for_each(|episode| losses.book(1, if episode < 2 { 1_000 } else { 0 }, 0));
        assert_eq!(losses.steady_from(STEADY_MIN, 1_000.0), Some(40));
        assert_eq!(losses.steady_from(0.999, 1_000.0), None);
    }

    #[test]
    fn medians_and_intervals_are_those_of_the_sample() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        let (mean, half) = mean_and_half(&[1.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (half.unwrap() - 12.706).abs() < 1e-9);
        assert_eq!(mean_and_half(&[1.0]).1, None);
    }
}
