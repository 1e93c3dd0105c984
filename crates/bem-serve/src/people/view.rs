//! Questions, answers and changes as JSON and as sentences; answers read from JSON.
//!
//! Floats are made here and in the pages, for people and programs, and nowhere else. A wrong field of an answer is named.
//! Clauses: HUM-4, HUM-12.

use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_base::plain::plain;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode, QuestionKind};
use bem_people::payload::context::Context;
use bem_people::payload::{Answer, ConfigAnswer, EpisodeAnswer, PatchAnswer, StepAnswer, TemplatesAnswer};
use bem_people::table::{Person, Question};
use bem_runtime::input::WorldIndex;
use bem_runtime::people::ask::needs_approver;
use bem_runtime::people::change::{Change, Given, What};
use bem_runtime::people::{Note, Phase};
use bem_runtime::service::{Refusal, RefusalKind, Service};
use serde_json::{Map, Value, json};

/// A fixed-point number as people write it.
pub fn float(value: Fixed) -> f64 {
    let exact = value.to_raw() as f64 / (1u64 << 32) as f64;
    (exact * 1e6).round() / 1e6
}

/// Reads a number.
pub fn fixed(value: &Value, field: &'static str) -> Result<Fixed, Refusal> {
    let number = value.as_f64().filter(|number| number.abs() <= 1_000.0);
    let number = number.ok_or_else(|| bad(field, format!("{field} must be a number")))?;
    Ok(Fixed::from_raw((number * (1u64 << 32) as f64).round() as i64))
}

fn bad(field: &'static str, message: String) -> Refusal {
    Refusal { kind: RefusalKind::Bad, field, code: "bad_answer", message }
}

/// The name of a world.
pub fn world_name(service: &Service, world: u16) -> String {
    service
        .world(WorldIndex(world))
        .map_or_else(|| format!("world {world}"), |world| world.spec().name.clone())
}

/// What is seen as zeros and ones.
pub fn bits(observation: &Bits, width: u16) -> String {
    (0..usize::from(width)).map(|bit| if observation.get(bit) { '1' } else { '0' }).collect()
}

/// The values of the fields of what is seen, by name where there are names.
pub fn fields(service: &Service, world: u16, observation: &Bits) -> Vec<(String, u64)> {
    let Some(served) = service.world(WorldIndex(world)) else { return Vec::new() };
    let shape = &served.spec().shape;
    let names = bem_data::Declared::encoder_of(&served.spec().note).ok();
    let is_bits = shape.fields.iter().all(|field| field.width == 1);
    let named = |place: usize, low: u16| {
        let column = names.as_ref().and_then(|encoder| encoder.column_of(usize::from(low)));
        let plain = || if is_bits { format!("bit {place}") } else { format!("field {place}") };
        column.map_or_else(plain, |column| column.feature.name.clone())
    };
    let value = |low: u16, width: u16| {
        (0..width.min(64))
            .fold(0u64, |value, bit| value | u64::from(observation.get(usize::from(low + bit))) << bit)
    };
    shape
        .fields
        .iter()
        .enumerate()
        .map(|(place, field)| (named(place, field.low), value(field.low, field.width)))
        .collect()
}

/// A question as JSON.
pub fn question(service: &Service, question: &Question, person: Person) -> Value {
    let mut shown = super::tasks::task(question);
    let more = json!({
        "needs": if needs_approver(question) { "approver" } else { "annotator" },
        "steps_left": if question.deadline == 0 { Value::Null } else { json!(question.deadline.saturating_sub(service.last())) },
        "group": if question.group == 0 { Value::Null } else { json!(question.group.to_string()) },
        "second_confirmation": !question.first_answer.is_empty(),
        "leased_by_you": question.owner == person,
        "context": context(service, question),
    });
    if let (Value::Object(shown), Value::Object(more)) = (&mut shown, more) {
        shown.extend(more);
    }
    shown
}

fn context(service: &Service, question: &Question) -> Value {
    let width =
        |world: u16| service.world(WorldIndex(world)).map_or(64, |world| world.spec().shape.observation_bits);
    match Context::from_bytes(question.kind, &question.context) {
        Err(_) => Value::Null,
        Ok(Context::Step(step)) => json!({
            "world": world_name(service, step.task),
            "context": step.context_hash,
            "decision": step.decision.to_string(),
            "obs": bits(&step.observation, width(step.task)),
            "chosen": step.chosen,
            "reward": step.reward,
            "bad": step.bad,
            "step_index": step.step_index,
            "candidates": step.candidates.iter().map(|one| json!({
                "action": one.action, "visits": one.visits, "mean_loss": float(one.mean_loss), "index": float(one.index),
            })).collect::<Vec<_>>(),
        }),
        Ok(Context::Episode(episode)) => json!({
            "world": world_name(service, episode.task),
            "episode": episode.episode.to_string(),
            "length": episode.length,
            "return": episode.return_env,
            "below_mean": episode.regret,
            "flags": episode.flags,
            "steps": episode.steps.iter().map(|step| json!({
                "obs": bits(&step.observation, width(episode.task)), "action": step.action, "reward": step.reward, "bad": step.bad,
            })).collect::<Vec<_>>(),
        }),
        Ok(Context::Patch(patch)) => json!({
            "world": world_name(service, patch.task),
            "patch": format!("{:016x}", patch.patch),
            "words": plain(&patch.words),
            "score": float(patch.pox_score),
            "delta_R": float(patch.deltas[0]), "delta_S": float(patch.deltas[1]),
            "delta_C": float(patch.deltas[2]), "delta_I": float(patch.deltas[3]),
            "risks": patch.risks,
            "proofs": patch.proofs,
            "in_force": patch.in_force,
            "missing": float(patch.missing),
            "policy_now": format!("{:016x}", patch.policies[0]),
            "policy_proposed": format!("{:016x}", patch.policies[1]),
        }),
        Ok(Context::Templates(ranked)) => json!({
            "worlds": ranked.templates.iter().map(|one| json!({
                "world": one.name, "decisions": one.usage, "mean_return_share": float(one.pass_rate), "obs_bits": one.difficulty,
            })).collect::<Vec<_>>(),
        }),
        Ok(Context::Config(config)) => json!({
            "reason": config.words,
            "control": control(&config.control),
            "decisions": config.safety[0], "bad": config.safety[1], "dropped": config.safety[2],
            "patches_applied": config.patches[0], "patches_rejected": config.patches[1], "patches_waiting": config.patches[2],
        }),
    }
}

/// The control as JSON.
pub fn control(control: &Control) -> Value {
    let mut seen = json!({
        "enable_online": control.enable_online,
        "max_online_step_rate": control.max_online_step_rate,
        "max_online_episode_rate": control.max_online_episode_rate,
        "max_pending_tasks": control.max_pending_tasks,
        "safety_override_mode": control.safety_override_mode.name(),
    });
    for (name, value) in control.fixed() {
        seen[name] = json!(float(value));
    }
    seen
}

/// Everything about people as JSON.
pub fn people(service: &Service, person: Person) -> Value {
    let people = service.people();
    let counters: Map<String, Value> =
        people.counters().named().into_iter().map(|(name, count)| (name.to_string(), json!(count))).collect();
    let agreement: Map<String, Value> = QuestionKind::ALL
        .iter()
        .map(|kind| {
            (
                kind.name().to_string(),
                people.groups().alpha(*kind).map_or(Value::Null, |alpha| json!(float(alpha))),
            )
        })
        .collect();
    let everybody: Vec<Value> = people
        .groups()
        .people()
        .iter()
        .map(|(known, record)| {
            json!({
                "person": format!("{known:08x}"), "you": *known == person, "answers": record.answers,
                "compared": record.compared, "agreed": record.agreed, "weight": float(record.weight()),
            })
        })
        .collect();
    json!({
        "control": control(people.control()),
        "statistics": counters,
        "open": people.table().open().count(),
        "budget": { "steps": people.budget()[0], "episodes": people.budget()[1] },
        "agreement": agreement,
        "people": everybody,
    })
}

/// A change as JSON, with a sentence.
fn change(service: &Service, one: &Change) -> Value {
    json!({
        "what": one.what.name(), "words": sentence(service, one), "place": one.place, "action": one.action,
        "before": shown(one, one.before), "after": shown(one, one.after),
    })
}

fn shown(change: &Change, raw: i64) -> Value {
    match change.what {
        What::Choice | What::Keep | What::Learned => json!(raw),
        What::Policy => json!(format!("{:016x}", raw as u64)),
        What::Control if change.place < 5 => json!(raw),
        _ => json!(float(Fixed::from_raw(raw))),
    }
}

/// Changes as JSON.
pub fn changes(service: &Service, changes: &[Change]) -> Vec<Value> {
    changes.iter().map(|one| change(service, one)).collect()
}

/// A change as a sentence.
pub fn sentence(service: &Service, change: &Change) -> String {
    let Change { what, place, action, before, after, world } = *change;
    let number = |raw: i64| format!("{:.3}", float(Fixed::from_raw(raw)));
    let arrow = format!("{} → {}", number(before), number(after));
    match what {
        What::Visits => format!("visits of action {action} by people: {arrow}"),
        What::LossSum => format!("loss of action {action} by people: {arrow}"),
        What::LossSquares => format!("squared loss of action {action} by people: {arrow}"),
        What::Index => format!("index of action {action} in situation {place}: {arrow}"),
        What::Choice => format!("the index chooses action {before} → {after} in situation {place}"),
        What::Prior => format!("prior of action {action} in situation {place}: {arrow}"),
        What::Return => format!("the episode counts for {arrow} of the range"),
        What::Keep => {
            let word = |keep: i64| {
                ["not learned from", "learned from", "curriculum only"][keep.clamp(0, 2) as usize]
            };
            format!("the episode is {} → {}", word(before), word(after))
        }
        What::Template => format!("{} is wanted {arrow}", world_name(service, world)),
        What::Policy if before == after => "the policy in force stays".to_string(),
        What::Policy => format!(
            "policy of {}: {:08x} → {:08x}",
            world_name(service, world),
            before as u64 >> 32,
            after as u64 >> 32
        ),
        What::Learned => {
            let word = |learned: i64| if learned == 0 { "is not learned" } else { "is learned" };
            format!("{} {} → {}", world_name(service, world), word(before), word(after))
        }
        What::Score => format!("score with the approval: {arrow}"),
        What::Control => {
            let names =
                ["enable_online", "max_online_step_rate", "max_online_episode_rate", "max_pending_tasks"];
            let mode = |raw: i64| Mode::from_number(raw as u8).map_or("unknown", Mode::name);
            match place {
                0..=3 => format!("{}: {before} → {after}", names[place as usize]),
                4 => format!("safety_override_mode: {} → {}", mode(before), mode(after)),
                _ => {
                    let name =
                        Control::default().fixed().get(place as usize - 5).map_or("?", |(name, _)| name);
                    format!("{name}: {arrow}")
                }
            }
        }
    }
}

/// What was answered, as far as this person may know it: an answer that waits for others is blind to them until all have answered.
pub fn visible(service: &Service, number: u64, given: &Given, viewer: Person) -> Option<Answer> {
    let is_hidden = given.person != viewer && service.people().groups().is_blind(number);
    Answer::from_bytes(given.kind, &given.answer).ok().filter(|_| !is_hidden)
}

/// An answer that was given, as JSON for this person.
pub fn given(service: &Service, number: u64, given: &Given, viewer: Person) -> Value {
    let answer = visible(service, number, given, viewer).map_or(Value::Null, |answer| answer_json(&answer));
    json!({
        "answer": number.to_string(),
        "question": given.question.to_string(),
        "kind": given.kind.name(),
        "person": format!("{:08x}", given.person),
        "said": answer,
        "changes": changes(service, &given.changes),
        "undone": given.undone != 0,
    })
}

/// What the last input took back.
pub fn undone(service: &Service) -> Value {
    let taken = service.moved().iter().find_map(|note| match note {
        Note::Changed { undone: true, changes, .. } => Some(changes),
        _ => None,
    });
    taken.map_or(Value::Null, |taken| json!(changes(service, taken)))
}

/// A question that was just asked.
pub fn created(note: &Note) -> Option<&Question> {
    match note {
        Note::Moved { question, phase: Phase::Created, .. } => Some(question),
        _ => None,
    }
}

/// An answer as JSON.
pub fn answer_json(answer: &Answer) -> Value {
    match answer {
        Answer::Step(said) => {
            json!({ "accept": said.accept, "best": said.best, "score": float(said.score), "comment": said.comment })
        }
        Answer::Episode(said) => {
            json!({ "score": float(said.score), "keep": KEEPS[usize::from(said.keep.min(2))], "tags": said.tags })
        }
        Answer::Patch(said) => {
            json!({ "decision": said.decision.name(), "risks": said.risks, "weight": float(said.weight) })
        }
        Answer::Templates(said) => {
            json!({ "order": said.order, "scores": said.scores.iter().map(|score| float(*score)).collect::<Vec<_>>() })
        }
        Answer::Config(said) => {
            let mut seen = json!({
                "enable_online": said.enable_online, "safety_override_mode": said.safety_override_mode.map(Mode::name),
            });
            for (name, delta) in DELTAS.into_iter().zip(said.deltas) {
                seen[name] = json!(float(delta));
            }
            seen
        }
    }
}

const KEEPS: [&str; 3] = ["discard", "keep", "curriculum"];
const DELTAS: [&str; 5] = [
    "min_conf_auto_delta",
    "weight_bandit_delta",
    "weight_grpo_delta",
    "weight_teacher_delta",
    "weight_pox_delta",
];

/// The fields of an answer that is read.
struct Said(Map<String, Value>);

impl Said {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    fn share(&mut self, name: &'static str, usual: Fixed) -> Result<Fixed, Refusal> {
        match self.take(name) {
            None => Ok(usual),
            Some(value) => {
                let number = fixed(&value, name)?;
                let is_share = Fixed::ZERO <= number && number <= Fixed::ONE;
                if is_share { Ok(number) } else { Err(bad(name, format!("{name} is out of range: 0 to 1"))) }
            }
        }
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(bad(name, format!("{name} must be true or false"))),
        }
    }

    fn whole(&mut self, name: &'static str, most: u64) -> Result<Option<u64>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|number| *number <= most) {
                Some(number) => Ok(Some(number)),
                None => Err(bad(name, format!("{name} must be a whole number from 0 to {most}"))),
            },
        }
    }

    fn word<T>(
        &mut self,
        name: &'static str,
        from: impl Fn(&str) -> Option<T>,
        allowed: &str,
    ) -> Result<Option<T>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_str().and_then(from) {
                Some(found) => Ok(Some(found)),
                None => Err(bad(name, format!("{name} must be one of: {allowed}"))),
            },
        }
    }
}

/// Reads an answer to a question that is open, or that this person has answered.
pub fn read_answer(service: &Service, serial: u64, person: Person, said: &Value) -> Result<Answer, Refusal> {
    let open = service.people().table().get(serial);
    let known = open.map(|question| (question.kind, question.context.as_slice()));
    let answered =
        || service.given_by(serial, person).map(|(_, given)| (given.kind, given.context.as_slice()));
    let gone = || Refusal::from(bem_people::table::Stuck::Gone);
    let (kind, context) = known.or_else(answered).ok_or_else(gone)?;
    let Value::Object(fields) = said else {
        return Err(bad("answer", "answer must be an object".to_string()));
    };
    let mut said = Said(fields.clone());
    let must = |name: &'static str| bad(name, format!("{name} is missing"));
    let answer = match kind {
        QuestionKind::LabelStep => {
            let accept = said.flag("accept")?.ok_or_else(|| must("accept"))?;
            Answer::Step(StepAnswer {
                accept,
                best: said.whole("best", 1_023)?.map(|best| best as u16),
                score: said.share("score", if accept { Fixed::ONE } else { Fixed::ZERO })?,
                comment: said.whole("comment", 65_535)?.unwrap_or(0) as u16,
            })
        }
        QuestionKind::ScoreEpisode => {
            let keep = |word: &str| KEEPS.iter().position(|keep| *keep == word);
            if !said.0.contains_key("score") {
                return Err(must("score"));
            }
            Answer::Episode(EpisodeAnswer {
                score: said.share("score", Fixed::ONE)?,
                keep: said.word("keep", keep, "discard, keep, curriculum")?.unwrap_or(1) as u8,
                tags: said.whole("tags", u64::from(u32::MAX))?.unwrap_or(0) as u32,
            })
        }
        QuestionKind::ApprovePatch => {
            let decision = |word: &str| Decision::from_name(word).filter(|one| *one != Decision::Undecided);
            let decision = said.word("decision", decision, "approve, reject, defer")?;
            Answer::Patch(PatchAnswer {
                decision: decision.ok_or_else(|| must("decision"))?,
                risks: said.whole("risks", u64::from(u32::MAX))?.unwrap_or(0) as u32,
                weight: said.share("weight", Fixed::ONE)?,
            })
        }
        QuestionKind::RankTemplates => Answer::Templates(read_ranking(&mut said, context)?),
        QuestionKind::AdjustConfig => {
            let mut deltas = [Fixed::ZERO; 5];
            for (delta, name) in deltas.iter_mut().zip(DELTAS) {
                if let Some(value) = said.take(name) {
                    *delta = fixed(&value, name)?;
                }
            }
            Answer::Config(ConfigAnswer {
                enable_online: said.flag("enable_online")?,
                safety_override_mode: said.word("safety_override_mode", Mode::from_name, &Mode::names())?,
                deltas,
            })
        }
    };
    match said.0.keys().next() {
        None => Ok(answer),
        Some(name) => Err(bad(
            "answer",
            format!("{:?} is no field of this answer", name.chars().take(64).collect::<String>()),
        )),
    }
}

/// An order by places or by names.
fn read_ranking(said: &mut Said, context: &[u8]) -> Result<TemplatesAnswer, Refusal> {
    let names: Vec<String> = match Context::from_bytes(QuestionKind::RankTemplates, context) {
        Ok(Context::Templates(shown)) => shown.templates.into_iter().map(|one| one.name).collect(),
        _ => Vec::new(),
    };
    let Some(Value::Array(order)) = said.take("order") else {
        return Err(bad("order", format!("order must list all of: {}", names.join(", "))));
    };
    let place = |item: &Value| match item {
        Value::String(name) => names.iter().position(|known| known == name),
        other => other.as_u64().map(|place| place as usize).filter(|place| *place < names.len()),
    };
    let places: Option<Vec<u8>> = order.iter().map(|item| Some(place(item)? as u8)).collect();
    let order =
        places.ok_or_else(|| bad("order", format!("order must list all of: {}", names.join(", "))))?;
    let scores = match said.take("scores") {
        None => Vec::new(),
        Some(Value::Array(scores)) => {
            scores.iter().map(|score| fixed(score, "scores")).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(bad("scores", "scores must be a list".to_string())),
    };
    Ok(TemplatesAnswer { order, scores })
}
