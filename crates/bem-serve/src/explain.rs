//! What a world's policy does and why, for programs and on the page: rules, state diagram, the reason for the action on an
//! observation that somebody gives, and the nearest change that would alter it.
//!
//! Only reads. What is worked out once for a policy is kept; one explanation is worked out at a time, on a thread of its own, for
//! policies of bounded size and with bounded questions to the prover. Must not know how anything is learned; the words are those
//! of `bem-explain`. Clause: GLE-9.

use crate::api::{Paging, Shown, shown};
use crate::http::{App, Failure};
use crate::page::escaped;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use bem_base::digest::Digest;
use bem_base::environment::{Bits, Field};
use bem_data::{Declared, Encoder, Feature, FeatureKind};
use bem_explain::examples::{EXAMPLE_GATES_MAX, examples};
use bem_explain::subject::digits;
use bem_explain::{
    AskError, Explainable, Explanation, GivenObservation, Reason, StateDiagram, html, json, text,
};
use bem_runtime::input::WorldSpec;
use bem_synth::policy::Policy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Policies whose explanation is kept.
const KEPT_MAX: usize = 64;
/// Gates of a policy that is explained while somebody waits.
pub const GATES_MAX: usize = EXAMPLE_GATES_MAX;
/// Conflicts that a question to the prover may take while somebody waits.
const CONFLICTS: u32 = 2_000;
/// Latest observations that examples are chosen from.
const LATEST: usize = 512;
/// Features that have a field of the form each; of more, one field takes all.
const FIELDS_MAX: usize = 32;

/// A policy in a world's words: its circuit, what the bits stand for, and how they are grouped.
type Key = (Digest, String, Vec<Field>);

/// What was worked out, and the turn of whoever works.
pub struct Explaining {
    kept: Mutex<BTreeMap<Key, Arc<Explained>>>,
    turn: Arc<Semaphore>,
}

impl Default for Explaining {
    fn default() -> Explaining {
        Explaining { kept: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

/// A policy, explained.
pub struct Explained {
    policy: Policy,
    spec: WorldSpec,
    names: Option<Encoder>,
    whole: Explanation,
    diagram: Option<StateDiagram>,
    /// Rules, diagram and reasons, as they stand on the page.
    page: String,
}

impl Explained {
    /// The policy of a world, with the latest observations that it was asked about.
    pub(crate) fn new(policy: Policy, spec: WorldSpec, latest: &[Bits]) -> Explained {
        let names = Declared::encoder_of(&spec.note).ok();
        let subject = subject(&policy, &spec, names.as_ref());
        let (whole, diagram) = (subject.explain(), subject.diagram());
        // Which of the latest decisions belong to one episode is not known, and memory depends on that.
        let seen: Vec<Vec<Bits>> = match policy.memory_bits() {
            0 => latest.iter().map(|bits| vec![*bits]).collect(),
            _ => Vec::new(),
        };
        let source = match seen.is_empty() {
            true => "drawn from those that can occur",
            false => "each was asked about lately",
        };
        let examples = examples(&subject, &whole.action, &seen);
        let page = format!(
            "<pre class=rules>{}</pre>{}{}",
            escaped(&text::policy(&subject, &whole, diagram.as_ref())),
            html::states(&subject, &whole, diagram.as_ref()),
            html::reasons(&subject, diagram.as_ref(), &examples, source)
        );
        Explained { policy, spec, names, whole, diagram, page }
    }

    /// What stands on the page, with the form and what was given in it.
    pub(crate) fn with_form(&self, query: &BTreeMap<String, String>) -> String {
        let mut page = self.page.clone();
        form(&mut page, self, query);
        page
    }

    fn subject(&self) -> Explainable<'_> {
        subject(&self.policy, &self.spec, self.names.as_ref())
    }
}

fn subject<'a>(policy: &'a Policy, spec: &'a WorldSpec, names: Option<&'a Encoder>) -> Explainable<'a> {
    let observation_bits = usize::from(spec.shape.observation_bits);
    Explainable { policy, observation_bits, fields: &spec.shape.fields, names, actions: &[], horizon: None }
}

/// A policy of at most so many gates as rules.
pub fn rules_of(policy: &Policy, spec: &WorldSpec, gates_max: usize) -> String {
    if gates_max < policy.gates() {
        return too_many(policy);
    }
    let names = Declared::encoder_of(&spec.note).ok();
    let subject = subject(policy, spec, names.as_ref());
    text::policy(&subject, &subject.explain(), None)
}

fn too_many(policy: &Policy) -> String {
    let words = "are too many to be explained here: export the circuit and use bem explain";
    format!("{} gates {words}", policy.gates())
}

/// Works when it is its turn, away from the threads that answer.
async fn work<T: Send + 'static>(app: &App, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let failed =
        || Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "not_explained", "the explanation failed");
    let turn = Arc::clone(&app.explaining.turn).acquire_owned().await.map_err(|_| failed())?;
    let worked = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    worked.await.map_err(|_| failed())
}

/// The policy in force of a world, explained once.
async fn explained(app: &App, shown: &Shown) -> Result<Arc<Explained>, Failure> {
    let policy = shown.agent.policy();
    if GATES_MAX < policy.gates() {
        return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "too_large", too_many(policy)));
    }
    let key: Key = (policy.digest(), shown.spec.note.clone(), shown.spec.shape.fields.clone());
    let known = |key: &Key| {
        app.explaining.kept.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(Arc::clone)
    };
    if let Some(explained) = known(&key) {
        return Ok(explained);
    }
    let name = shown.spec.name.clone();
    let latest = app.handle.look(move |service| {
        let latest = service.find(&name).map(|(_, world)| {
            world.latest().take(LATEST).map(|(observation, _, _)| observation).collect::<Vec<Bits>>()
        });
        latest.unwrap_or_default()
    });
    let (latest, policy, spec) = (latest.await?, policy.clone(), shown.spec.clone());
    let explained = Arc::new(work(app, move || Explained::new(policy, spec, &latest)).await?);
    let mut kept = app.explaining.kept.lock().unwrap_or_else(PoisonError::into_inner);
    if KEPT_MAX <= kept.len() {
        kept.clear();
    }
    kept.insert(key, Arc::clone(&explained));
    Ok(explained)
}

/// The reason for the action on an input of the circuit.
async fn reason(app: &App, explained: &Arc<Explained>, input: &[bool]) -> Result<Reason, Failure> {
    let (explained, input) = (Arc::clone(explained), input.to_vec());
    work(app, move || explained.subject().reason(&input, CONFLICTS)).await
}

fn refusal(AskError { field, message }: AskError) -> Failure {
    Failure::bad(field, format!("{field} {message}"))
}

#[utoipa::path(get, path = "/v1/worlds/{name}/explain",
    params(("name" = String, Path),
        ("obs" = Option<String>, Query, description = "Zeros and ones, fieldN=VALUE and bitN=VALUE, or NAME=VALUE for every feature, joined by commas"),
        ("memory" = Option<String>, Query, description = "What is remembered, as zeros and ones; the start of an episode if left out")),
    responses((status = 200, description = "Without obs: rules, memory and states of the policy in force. With it: the action, the rules gone through, what forces it, the nearest change that alters it"),
        (status = 400, body = crate::api::ErrorBody), (status = 404, body = crate::api::ErrorBody),
        (status = 422, description = "The policy has too many gates", body = crate::api::ErrorBody)))]
pub(crate) async fn explain(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Paging,
) -> Result<Json<Value>, Failure> {
    if let Some(other) = query.keys().find(|key| *key != "obs" && *key != "memory") {
        let other: String = other.chars().take(64).collect();
        return Err(Failure::bad(other.clone(), format!("{other:?} is no field: obs and memory are")));
    }
    let (obs, memory) = (query.get("obs"), query.get("memory"));
    if obs.is_none() && memory.is_some() {
        return Err(Failure::bad("obs", "obs is missing: memory alone says nothing"));
    }
    let shown = shown(&app, name).await?;
    let policy = shown.agent.policy();
    let mut answer = json!({ "world": shown.spec.name, "circuit": policy.digest().to_hex(), "actions": policy.actions(),
        "memory_bits": policy.memory_bits(), "adapts": shown.agent.adapts() });
    let explained = explained(&app, &shown).await?;
    let subject = explained.subject();
    let Some(obs) = obs else {
        for (name, value) in json::policy(&subject, &explained.whole, explained.diagram.as_ref()) {
            answer[name] = value;
        }
        return Ok(Json(answer));
    };
    let input = subject.input(&GivenObservation::Text(obs), memory.map(String::as_str)).map_err(refusal)?;
    let reason = reason(&app, &explained, &input).await?;
    answer["seen"] = json!(subject.seen(&input));
    answer["remembered"] = json!(digits(&input[policy.reads().len()..]));
    answer["action"] = json!(reason.action);
    answer["rules"] = json::conditions(&subject, &explained.whole.action, &input, reason.action);
    answer["why"] = json::reason(&subject, &reason);
    Ok(Json(answer))
}

/// The part of a world's page about its policy: rules, diagram, reasons, and a form that asks why.
pub async fn part(app: &App, shown: &Shown, query: &BTreeMap<String, String>) -> Result<String, Failure> {
    let explained = match explained(app, shown).await {
        Ok(explained) => explained,
        Err(failure) if failure.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            return Ok(format!("<p class=muted>{}.</p>", escaped(failure.message())));
        }
        Err(failure) => return Err(failure),
    };
    let mut page = explained.with_form(query);
    let named = query.iter().filter_map(|(key, value)| Some((key.strip_prefix("obs.")?, value.as_str())));
    let named: Vec<(&str, &str)> = named.map(|(name, value)| (name, value.trim())).collect();
    let text = query.get("obs").map(|text| text.trim()).filter(|text| !text.is_empty());
    let seen = match (named.is_empty(), text) {
        (false, _) => GivenObservation::Named(named),
        (true, Some(text)) => GivenObservation::Text(text),
        (true, None) => return Ok(page),
    };
    let subject = explained.subject();
    let memory = query.get("memory").map(|text| text.trim()).filter(|text| !text.is_empty());
    let input = match subject.input(&seen, memory) {
        Ok(input) => input,
        Err(refused) => {
            let _ = write!(page, "<p class=fail role=alert>{}</p>", escaped(&refused.to_string()));
            return Ok(page);
        }
    };
    let reason = reason(app, &explained, &input).await?;
    let remembered = subject.remembered(&input, explained.diagram.as_ref());
    let remembered = remembered.map_or_else(String::new, |words| format!(", {words}"));
    let _ = write!(
        page,
        "<dl class=reasons id=why><dt>{}{}</dt>{}</dl>{}",
        escaped(&subject.seen(&input)),
        escaped(&remembered),
        html::why_item(&subject, &reason),
        html::conditions(&subject, &explained.whole.action, &input, reason.action)
    );
    Ok(page)
}

/// Where a person gives an observation, with what was given last.
fn form(page: &mut String, explained: &Explained, query: &BTreeMap<String, String>) {
    let given = |name: &str| escaped(query.get(name).map_or("", String::as_str));
    let name = escaped(&explained.spec.name);
    let _ = write!(page, "<h3>Ask why</h3><form class=ask method=get action=\"/worlds/{name}#why\">");
    match &explained.names {
        Some(names) if names.columns().len() <= FIELDS_MAX => {
            names.columns().iter().for_each(|column| field(page, &column.feature, query));
        }
        names => {
            let example = match names {
                Some(_) => "NAME=VALUE,...".to_string(),
                None => "0".repeat(usize::from(explained.spec.shape.observation_bits).min(32)),
            };
            let _ = write!(
                page,
                "<label>observation <input name=obs required placeholder=\"{example}\" value=\"{}\"></label> ",
                given("obs")
            );
        }
    }
    match &explained.diagram {
        Some(diagram) => {
            page.push_str("<label>state <select name=memory>");
            for (number, state) in diagram.states.iter().enumerate() {
                let memory = digits(&state.memory);
                let selected = if given("memory") == memory { " selected" } else { "" };
                let _ = write!(page, "<option value={memory}{selected}>S{number}");
            }
            page.push_str("</select></label> ");
        }
        None if 0 < explained.policy.memory_bits() => {
            let _ = write!(
                page,
                "<label>remembered <input name=memory placeholder=\"{}\" value=\"{}\"></label> ",
                "0".repeat(explained.policy.memory_bits()),
                given("memory")
            );
        }
        None => {}
    }
    page.push_str("<button>why?</button></form>");
}

/// The field of one feature.
fn field(page: &mut String, feature: &Feature, query: &BTreeMap<String, String>) {
    let key = format!("obs.{}", feature.name);
    let given = query.get(&key).map_or("", String::as_str);
    let (name, key) = (escaped(&feature.name), escaped(&key));
    let choices = match &feature.kind {
        FeatureKind::Number { .. } => {
            let _ = write!(
                page,
                "<label>{name} <input name=\"{key}\" inputmode=decimal required title=\"{}\" value=\"{}\"></label> ",
                escaped(&feature.allowed()),
                escaped(given)
            );
            return;
        }
        FeatureKind::Choice(words) => words.clone(),
        FeatureKind::Bit => vec!["0".to_string(), "1".to_string()],
    };
    let _ = write!(page, "<label>{name} <select name=\"{key}\">");
    for word in choices {
        let selected = if given == word { " selected" } else { "" };
        let _ = write!(page, "<option value=\"{0}\"{selected}>{0}", escaped(&word));
    }
    page.push_str("</select></label> ");
}
