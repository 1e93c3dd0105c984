//! Programs of the control core as games: what stands behind `isa{fragment=NAME}` in a composition.
//!
//! NAME is `nim`, which comes with the application, or a file of assembly in the current directory, told by its
//! dot. `setting1` to `setting8` are handed to the program. A program brings its rules and knows its best action;
//! nobody knows its values, so they are estimated by play, and say so with their standard error.
//! Clauses: GLE-3, ISA-5.

use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::compose::{NodeKind, Programs, TaskTree};
use bem_games::game::{Game, GameError, Oracle, Steps, Value};
use bem_games::import::FILE_BYTES_MAX;
use bem_isa::assemble::assemble;
use bem_isa::world::{ProgramWorld, SETTINGS_MAX};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Programs that come with the application.
const PROGRAMS: &[(&str, &str)] = &[("nim", include_str!("../../../examples/programs/nim.basm"))];
/// Episodes that a value is estimated with.
const EPISODES: u64 = 2_048;

/// Built-in programs, and files of the current directory.
pub struct ProgramFiles;

impl Programs for ProgramFiles {
    fn build(
        &self,
        fragment: &str,
        settings: &BTreeMap<String, String>,
        _instance_seed: u64,
    ) -> Result<Arc<dyn Game>, GameError> {
        let text = source(fragment).map_err(|reason| refused(fragment, &reason))?;
        build(fragment, &text, settings)
    }
}

/// Programs whose sources are at hand, by name: those that a run has kept.
pub struct Sources<'a>(pub &'a BTreeMap<String, String>);

impl Programs for Sources<'_> {
    fn build(
        &self,
        fragment: &str,
        settings: &BTreeMap<String, String>,
        _instance_seed: u64,
    ) -> Result<Arc<dyn Game>, GameError> {
        let text = self.0.get(fragment).ok_or_else(|| refused(fragment, "the run has not kept it"))?;
        build(fragment, text, settings)
    }
}

fn refused(fragment: &str, reason: &str) -> GameError {
    GameError::Impossible(format!("program {fragment:?}: {reason}"))
}

fn build(
    fragment: &str,
    text: &str,
    settings: &BTreeMap<String, String>,
) -> Result<Arc<dyn Game>, GameError> {
    let refuse = |reason: String| refused(fragment, &reason);
    let program = assemble(text).map_err(|error| refuse(error.to_string()))?;
    let settings = parse_settings(settings).map_err(refuse)?;
    let world = ProgramWorld::new(program, &settings).map_err(|error| refuse(error.to_string()))?;
    Ok(Arc::new(ProgramGame::new(world).map_err(refuse)?))
}

/// The sources of all programs in a composition.
pub fn sources(tree: &TaskTree) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    if let Some(fragment) = tree.settings().get("fragment").filter(|_| tree.kind() == NodeKind::LeafIsa) {
        found.insert(fragment.clone(), source(fragment)?);
    }
    for part in tree.parts() {
        found.extend(sources(part)?);
    }
    Ok(found)
}

fn source(fragment: &str) -> Result<String, String> {
    if let Some((_, text)) = PROGRAMS.iter().find(|(name, _)| *name == fragment) {
        return Ok((*text).to_string());
    }
    if !fragment.contains('.') {
        let known: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is none; known are {}, and files such as game.basm", known.join(", ")));
    }
    let size = std::fs::metadata(fragment).map_err(|error| error.to_string())?.len();
    if FILE_BYTES_MAX as u64 <= size {
        return Err(format!("the file has {size} bytes; at most {FILE_BYTES_MAX} are allowed"));
    }
    std::fs::read_to_string(fragment).map_err(|error| error.to_string())
}

/// `setting1` to `setting8`, whole numbers; those that are not given are zero.
fn parse_settings(texts: &BTreeMap<String, String>) -> Result<[u64; SETTINGS_MAX], String> {
    let mut settings = [0; SETTINGS_MAX];
    for (name, text) in texts {
        let place = (1..=SETTINGS_MAX).find(|place| *name == format!("setting{place}"));
        let place = place.ok_or_else(|| {
            format!("there is no parameter called {name:?}; known are setting1 to setting{SETTINGS_MAX}")
        })?;
        let value: i64 = text.parse().map_err(|_| format!("{name} = {text:?} is no whole number"))?;
        settings[place - 1] = value as u64;
    }
    Ok(settings)
}

/// A program world with the values of best and of random play.
struct ProgramGame {
    world: ProgramWorld,
    optimum: Value,
    random: Value,
}

impl ProgramGame {
    fn new(world: ProgramWorld) -> Result<ProgramGame, String> {
        let best = |world: &ProgramWorld| {
            world
                .best_action()?
                .ok_or_else(|| EnvironmentError::External("it names no best action".to_string()))
        };
        let optimum = estimate(&world, best).map_err(|error| error.to_string())?;
        let mut prng = Prng::stream(0, "isa/random");
        let random = |world: &ProgramWorld| Ok(prng.below(u64::from(world.shape().actions)) as u16);
        let random = estimate(&world, random).map_err(|error| error.to_string())?;
        Ok(ProgramGame { world, optimum, random })
    }
}

/// The mean return of a policy over fixed seeds, with its standard error.
fn estimate(
    world: &ProgramWorld,
    mut policy: impl FnMut(&ProgramWorld) -> Result<u16, EnvironmentError>,
) -> Result<Value, EnvironmentError> {
    let mut world = world.clone();
    let (mut sum, mut squares) = (0i128, 0i128);
    for seed in 0..EPISODES {
        world.reset(seed)?;
        let mut total = 0i128;
        loop {
            let action = policy(&world)?;
            let outcome = world.step(action)?;
            total += i128::from(outcome.reward);
            if outcome.done {
                break;
            }
        }
        sum += total;
        squares += total * total;
    }
    let count = i128::from(EPISODES);
    // count^2 times the variance; the variance of the mean is that divided by count^3.
    let spread = (squares * count - sum * sum).max(0);
    let error = (spread as u128).saturating_mul(1 << 32).isqrt();
    let error = (error << 16) / (EPISODES as u128 * EPISODES.isqrt() as u128);
    let mean = Fixed::from_raw(((sum << 32).div_euclid(count)) as i64);
    // Play never makes a value certain: at least the last digit stays open.
    Ok(Value { mean, standard_error: Fixed::from_raw((error as i64).max(1)) })
}

impl Game for ProgramGame {
    fn shape(&self) -> &Shape {
        self.world.shape()
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(self.world.clone())
    }

    fn optimum(&self) -> Value {
        self.optimum
    }

    fn random(&self) -> Value {
        self.random
    }

    fn steps(&self) -> Steps {
        Steps::ByPolicy
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        Box::new(ProgramOracle { world: self.world.clone() })
    }
}

/// Follows the episode in a world of its own and asks the program for its best action.
struct ProgramOracle {
    world: ProgramWorld,
}

impl Oracle for ProgramOracle {
    fn begin(&mut self, seed: u64) {
        // A world that fails here fails its player in the same way, which is where it is reported.
        let _ = self.world.reset(seed);
    }

    fn act(&mut self, _observation: &Bits) -> u16 {
        self.world.best_action().ok().flatten().unwrap_or(0)
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        let _ = self.world.step(action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_games::conformance;

    #[test]
    fn a_program_is_a_leaf_of_compositions_and_passes_the_kit() {
        for text in
            ["isa{fragment=nim}", "isa{fragment=nim,setting1=9}", "seq(isa{fragment=nim},parity{n=3})"]
        {
            let game = TaskTree::parse(text).unwrap().build(1, &ProgramFiles).unwrap();
            assert_eq!(conformance::check(&*game), Ok(()), "{text}");
        }
        let game = TaskTree::parse("isa{fragment=nim}").unwrap().build(1, &ProgramFiles).unwrap();
        assert_eq!(game.optimum().mean, Fixed::from_int(1_000));
        assert!(Fixed::ZERO < game.random().mean && game.random().mean < Fixed::from_int(500));
    }

    #[test]
    fn what_is_wrong_with_a_program_is_said() {
        let error =
            |text: &str| TaskTree::parse(text).unwrap().build(1, &ProgramFiles).err().unwrap().to_string();
        assert!(error("isa{fragment=chess}").contains("known are nim"), "{}", error("isa{fragment=chess}"));
        assert!(error("isa{fragment=nim,stones=3}").contains("known are setting1 to setting8"));
        assert!(error("isa{fragment=nim,setting1=x}").contains("is no whole number"));
        assert!(error("isa{fragment=nim,setting1=99}").contains("actions = 0"));
        assert!(error("isa{fragment=no_such.basm}").contains("No such file"));
    }
}
