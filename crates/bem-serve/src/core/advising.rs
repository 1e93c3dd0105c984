//! A language model is asked for candidates: what a world shows and what decisions brought, now and then.
//!
//! A question is a request to a tool like any other, an input that is durable before anybody sees it; its task says which world
//! it is about. What is read of the answer is another input ([`Input::Propose`]), so that a replay needs no model. A world is
//! asked about when twice as much was rewarded in it as at the last time, so that models cost little however long it is served.
//! Must not know what is done with proposals. Clauses: TOOL-8, TOOL-10; decisions D-130, D-131.

use super::Decider;
use crate::proposals;
use anyhow::{Result, bail};
use bem_base::ids::ObjectId;
use bem_runtime::input::{Input, WorldIndex};
use bem_runtime::offers::Proposed;
use bem_runtime::service::Service;
use bem_tools::cbor::Item;
use bem_tools::operation::{Role, by_code};
use bem_workers::catalog_file::CatalogFile;
use bem_workers::resolve::Named;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Rewards of a world before the first question about it.
const FIRST_REWARDS: u64 = 64;
/// Reasons for refusals that are told at most.
const REASONS_MAX: usize = 8;

/// Whoever is asked for candidates.
#[derive(Clone, Debug)]
pub struct Advisor {
    kind: ObjectId,
    model: ObjectId,
    /// Its logical name, which stands with what it proposes.
    name: String,
    /// By world: rewards from which on it is asked again.
    due: BTreeMap<u16, u64>,
}

impl Advisor {
    /// The model of this name in a catalog.
    pub fn of(catalog: &CatalogFile, name: &str) -> Result<Advisor> {
        let found = catalog.models.iter().find(|(_, model)| model.name == name);
        let (Some((model, _)), Some(kind)) = (found, catalog.catalog.find(Role::Model.name())) else {
            let known: Vec<&str> = catalog.models.values().map(|model| model.name.as_str()).collect();
            let known = if known.is_empty() { "none: add a [[model]]".to_string() } else { known.join(", ") };
            bail!("--model {name}: the catalog has no such model; it has {known}");
        };
        Ok(Advisor { kind, model: *model, name: name.to_string(), due: BTreeMap::new() })
    }

    /// What a question says; pairs of role and text.
    pub fn question(&self, messages: &[(&str, String)]) -> Named {
        let message = |(role, text): &(&str, String)| {
            Item::List(vec![Item::Text((*role).to_string()), Item::Text(text.clone())])
        };
        let payload = Item::fields([(0, Item::List(messages.iter().map(message).collect()))]).to_bytes();
        let operation = by_code(Role::Model, 0);
        Named { kind: self.kind, code: 0, flags: 0, resource: self.model, payload, operation }
    }

    /// Whose proposal it is, as it stands in the history.
    pub fn source(&self) -> String {
        format!("proposed by model {}", self.name)
    }

    /// A world that is due, if one is.
    fn next(&mut self, service: &Service) -> Option<WorldIndex> {
        let is_asked =
            |world: WorldIndex| service.tools().in_flight().values().any(|ask| ask.task == task_of(world));
        let rewarded =
            |(world, served): (WorldIndex, &bem_runtime::world::World)| (world, served.statistics().rewards);
        let worlds: Vec<(WorldIndex, u64)> = service.worlds().map(rewarded).collect();
        for (world, rewards) in worlds {
            // After a restart a world that is known waits as if it had just been asked about.
            let first = if rewards < FIRST_REWARDS { FIRST_REWARDS } else { 2 * rewards };
            let due = *self.due.entry(world.0).or_insert(first);
            if due <= rewards && !is_asked(world) {
                self.due.insert(world.0, 2 * rewards);
                return Some(world);
            }
        }
        None
    }
}

/// The text of a chat's answer.
pub fn said(response: &[u8]) -> Option<String> {
    let item = Item::from_bytes(response).ok()?;
    item.field(0)?.text().map(str::to_string)
}

/// How a request says which world it is about; zero is a request by hand.
fn task_of(world: WorldIndex) -> u64 {
    u64::from(world.0) + 1
}

impl Decider {
    /// Asks about the world that is due, if one is and there is room.
    pub(super) fn seek_advice(&mut self) {
        let Some(advisor) = self.tooling.as_mut().and_then(|tooling| tooling.advisor.as_mut()) else {
            return;
        };
        let Some(world) = advisor.next(&self.service) else { return };
        let Some(served) = self.service.world(world) else { return };
        let latest = served.latest().take(proposals::ROWS_MAX);
        let rows: Vec<_> = latest.map(|(seen, action, outcome)| (seen, action, outcome.reward)).collect();
        let messages = proposals::question(&served.spec().shape, &served.spec().note, &rows);
        let question = advisor.question(&messages);
        if self.accept(question, task_of(world)).is_ok() {
            self.gauges.models_asked.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A question was answered, or was not: what can be read of it is proposed.
    pub(super) fn take_advice(&mut self, request: u64, task: u64, response: Option<&Vec<u8>>) {
        let advisor = self.tooling.as_ref().and_then(|tooling| tooling.advisor.as_ref());
        let world = u16::try_from(task - 1).ok().map(WorldIndex);
        let (Some(advisor), Some(world), Some(response)) = (advisor, world, response) else { return };
        let Some(served) = self.service.world(world) else { return };
        let (name, source) =
            (served.spec().name.clone(), format!("{} in request {request}", advisor.source()));
        let read = match said(response) {
            Some(text) => proposals::read(&text, &served.spec().shape, &source),
            None => proposals::Read { refused: vec!["no text".to_string()], ..Default::default() },
        };
        let proposals::Read { machines, mut refused } = read;
        self.gauges.machines_proposed.fetch_add(machines.len() as u64, Ordering::Relaxed);
        self.gauges.proposals_refused.fetch_add(refused.len() as u64, Ordering::Relaxed);
        if 0 < self.events.receiver_count() {
            refused.truncate(REASONS_MAX);
            let event = serde_json::json!({ "event": "proposals", "world": name, "request": request,
                "taken": machines.len(), "refused": refused });
            let _ = self.events.send(event.to_string());
        }
        if !machines.is_empty() {
            self.apply(Input::Propose(Box::new(Proposed { world, request, machines })), None);
        }
    }
}
