//! Checks of what people want, before it is an input; and what is shown with a question.
//!
//! What is refused says which field is wrong and what is allowed. What was said before is said again and is no input.
//! Must not change anything. Clauses: HUM-2, HUM-3, HUM-4; decision D-76.

use super::change::{Change, Given};
use super::input::{Ask, PeopleInput, WORDS_BYTES_MAX};
use super::oversight::{content, short};
use super::standing::Recent;
use super::templates::is_template;
use super::{DRIFT_MAX, DRIFT_WINDOW, People, UNDO_STEPS};
use crate::input::{Input, WorldIndex};
use crate::service::{Refusal, RefusalKind, Service};
use crate::world::World;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode, QuestionKind, Skip};
use bem_people::payload::context::{
    CANDIDATES_MAX, Candidate, ConfigContext, Context, EpisodeContext, PatchContext, Ranked, StepContext,
    TemplatesContext,
};
use bem_people::payload::{Answer, PayloadError};
use bem_people::table::{ADJUDICATES, Person, Question, Stuck};
use bem_people::{QUORUM_MAX, RANKED_MAX};

/// Somebody asked from outside.
pub(crate) const CAUSE_ASKED: u8 = 8;

impl From<PayloadError> for Refusal {
    fn from(error: PayloadError) -> Refusal {
        Refusal::new(RefusalKind::Bad, error.field, "bad_answer", error.reason)
    }
}

impl From<Stuck> for Refusal {
    fn from(stuck: Stuck) -> Refusal {
        let (kind, field, code) = match stuck {
            Stuck::Gone => (RefusalKind::Missing, "question", "unknown_question"),
            Stuck::Leased => (RefusalKind::Conflict, "question", "leased"),
            Stuck::LeaseLost => (RefusalKind::Conflict, "lease", "lease_lost"),
            Stuck::Barred => (RefusalKind::Conflict, "question", "already_answered"),
        };
        Refusal::new(kind, field, code, stuck.to_string())
    }
}

fn bad(field: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Bad, field, "bad_field", message.into())
}

fn conflict(field: &'static str, code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Conflict, field, code, message.into())
}

fn input(of: PeopleInput) -> Input {
    Input::People(Box::new(of))
}

/// A role is needed that the caller has not.
fn forbidden() -> Refusal {
    let message = "only approvers answer questions about patches and configuration, and settle conflicts";
    Refusal::new(RefusalKind::Forbidden, "question", "needs_approver", message.to_string())
}

impl Service {
    /// The people's layer.
    pub fn people(&self) -> &People {
        &self.people
    }

    fn question(&self, serial: u64) -> Result<&Question, Refusal> {
        self.people.table.get(serial).ok_or_else(|| Stuck::Gone.into())
    }

    /// A question from outside.
    pub fn ask_people(&self, ask: Ask) -> Result<Input, Refusal> {
        if !(1..=QUORUM_MAX).contains(&ask.quorum) {
            return Err(bad("quorum", format!("quorum {} is out of range: 1 to {QUORUM_MAX}", ask.quorum)));
        }
        if WORDS_BYTES_MAX < ask.words.len() {
            return Err(bad("reason", format!("reason has more than {WORDS_BYTES_MAX} bytes")));
        }
        if 1 << 40 < ask.patience {
            return Err(bad("deadline", "deadline is out of range: 0 to 2^40 inputs"));
        }
        let open = self.people.table.open().count();
        let most = usize::from(self.people.control.max_pending_tasks).min(bem_people::OPEN_MAX);
        if most < open + usize::from(ask.quorum) {
            let message = format!("{open} questions are open: at most {most} may be");
            return Err(Refusal::new(RefusalKind::Busy, "quorum", "too_many_questions", message));
        }
        self.context_of(&ask)?;
        Ok(input(PeopleInput::Ask(Box::new(ask))))
    }

    /// What is shown with a question from outside.
    pub(crate) fn context_of(&self, ask: &Ask) -> Result<Context, Refusal> {
        let world = || {
            let gone = || {
                Refusal::new(
                    RefusalKind::Missing,
                    "world",
                    "unknown_world",
                    "there is no such world".to_string(),
                )
            };
            self.world(WorldIndex(ask.world)).ok_or_else(gone)
        };
        let missing = |message: &str| {
            Refusal::new(RefusalKind::Missing, "decision", "unknown_decision", message.to_string())
        };
        Ok(match ask.kind {
            QuestionKind::LabelStep => {
                let shown = step_context(world()?, ask.world, ask.target, CAUSE_ASKED);
                Context::Step(shown.ok_or_else(|| missing("decision is unknown in this world, or too old"))?)
            }
            QuestionKind::ScoreEpisode => {
                let world = world()?;
                let first = world.decision(ask.target).map_or(ask.target, |(_, first, _)| first);
                let recent = world.standing().episode(first);
                let recent = recent
                    .ok_or_else(|| missing("the episode of this decision is not complete, or too old"))?;
                Context::Episode(episode_context(world, ask.world, recent, 8))
            }
            QuestionKind::ApprovePatch => {
                let message = "a change that waits asks by itself: see the open questions";
                return Err(bad("kind", message));
            }
            QuestionKind::RankTemplates => self.templates_context(&ask.worlds)?,
            QuestionKind::AdjustConfig => {
                self.config_context(if ask.words.is_empty() { "somebody asks" } else { &ask.words })
            }
        })
    }

    pub(crate) fn templates_context(&self, worlds: &[u16]) -> Result<Context, Refusal> {
        let chosen = self.worlds().filter(|(index, _)| worlds.is_empty() || worlds.contains(&index.0));
        let ranked = |(index, world): (WorldIndex, &World)| {
            let (shape, returns) = (&world.spec().shape, &world.statistics().returns);
            let span = i128::from((shape.return_max - shape.return_min).max(1));
            // What somebody threw away counts for nothing; what serves the curriculum only counts here.
            let thrown = world.standing().recent.iter().filter(|recent| recent.keep == 0);
            let (thrown, earned) =
                thrown.fold((0, 0), |(count, sum), recent| (count + 1, sum + i128::from(recent.total)));
            let count = (i128::from(returns.count) - thrown).max(1);
            let above = returns.sum - earned - count * i128::from(shape.return_min);
            let share = (above.max(0) << 32) / (count * span);
            Ranked {
                template: index.0,
                name: world.spec().name.clone(),
                usage: world.statistics().decisions,
                pass_rate: Fixed::from_raw(share.min(1 << 32) as i64),
                difficulty: shape.observation_bits,
            }
        };
        let templates: Vec<Ranked> = chosen.take(RANKED_MAX).map(ranked).collect();
        if templates.len() < 2 {
            return Err(bad("worlds", format!("worlds must be 2 to {RANKED_MAX} that are served")));
        }
        Ok(Context::Templates(TemplatesContext { templates }))
    }

    pub(crate) fn config_context(&self, words: &str) -> Context {
        let sum = |of: &dyn Fn(&World) -> u64| self.worlds().map(|(_, world)| of(world)).sum::<u64>();
        Context::Config(ConfigContext {
            control: self.people.control,
            safety: [
                sum(&|world| world.statistics().decisions),
                sum(&|world| world.statistics().bad),
                self.people.counters.total_tasks_dropped,
            ],
            patches: [
                sum(&|world| world.statistics().applied),
                sum(&|world| world.statistics().rejected),
                sum(&|world| u64::from(world.standing().held().is_some())),
            ],
            words: words.to_string(),
        })
    }

    /// Somebody wants to work on a question: an input, or nothing where they do already; the generation of the lease then.
    pub fn lease(&self, serial: u64, person: Person, is_approver: bool) -> Result<Option<Input>, Refusal> {
        let question = self.question(serial)?;
        if needs_approver(question) && !is_approver {
            return Err(forbidden());
        }
        if self.people.groups.has_answered(question.group, person) && question.group != 0 {
            return Err(Stuck::Barred.into());
        }
        self.people.table.check_lease(serial, person)?;
        let is_held = question.owner == person;
        Ok((!is_held).then(|| input(PeopleInput::Lease { question: serial, person })))
    }

    /// The answer that somebody has given to a question, if they have.
    pub fn given_by(&self, question: u64, person: Person) -> Option<(u64, &Given)> {
        let given = self.people.given.iter().rev();
        given
            .map(|(number, given)| (*number, given))
            .find(|(_, given)| given.question == question && given.person == person)
    }

    /// An answer: an input if it is new, nothing if the same was given before under the same lease.
    pub fn answer(
        &self,
        serial: u64,
        generation: u32,
        person: Person,
        answer: Vec<u8>,
    ) -> Result<Option<Input>, Refusal> {
        if let Some((_, given)) =
            self.given_by(serial, person).filter(|(_, given)| given.generation == generation)
        {
            return match given.answer == answer && given.undone == 0 {
                true => Ok(None),
                false => Err(conflict(
                    "answer",
                    "other_answer",
                    "this question has another answer of yours already",
                )),
            };
        }
        let question = self.people.table.check_held(serial, generation, person)?;
        self.check_answer(question, &answer)?;
        Ok(Some(input(PeopleInput::Answer { question: serial, generation, person, answer })))
    }

    /// Whether an answer fits its question.
    pub(crate) fn check_answer(&self, question: &Question, bytes: &[u8]) -> Result<Answer, Refusal> {
        let answer = Answer::from_bytes(question.kind, bytes)?;
        let context = Context::from_bytes(question.kind, &question.context)?;
        match (&answer, &context) {
            (Answer::Step(answer), Context::Step(shown)) => {
                if let Some(best) = answer.best
                    && !shown.candidates.iter().any(|candidate| candidate.action == best)
                {
                    let allowed: Vec<String> =
                        shown.candidates.iter().map(|one| one.action.to_string()).collect();
                    return Err(bad(
                        "best",
                        format!("best {best} is none of those shown: {}", allowed.join(", ")),
                    ));
                }
            }
            (Answer::Templates(answer), Context::Templates(shown))
                if answer.order.len() != shown.templates.len() =>
            {
                return Err(bad("order", format!("order must name all {} places", shown.templates.len())));
            }
            (Answer::Patch(_), Context::Patch(shown))
                if is_template(shown) && self.may_learn(WorldIndex(shown.task)) =>
            {
                return Err(conflict("question", "gone", "the template is taken up already"));
            }
            (Answer::Patch(said), Context::Patch(shown)) if !shown.in_force && !is_template(shown) => {
                let held = self.world(WorldIndex(shown.task)).and_then(|world| world.standing().held());
                if held.is_none_or(|held| held.question != question.serial) {
                    return Err(conflict("question", "gone", "the change does not wait any more"));
                }
                // An approval that does not add what is missing would let in what the gate has not.
                let added = self.people.control.human_weight_pox.mul_floor(said.weight);
                if said.decision == Decision::Approve && added < shown.missing {
                    let message = format!(
                        "the approval would add {added} to the score and {} is missing: reject or defer it",
                        shown.missing
                    );
                    return Err(conflict("weight", "below_threshold", message));
                }
            }
            (Answer::Patch(said), Context::Patch(shown)) if shown.in_force => {
                self.check_in_force(said.decision, shown)?;
            }
            (Answer::Config(_), _) => {
                self.check_config(question, &answer, bytes)?;
            }
            _ => {}
        }
        Ok(answer)
    }

    /// Whether a decision about a change that is in force can be carried out: a deferral always, an approval while it is in force,
    /// a rejection while it can be taken back.
    fn check_in_force(&self, decision: Decision, shown: &PatchContext) -> Result<(), Refusal> {
        let world = self.world(WorldIndex(shown.task));
        let Some(world) = world.filter(|_| matches!(decision, Decision::Approve | Decision::Reject)) else {
            return Ok(());
        };
        if short(&world.acting.digest()) != shown.policies[1] {
            return Err(conflict(
                "question",
                "gone",
                "the policy has changed since: defer or skip the question",
            ));
        }
        if decision == Decision::Approve {
            return Ok(());
        }
        if !world.standing().can_be_taken_back() {
            let message = "too much was learned since: the policy cannot be taken back any more";
            return Err(conflict("decision", "cannot_be_taken_back", message));
        }
        if world.is_searching() || world.standing().held().is_some() {
            let message = "a round of learning is under way in this world: try again in a moment";
            return Err(conflict("decision", "round_under_way", message));
        }
        Ok(())
    }

    fn check_config(&self, question: &Question, answer: &Answer, bytes: &[u8]) -> Result<(), Refusal> {
        let Answer::Config(said) = answer else { return Ok(()) };
        let control = &self.people.control;
        if !control.is_loosened_by(&control.changed_by(said)) {
            return Ok(());
        }
        if !question.first_answer.is_empty() && question.first_answer != bytes {
            let message = "another person has proposed to loosen safety in another way: confirm that, or loosen nothing";
            return Err(conflict("answer", "other_proposal", message));
        }
        self.check_drift(self.last() + 1)
    }

    /// Whether safety may be loosened once more.
    pub(crate) fn check_drift(&self, step: u64) -> Result<(), Refusal> {
        let lately = self.people.loosened.iter().filter(|at| step < **at + DRIFT_WINDOW).count();
        if lately < DRIFT_MAX {
            return Ok(());
        }
        let message =
            format!("safety was loosened {DRIFT_MAX} times in the last {DRIFT_WINDOW} inputs: wait");
        Err(conflict("safety_override_mode", "drift_limit", message))
    }

    /// Somebody skips a question.
    pub fn skip(&self, serial: u64, generation: u32, person: Person, reason: Skip) -> Result<Input, Refusal> {
        self.people.table.check_held(serial, generation, person)?;
        Ok(input(PeopleInput::Skip { question: serial, generation, person, reason }))
    }

    /// Somebody gives a question back.
    pub fn release(&self, serial: u64, generation: u32, person: Person) -> Result<Input, Refusal> {
        self.people.table.check_held(serial, generation, person)?;
        Ok(input(PeopleInput::Release { question: serial, generation, expired: false }))
    }

    /// A lease has run out: an input if it is still the latest.
    pub fn expire_lease(&self, serial: u64, generation: u32) -> Option<Input> {
        let question = self.people.table.get(serial)?;
        let is_held = question.owner != 0 && question.generation == generation;
        is_held.then(|| input(PeopleInput::Release { question: serial, generation, expired: true }))
    }

    /// Somebody takes an answer back: an input, or nothing where it was taken back already.
    pub fn undo(&self, answer: u64, person: Person, is_approver: bool) -> Result<Option<Input>, Refusal> {
        let unknown = || {
            let message = format!("answer {answer} is unknown, or too old to be taken back");
            Refusal::new(RefusalKind::Missing, "answer", "unknown_answer", message)
        };
        let given = self.people.given.get(&answer).ok_or_else(unknown)?;
        if answer + UNDO_STEPS < self.last() {
            return Err(unknown());
        }
        if !is_approver && (given.person != person || given.kind.needs_approver()) {
            let message = "only who gave an answer or an approver takes it back";
            return Err(Refusal::new(RefusalKind::Forbidden, "answer", "not_yours", message.to_string()));
        }
        if given.undone != 0 {
            return Ok(None);
        }
        self.check_inverse(given)?;
        Ok(Some(input(PeopleInput::Undo { answer, person })))
    }

    /// The owner sets the control; safety is not loosened this way.
    pub fn set_control(&self, control: Control, person: Person) -> Result<Option<Input>, Refusal> {
        control.check().map_err(|(field, message)| bad(field, message))?;
        if self.people.control == control {
            return Ok(None);
        }
        if self.people.control.is_loosened_by(&control) {
            let message = "this loosens safety, which needs two approvers: ask a configuration question";
            return Err(conflict("safety_override_mode", "needs_second", message));
        }
        Ok(Some(input(PeopleInput::Control { control: Box::new(control), person })))
    }

    /// What an answer of this person would change, as far as that is known before. An answer in a group changes nothing by itself,
    /// and what it would change with the others' would tell what they have answered.
    pub fn preview(&self, serial: u64, bytes: &[u8], person: Person) -> Result<Vec<Change>, Refusal> {
        let question = self.question(serial)?;
        let answer = self.check_answer(question, bytes)?;
        if question.group != 0 {
            return Ok(Vec::new());
        }
        let context = Context::from_bytes(question.kind, &question.context)?;
        Ok(self.changes_of(&answer, &context, person))
    }
}

/// Whether a question is for approvers only.
pub fn needs_approver(question: &Question) -> bool {
    question.kind.needs_approver() || question.flags & ADJUDICATES != 0
}

/// What is shown of a decision.
pub(crate) fn step_context(world: &World, index: u16, decision: u64, cause: u8) -> Option<StepContext> {
    let (step, episode, step_index) = world.decision(decision)?;
    let (candidates, context) = candidates(world, &step.observation, step.action);
    Some(StepContext {
        task: index,
        context_hash: context,
        candidates,
        chosen: step.action,
        reward: step.outcome.map(|outcome| outcome.reward),
        step_index,
        episode,
        decision,
        observation: step.observation,
        bad: step.outcome.is_some_and(|outcome| outcome.bad),
        cause,
    })
}

/// The actions that look best where this is seen, and the one that was taken; and the number of the context.
fn candidates(world: &World, observation: &Bits, chosen: u16) -> (Vec<Candidate>, u64) {
    let (context, bucket) = world.acting().context(observation);
    let mut actions: Vec<u16> = (0..world.spec().shape.actions)
        .filter(|action| *action == chosen || !world.acting().is_forbidden(observation, *action))
        .collect();
    actions.sort_by_key(|action| (bucket.index(usize::from(*action)), *action));
    if let Some(place) =
        actions.iter().position(|action| *action == chosen).filter(|place| CANDIDATES_MAX <= *place)
    {
        actions.swap(place, CANDIDATES_MAX - 1);
    }
    actions.truncate(CANDIDATES_MAX);
    let candidate = |action: u16| {
        let arm = &bucket.arms()[usize::from(action)];
        Candidate {
            action,
            visits: arm.visits - 1,
            mean_loss: Fixed::from_raw((arm.loss_sum / u64::from(arm.visits)) as i64),
            index: Fixed::from_raw(i64::from(bucket.index(usize::from(action))) << 4),
        }
    };
    (actions.into_iter().map(candidate).collect(), u64::from(context))
}

/// What is shown of an episode.
pub(crate) fn episode_context(world: &World, index: u16, recent: &Recent, flags: u32) -> EpisodeContext {
    let returns = &world.statistics().returns;
    let mean = (returns.sum / i128::from(returns.count.max(1))) as i64;
    EpisodeContext {
        episode: recent.first,
        task: index,
        length: recent.length,
        return_env: recent.total,
        return_shaped: recent.total,
        regret: mean - recent.total,
        flags: flags | u32::from(recent.bad),
        steps: recent.steps.clone(),
    }
}

impl Service {
    /// The policy that an approval in this world would put into force, by its content.
    pub(crate) fn held_content(&self, world: WorldIndex) -> Option<(bem_base::digest::Digest, [u64; 2])> {
        let served = self.world(world)?;
        let held = served.standing().held()?;
        let proposed = held.round.acting.digest();
        Some((content(world, &proposed), [short(&served.acting().digest()), short(&proposed)]))
    }

    /// Whether the mode is such that changes of the policy may have to be taken back.
    pub(crate) fn oversees(&self) -> bool {
        self.people.control.safety_override_mode != Mode::Off
    }
}
