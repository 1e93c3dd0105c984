//! `bem games play`: an episode step by step, from a keyboard or a pipe.
//!
//! The loop reads lines and writes text, and knows neither terminal nor pipe, so that tests can hold both ends.

use super::{Chosen, units};
use bem_base::environment::{Bits, Environment, Outcome, Shape};
use bem_base::prng::Prng;
use bem_games::game::Oracle;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// Plays on standard input and output.
pub fn run(chosen: &Chosen, as_json: bool) {
    let input = std::io::stdin();
    let by_hand = input.is_terminal();
    // Nobody is left to tell when the output is gone.
    let episodes = if as_json {
        dialogue(chosen, input.lock(), std::io::stderr(), by_hand)
    } else {
        dialogue(chosen, input.lock(), std::io::stdout(), by_hand)
    };
    if as_json {
        let entry = json!({
            "family": chosen.name,
            "params": chosen.params,
            "seed": chosen.seed,
            "optimum": units(chosen.game.optimum()),
            "random": units(chosen.game.random()),
            "episodes": episodes.unwrap_or_default().iter().map(|episode| json!({
                "return": episode.sum, "finished": episode.finished, "steps": episode.steps,
            })).collect::<Vec<_>>(),
        });
        say!("{entry}");
    }
}

/// One episode as played.
#[derive(Default)]
struct Episode {
    /// Sum of rewards in milli-units.
    sum: i64,
    finished: bool,
    steps: Vec<serde_json::Value>,
}

/// What the player wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Action(u16),
    Random,
    Best,
    RandomToTheEnd,
    BestToTheEnd,
    Quit,
}

impl Wish {
    fn parse(text: &str, actions: u16) -> Result<Wish, String> {
        match text {
            "r" => Ok(Wish::Random),
            "o" => Ok(Wish::Best),
            "R" => Ok(Wish::RandomToTheEnd),
            "O" => Ok(Wish::BestToTheEnd),
            "q" => Ok(Wish::Quit),
            _ => match text.parse() {
                Ok(action) if action < actions => Ok(Wish::Action(action)),
                _ => Err(format!("{text:?} is no action: type 0 to {}, r, o, R, O or q", actions - 1)),
            },
        }
    }
}

/// Plays one episode; when `by_hand`, one after the other until the player has enough. From a pipe, what was read
/// is written after the prompt, where a terminal would show it.
fn dialogue(
    chosen: &Chosen,
    mut input: impl BufRead,
    mut output: impl Write,
    by_hand: bool,
) -> std::io::Result<Vec<Episode>> {
    let game = &*chosen.game;
    writeln!(output, "{}: {}", chosen.name, chosen.about)?;
    writeln!(
        output,
        "Actions are 0 to {}; r plays at random, o asks the oracle, R and O do so to the end, q quits.\n\
        Bits are shown lowest first.",
        game.shape().actions - 1
    )?;
    let mut seeds = Prng::stream(chosen.seed, "games/play");
    let mut table = Table {
        shape: game.shape().clone(),
        world: game.start(),
        oracle: game.oracle(),
        coin: Prng::stream(chosen.seed, "games/play/random"),
        echo: !by_hand,
    };
    let mut episodes = Vec::new();
    loop {
        let episode = table.play(seeds.next_u64(), &mut input, &mut output)?;
        let finished = episode.finished;
        let length = episode.steps.len();
        writeln!(
            output,
            "{} after {length} {}: return {:.3}. Best play expects {:.3}, random play {:.3} (seed {}).",
            if finished { "over" } else { "left" },
            if length == 1 { "step" } else { "steps" },
            thousandths(episode.sum),
            units(game.optimum()),
            units(game.random()),
            chosen.seed
        )?;
        episodes.push(episode);
        if !(by_hand && finished) {
            return Ok(episodes);
        }
        write!(output, "Enter for another episode, q to quit: ")?;
        output.flush()?;
        if read_line(&mut input)?.is_none_or(|line| line == "q") {
            return Ok(episodes);
        }
    }
}

/// The game on the table.
struct Table {
    shape: Shape,
    world: Box<dyn Environment + Send>,
    oracle: Box<dyn Oracle>,
    coin: Prng,
    echo: bool,
}

impl Table {
    fn play(
        &mut self,
        seed: u64,
        input: &mut impl BufRead,
        output: &mut impl Write,
    ) -> std::io::Result<Episode> {
        let mut episode = Episode::default();
        self.world.reset(seed).map_err(std::io::Error::other)?;
        self.oracle.begin(seed);
        let mut to_the_end = None;
        loop {
            let observation = *self.world.observation();
            let wish = match to_the_end {
                Some(wish) => wish,
                None => {
                    writeln!(
                        output,
                        "\nstep {:<4} {}",
                        episode.steps.len(),
                        draw(&self.shape, &observation)
                    )?;
                    match self.ask(input, output)? {
                        Some(Wish::Quit) | None => return Ok(episode),
                        Some(wish) => wish,
                    }
                }
            };
            if matches!(wish, Wish::RandomToTheEnd | Wish::BestToTheEnd) {
                to_the_end = Some(wish);
            }
            let action = match wish {
                Wish::Action(action) => action,
                Wish::Best | Wish::BestToTheEnd => self.oracle.act(&observation),
                _ => self.coin.below(u64::from(self.shape.actions)) as u16,
            };
            let outcome = self.world.step(action).map_err(std::io::Error::other)?;
            self.oracle.see(action, &outcome);
            episode.record(&self.shape, &observation, action, outcome);
            if to_the_end.is_none() {
                let bad = if outcome.bad { "  BAD" } else { "" };
                let (reward, sum) = (thousandths(i64::from(outcome.reward)), thousandths(episode.sum));
                writeln!(output, "          played {action}, reward {reward:+.3}, return {sum:.3}{bad}")?;
            }
            if outcome.done {
                episode.finished = true;
                return Ok(episode);
            }
        }
    }

    /// Asks until the answer can be understood; nothing at the end of the input.
    fn ask(&self, input: &mut impl BufRead, output: &mut impl Write) -> std::io::Result<Option<Wish>> {
        loop {
            write!(output, "   action> ")?;
            output.flush()?;
            let Some(line) = read_line(input)? else {
                writeln!(output)?;
                return Ok(None);
            };
            if self.echo {
                writeln!(output, "{line}")?;
            }
            match Wish::parse(&line, self.shape.actions) {
                Ok(wish) => return Ok(Some(wish)),
                Err(why) => writeln!(output, "          {why}")?,
            }
        }
    }
}

impl Episode {
    fn record(&mut self, shape: &Shape, observation: &Bits, action: u16, outcome: Outcome) {
        self.sum += i64::from(outcome.reward);
        self.steps.push(json!({
            "obs": observation.to_text(usize::from(shape.observation_bits)),
            "act": action, "reward": outcome.reward, "done": outcome.done, "bad": outcome.bad,
        }));
    }
}

fn read_line(input: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let size = input.read_line(&mut line)?;
    Ok((size != 0).then(|| line.trim().to_string()))
}

/// The fields side by side, bit 0 first, those of several bits also as a number.
fn draw(shape: &Shape, observation: &Bits) -> String {
    if shape.fields.is_empty() {
        return "you see nothing".to_string();
    }
    let cells = shape.fields.iter().map(|field| {
        let (low, width) = (usize::from(field.low), usize::from(field.width));
        let bits: String =
            (low..low + width).map(|bit| if observation.get(bit) { '1' } else { '0' }).collect();
        if (2..=16).contains(&width) { format!("{bits} ({})", observation.field(low, width)) } else { bits }
    });
    format!("you see  {}", cells.collect::<Vec<_>>().join("  "))
}

fn thousandths(value: i64) -> f64 {
    value as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::games::GameChoice;
    use crate::task::GameArguments;

    fn talk(family: &str, params: &[&str], typed: &str, by_hand: bool) -> String {
        let params = params.iter().map(|param| param.to_string()).collect();
        let task = GameArguments { task: Some(family.to_string()), params, game: None };
        let chosen = GameChoice { task, seed: 4 }.build().expect("a known game");
        let mut output = Vec::new();
        dialogue(&chosen, typed.as_bytes(), &mut output, by_hand).expect("memory takes all");
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn the_oracle_reaches_the_best_return_in_a_dialogue() {
        let text = talk("copy", &["length=2"], "O\n", false);
        let last = text.lines().last().expect("a summary");
        assert!(last.starts_with("over after "), "{text}");
        let steps: f64 = last.split(' ').nth(2).expect("a count").parse().expect("a number");
        assert!(last.contains(&format!("return {:.3}.", steps / 2.0)), "{text}");
    }

    #[test]
    fn nonsense_is_named_and_asked_again() {
        let text = talk("parity", &["n=2"], "7\n\nx\n1\n", false);
        assert!(text.contains("\"7\" is no action: type 0 to 1, r, o, R, O or q"), "{text}");
        assert_eq!(text.matches("is no action").count(), 3, "{text}");
        assert!(text.contains("played 1, reward "), "{text}");
    }

    #[test]
    fn the_end_of_the_input_leaves_the_game() {
        let text = talk("parity_stream", &["n=9"], "0\n", false);
        assert!(text.contains("left after 1 step: return 0.000."), "{text}");
    }

    #[test]
    fn a_player_may_go_on_with_more_episodes() {
        let text = talk("bandit", &["arms=2"], "o\n\nr\nq\n", true);
        assert_eq!(text.matches("over after 1 step").count(), 2, "{text}");
    }

    #[test]
    fn compositions_are_played_like_families() {
        let text = talk("seq(parity{n=2},compare{bits=2})", &[], "o\no\n", false);
        assert!(text.contains("over after 2 steps: return 2.000. Best play expects 2.000"), "{text}");
    }

    #[test]
    fn fields_of_several_bits_are_also_numbers() {
        let text = talk("key_value", &["keys=4"], "q\n", false);
        assert!(text.contains("step 0    you see  "), "{text}");
        assert!(text.contains('('), "{text}");
    }
}
