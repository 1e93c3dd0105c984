//! The door of a server on loopback, over one connection that is kept: every answer waits for its sync, and learning runs beside.

use crate::cli::bench::serve::{Connection, in_scratch, serve_while};
use anyhow::{Context as _, Result, bail};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_machine::config::GenesisConfig;
use bem_runtime::service::ServiceConfig;
use bem_tables::generated::Played;
use bem_tables::generated::served::{Door, EXPIRE_AFTER, PlayAt, WORLD};
use serde_json::{Value, json};
use std::sync::Arc;

/// A connection to the server, and what has to be said of the world.
struct OverHttp {
    connection: Connection,
    bits: usize,
    decide: String,
    reward: String,
    /// The names of the decisions that were asked for; a number is the place of its name.
    names: Vec<String>,
}

/// Serves a world of this shape in a folder that is gone afterwards, while something plays it.
pub fn open(shape: &Shape, seed: u64, config: &Arc<GenesisConfig>, play: PlayAt<'_>) -> Result<Played> {
    let config = ServiceConfig { seed, parameters: Arc::clone(config) };
    in_scratch("served", |folder| {
        serve_while(folder, config, |address| {
            let mut connection = Connection::open(address)?;
            let fields: Vec<_> = shape.fields.iter().map(|field| [field.low, field.width]).collect();
            let world = json!({
                "name": WORLD, "obs_bits": shape.observation_bits, "actions": shape.actions, "horizon": shape.horizon,
                "reward_range": [shape.reward_min, shape.reward_max], "return_range": [shape.return_min, shape.return_max],
                "fields": fields, "expire_after": EXPIRE_AFTER,
            });
            match connection.ask("POST", "/v1/worlds", &world.to_string())? {
                (201, _) => {}
                (status, answer) => bail!("no world: {status} {answer}"),
            }
            let path = |word: &str| format!("/v1/worlds/{WORLD}/{word}");
            let (decide, reward) = (path("decide"), path("reward"));
            let bits = usize::from(shape.observation_bits);
            play(&mut OverHttp { connection, bits, decide, reward, names: Vec::new() })
        })
    })
}

impl Door for OverHttp {
    fn decide(&mut self, seen: &Bits, episode: &str) -> Result<(u64, u16)> {
        let mut body = json!({ "obs": seen.to_text(self.bits) });
        if !episode.is_empty() {
            body["episode"] = json!(episode);
        }
        let (status, answer) = self.connection.ask("POST", &self.decide, &body.to_string())?;
        let said: Value = serde_json::from_str(&answer).unwrap_or_default();
        let (Some(name), Some(action)) = (said["decision"].as_str(), said["action"].as_u64()) else {
            bail!("no decision: {status} {answer}");
        };
        self.names.push(name.to_string());
        Ok((self.names.len() as u64 - 1, u16::try_from(action)?))
    }

    fn reward(&mut self, decision: u64, outcome: Outcome) -> Result<()> {
        let name = self.names.get(decision as usize).context("a decision that was asked for")?;
        let body =
            json!({ "decision": name, "reward": outcome.reward, "done": outcome.done, "bad": outcome.bad });
        // What comes too late is not known any more.
        match self.connection.ask("POST", &self.reward, &body.to_string())? {
            (200 | 404, _) => Ok(()),
            (status, answer) => bail!("no reward: {status} {answer}"),
        }
    }
}
