//! What people's inputs do: questions move, answers take effect, and are taken back.
//!
//! Every effect is bounded by what the question shows, never by the length of an episode; each number that changes is noted
//! before and after. An approval lets in only what was proven and measured before. Must not know who may do what: that was
//! checked. Clauses: HUM-3, HUM-5 to HUM-9, HUM-11; decisions D-29, D-76 to D-79.

use super::change::{Change, Given, Inverse, Label, UNKNOWN, What};
use super::input::{Ask, PeopleInput};
use super::oversight::content;
use super::preview::{bucket_changes, control_changes};
use super::templates::is_template;
use super::{DRIFT_MAX, Note, Phase};
use crate::book::Published;
use crate::input::WorldIndex;
use crate::round::Brought;
use crate::service::{Effect, Refusal, RefusalKind, Service};
use crate::world::World;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_learn::wide::Advice;
use bem_people::group::{Ballot, Verdict};
use bem_people::kinds::{Decision, Priority, QuestionKind, Skip};
use bem_people::payload::context::{Context, PatchContext};
use bem_people::payload::{Answer, PatchAnswer};
use bem_people::table::{ADJUDICATES, FROM_OUTSIDE, Question, Request};

/// An adjudication is skipped after this many inputs.
const ADJUDICATION_STEPS: u64 = 200_000;

/// Why the inputs of a history contradict each other.
const IMPOSSIBLE: &str = "a people's input that does not fit what was asked";

impl Service {
    /// Lets one of people's inputs take effect.
    pub(crate) fn apply_people(&mut self, input: &PeopleInput, number: u64) -> Result<Effect, &'static str> {
        let person = match input {
            PeopleInput::Ask(ask) => {
                self.take_ask(ask, number)?;
                return Ok(Effect::People);
            }
            PeopleInput::Lease { person, .. }
            | PeopleInput::Answer { person, .. }
            | PeopleInput::Skip { person, .. }
            | PeopleInput::Undo { person, .. }
            | PeopleInput::Control { person, .. } => *person,
            PeopleInput::Release { .. } => 0,
        };
        match input {
            PeopleInput::Ask(_) => {}
            PeopleInput::Lease { question, .. } => {
                let leased =
                    self.people.table.lease(*question, person, number).map_err(|_| IMPOSSIBLE)?.clone();
                self.note(leased, Phase::Updated, number);
            }
            PeopleInput::Release { question, generation, .. } => {
                let released = self.people.table.release(*question, *generation, number);
                let released = released.map_err(|_| IMPOSSIBLE)?.clone();
                self.note(released, Phase::Updated, number);
            }
            PeopleInput::Skip { question, generation, reason, .. } => {
                self.people.table.check_held(*question, *generation, person).map_err(|_| IMPOSSIBLE)?;
                self.skip_question(*question, *reason, number);
            }
            PeopleInput::Answer { question, generation, answer, .. } => {
                let held = self.people.table.check_held(*question, *generation, person);
                let held = held.map_err(|_| IMPOSSIBLE)?.clone();
                let read = self.check_answer(&held, answer).map_err(|_| IMPOSSIBLE)?;
                self.take_answer(held, &read, answer.clone(), number);
            }
            PeopleInput::Undo { answer, .. } => self.take_back_answer(*answer, number)?,
            PeopleInput::Control { control, .. } => {
                control.check().map_err(|_| IMPOSSIBLE)?;
                let before = core::mem::replace(&mut self.people.control, **control);
                let changes = control_changes(&before, control);
                self.moved.push(Note::Changed {
                    answer: 0,
                    question: 0,
                    undone: false,
                    changes,
                    step: number,
                });
            }
        }
        Ok(Effect::People)
    }

    fn note(&mut self, question: Question, phase: Phase, step: u64) {
        let (answer, decision) = (Vec::new(), Decision::Undecided);
        let question = Box::new(question);
        self.moved.push(Note::Moved { question, phase, answer, decision, confirmed: false, step });
    }

    /// Asks; nothing where no place is left, which is counted.
    pub(crate) fn enqueue(&mut self, request: Request, number: u64) -> Option<u64> {
        let people = &mut self.people;
        let asked = people.table.ask(request, number, &people.control, &mut people.counters)?.clone();
        let serial = asked.serial;
        self.note(asked, Phase::Created, number);
        Some(serial)
    }

    fn take_ask(&mut self, ask: &Ask, number: u64) -> Result<(), &'static str> {
        let context = self.context_of(ask).map_err(|_| IMPOSSIBLE)?;
        let deadline = if ask.patience == 0 { 0 } else { number + ask.patience };
        // A group goes by the input with which it was asked.
        let group = if 1 < ask.quorum { number } else { 0 };
        let mut asked = 0;
        for _ in 0..ask.quorum {
            let request = Request {
                kind: ask.kind,
                target: context.target(),
                priority: ask.priority,
                context: context.to_bytes(),
                deadline,
                flags: FROM_OUTSIDE,
                doubt: 0,
                group,
                barred: 0,
            };
            asked += u8::from(self.enqueue(request, number).is_some());
        }
        if group != 0 && 0 < asked {
            self.people.groups.begin(group, asked);
        }
        Ok(())
    }

    /// A question will not be answered; what waits for it is deferred.
    pub(crate) fn skip_question(&mut self, serial: u64, reason: Skip, number: u64) {
        let Some(mut question) = self.people.table.close(serial) else { return };
        self.people.counters.total_tasks_skipped += 1;
        question.updated = number;
        self.settle_skipped(question, reason, number);
    }

    fn settle_skipped(&mut self, question: Question, reason: Skip, number: u64) {
        let (serial, kind, group) = (question.serial, question.kind, question.group);
        self.note(question.clone(), Phase::Skipped(reason), number);
        if kind == QuestionKind::ApprovePatch {
            self.defer(serial, "deferred: nobody has decided", number);
            if let Ok(Context::Patch(shown)) = Context::from_bytes(kind, &question.context)
                && is_template(&shown)
            {
                self.rest_template(WorldIndex(shown.task));
            }
        }
        if group != 0
            && let Some(verdict) = self.people.groups.skip(kind, group, number)
        {
            self.settle_group(&question, verdict, number);
        }
    }

    /// A change that waits for this question is turned down for now.
    fn defer(&mut self, serial: u64, reason: &str, number: u64) {
        let waits = |world: &World| world.standing().held().is_some_and(|held| held.question == serial);
        let Some(index) = self.worlds().find(|(_, world)| waits(world)).map(|(index, _)| index) else {
            return;
        };
        let brought = self.world_mut(index).and_then(|world| world.turn_down(reason, number));
        self.note_published(index, brought);
    }

    pub(crate) fn note_published(&mut self, world: WorldIndex, brought: Option<Brought>) {
        if let Some(brought) = brought {
            let published = Published::of(world, brought, self);
            self.moved.push(Note::Published(Box::new(published)));
        }
    }

    /// Skips what is past its deadline.
    pub(crate) fn maintain(&mut self, number: u64) {
        if !self.people.table.is_late(number) {
            return;
        }
        for mut question in self.people.table.expire(number, &mut self.people.counters) {
            question.updated = number;
            (question.owner, question.generation) = (0, question.generation);
            self.settle_skipped(question, Skip::Deadline, number);
        }
    }

    /// Questions about a world that is gone are skipped.
    pub(crate) fn drop_questions(&mut self, world: WorldIndex, number: u64) {
        let is_about = |question: &Question| {
            let context = Context::from_bytes(question.kind, &question.context).ok();
            context.and_then(|context| context.world()) == Some(world.0)
        };
        let about: Vec<u64> =
            self.people.table.open().filter(|open| is_about(open)).map(|open| open.serial).collect();
        about.into_iter().for_each(|serial| self.skip_question(serial, Skip::Obsolete, number));
    }

    fn take_answer(&mut self, question: Question, answer: &Answer, bytes: Vec<u8>, number: u64) {
        let person = question.owner;
        // What loosens safety waits for a second person who says the same.
        if let Answer::Config(said) = answer {
            let control = self.people.control;
            let loosens = control.is_loosened_by(&control.changed_by(said));
            if loosens && question.first_answer.is_empty() {
                let waiting = self.people.table.wait_for_second(question.serial, bytes, number);
                if let Ok(waiting) = waiting.cloned() {
                    self.note(waiting, Phase::Updated, number);
                }
                return;
            }
            if loosens {
                self.people.loosened.push(number);
                let extra = self.people.loosened.len().saturating_sub(DRIFT_MAX);
                self.people.loosened.drain(..extra);
            }
        }
        let Some(mut closed) = self.people.table.close(question.serial) else { return };
        closed.updated = number;
        self.people.counters.total_tasks_completed += 1;
        self.people.groups.book(person, number);
        let confirmed = !closed.first_answer.is_empty();
        self.moved.push(Note::Moved {
            question: Box::new(closed.clone()),
            phase: Phase::Answered,
            answer: bytes.clone(),
            decision: answer.decision(),
            confirmed,
            step: number,
        });
        self.people.remember(
            number,
            Given {
                question: question.serial,
                kind: question.kind,
                person,
                generation: question.generation,
                answer: bytes.clone(),
                context: question.context.clone(),
                changes: Vec::new(),
                inverse: Inverse::Nothing,
                undone: 0,
            },
        );
        if question.group == 0 {
            self.put_to_use(&closed, answer, (number, bytes), number);
            return;
        }
        let ballot = Ballot { person, category: answer.category(), answer: bytes, number };
        if let Some(verdict) = self.people.groups.answer(question.kind, question.group, ballot) {
            self.settle_group(&closed, verdict, number);
        }
    }

    /// An answer takes effect as that of the question's owner: what it changes is written down with it and can be taken back.
    fn put_to_use(
        &mut self,
        question: &Question,
        answer: &Answer,
        (given, bytes): (u64, Vec<u8>),
        step: u64,
    ) {
        let (serial, decision) = (question.serial, answer.decision());
        let (phase, confirmed) = (Phase::Applied, !question.first_answer.is_empty());
        let moved = Box::new(question.clone());
        self.moved.push(Note::Moved { question: moved, phase, answer: bytes, decision, confirmed, step });
        let (changes, inverse) = self.apply_answer(question, answer, given, step);
        if let Some(given) = self.people.given.get_mut(&given) {
            (given.changes, given.inverse) = (changes.clone(), inverse);
        }
        self.moved.push(Note::Changed { answer: given, question: serial, undone: false, changes, step });
    }

    /// A group is complete, with the answer to this question or without it.
    fn settle_group(&mut self, question: &Question, verdict: Verdict, number: u64) {
        match verdict {
            Verdict::Silent => {}
            Verdict::Conflict => {
                let request = Request {
                    kind: question.kind,
                    target: question.target,
                    priority: Priority::High,
                    context: question.context.clone(),
                    deadline: number + ADJUDICATION_STEPS,
                    flags: ADJUDICATES,
                    doubt: u32::MAX,
                    group: 0,
                    barred: 0,
                };
                self.enqueue(request, number);
            }
            Verdict::Agreed(Ballot { person, answer: bytes, number: given, .. }) => {
                // All questions of a group are the same but for who was asked.
                let mut won = Question { owner: person, ..question.clone() };
                if let Some(Given { question, generation, .. }) = self.people.given.get(&given) {
                    (won.serial, won.generation) = (*question, *generation);
                }
                if let Ok(answer) = Answer::from_bytes(question.kind, &bytes) {
                    self.put_to_use(&won, &answer, (given, bytes), number);
                }
            }
        }
    }

    /// Lets the answer that was given with an input take effect; what changes, and how that is taken back.
    fn apply_answer(
        &mut self,
        question: &Question,
        answer: &Answer,
        given: u64,
        number: u64,
    ) -> (Vec<Change>, Inverse) {
        let person = question.owner;
        let nothing = (Vec::new(), Inverse::Nothing);
        let Ok(context) = Context::from_bytes(question.kind, &question.context) else { return nothing };
        let changes = self.changes_of(answer, &context, person);
        match (answer, &context) {
            (Answer::Step(answer), Context::Step(shown)) => {
                let said = self.advice_of(answer, shown, person);
                self.people.counters.total_step_feedback_used += 1;
                let Some(world) = self.world_mut(WorldIndex(shown.task)) else { return nothing };
                say(world, given, (&shown.observation, shown.step_index), &said);
                (changes, Inverse::Labels(shown.task))
            }
            (Answer::Episode(answer), Context::Episode(shown)) => {
                self.people.counters.total_episode_feedback_used += 1;
                let index = WorldIndex(shown.task);
                let priors = self.world(index).and_then(|world| self.priors_of(world, answer, shown));
                let Some(world) = self.world_mut(index) else { return nothing };
                if let Some((seen, priors)) = priors {
                    say(world, given, (&seen, 0), &priors);
                }
                let Some(recent) =
                    world.standing.recent.iter_mut().find(|recent| recent.first == shown.episode)
                else {
                    return (changes, Inverse::Labels(shown.task));
                };
                let (place, keep) = (recent.place, recent.keep);
                let score = recent.score.map_or(-1, Fixed::to_raw);
                recent.score = Some(answer.score);
                if keep != answer.keep {
                    world.keep_episode(place, answer.keep);
                }
                (changes, Inverse::Episode { world: shown.task, place, keep, score })
            }
            (Answer::Patch(answer), Context::Patch(shown)) => {
                self.people.counters.total_patch_feedback_used += 1;
                let inverse = self.decide_patch(question, answer, shown, number);
                (changes, inverse)
            }
            (Answer::Templates(_), Context::Templates(_)) => {
                self.people.counters.total_template_feedback_used += 1;
                let mut moved = Vec::new();
                for change in &changes {
                    let (before, after) = (Fixed::from_raw(change.before), Fixed::from_raw(change.after));
                    self.people.priors.insert(change.world, after);
                    moved.push((change.world, after.minus(before)));
                }
                (changes, Inverse::Templates(moved))
            }
            (Answer::Config(answer), Context::Config(_)) => {
                self.people.counters.total_config_feedback_used += 1;
                let before = self.people.control;
                self.people.control = before.changed_by(answer);
                (changes, Inverse::Control(Box::new(before)))
            }
            _ => nothing,
        }
    }

    fn decide_patch(
        &mut self,
        question: &Question,
        answer: &PatchAnswer,
        shown: &PatchContext,
        number: u64,
    ) -> Inverse {
        let (index, decision) = (WorldIndex(shown.task), answer.decision);
        if is_template(shown) {
            return self.decide_template(decision, shown);
        }
        if shown.in_force {
            let Some(world) = self.world(index) else { return Inverse::Nothing };
            let policy = content(index, &world.acting.digest());
            let before = self.people.judgement(&policy);
            match decision {
                Decision::Approve => self.people.judge(policy, true),
                Decision::Reject => {
                    self.people.judge(policy, false);
                    let back = self.world_mut(index);
                    let brought = back.and_then(|world| world.take_back("a person has rejected it", number));
                    self.note_published(index, brought);
                }
                _ => return Inverse::Nothing,
            }
            // What was taken back with a rejection is not put into force again by undoing it, but may come in again.
            return Inverse::Judgement { policy, before };
        }
        let Some((policy, _)) = self.held_content(index) else { return Inverse::Nothing };
        let Some(world) = self.world_mut(index) else { return Inverse::Nothing };
        let is_own = world.standing.held().is_some_and(|held| held.question == question.serial);
        if !is_own {
            return Inverse::Nothing;
        }
        let brought = match decision {
            Decision::Approve => world.approve(number),
            Decision::Reject => world.turn_down("a person has rejected it", number),
            _ => world.turn_down("a person has deferred it", number),
        };
        match decision {
            Decision::Approve => self.people.judge(policy, true),
            Decision::Reject => self.people.judge(policy, false),
            _ => {}
        }
        self.note_published(index, brought);
        Inverse::Patch { world: shown.task, decision, policy }
    }

    /// Whether an answer can be taken back now.
    pub(crate) fn check_inverse(&self, given: &Given) -> Result<(), Refusal> {
        let refuse = |message: &str| {
            Err(Refusal::new(RefusalKind::Conflict, "answer", "cannot_be_undone", message.to_string()))
        };
        match &given.inverse {
            Inverse::Nothing => {
                refuse("the answer changed nothing by itself: it is one of a group, or about what is gone")
            }
            Inverse::Patch { world, decision: Decision::Approve, policy }
                if !self.names_template(*world, policy) =>
            {
                let world = WorldIndex(*world);
                let Some(served) = self.world(world) else { return refuse("the world is gone") };
                let is_in_force = content(world, &served.acting.digest()) == *policy;
                if !is_in_force || !served.standing().can_be_taken_back() {
                    return refuse("the policy has changed since: approve or reject the later change");
                }
                if served.is_searching() || served.standing().held().is_some() {
                    return refuse("a round of learning is under way in this world: try again in a moment");
                }
                Ok(())
            }
            Inverse::Control(before) => {
                let changed = Answer::from_bytes(QuestionKind::AdjustConfig, &given.answer);
                let is_latest = match changed {
                    Ok(Answer::Config(answer)) => before.changed_by(&answer) == self.people.control,
                    _ => false,
                };
                if !is_latest {
                    return refuse("the configuration has changed since");
                }
                if self.people.control.is_loosened_by(before) {
                    return refuse("taking this back would loosen safety: ask a configuration question");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_back_answer(&mut self, answer: u64, number: u64) -> Result<(), &'static str> {
        let given = self.people.given.get(&answer).ok_or(IMPOSSIBLE)?.clone();
        if given.undone != 0 || self.check_inverse(&given).is_err() {
            return Err(IMPOSSIBLE);
        }
        let changes = match &given.inverse {
            Inverse::Nothing => Vec::new(),
            Inverse::Labels(world) => self.unsay(*world, answer),
            Inverse::Episode { world, place, .. } => {
                let mut changes = self.unsay(*world, answer);
                let (keep, score) = self.said_of_episode(*world, *place, answer);
                if let Some(served) = self.world_mut(WorldIndex(*world))
                    && let Some(recent) = served.standing.by_place(*place)
                {
                    recent.score = score;
                    if recent.keep != keep {
                        served.keep_episode(*place, keep);
                    }
                }
                let episode = |change: &&Change| matches!(change.what, What::Return | What::Keep);
                changes.extend(given.changes.iter().filter(episode).map(|change| change.reversed()));
                changes
            }
            Inverse::Patch { world, decision, policy } => {
                let (index, mut changes) = (WorldIndex(*world), Vec::new());
                match decision {
                    Decision::Approve if self.names_template(*world, policy) => {
                        self.people.approved.remove(policy);
                        changes = given.changes.iter().map(|change| change.reversed()).collect();
                    }
                    Decision::Approve => {
                        self.people.approved.remove(policy);
                        let served = self.world_mut(index);
                        let brought =
                            served.and_then(|world| world.take_back("its approval was taken back", number));
                        if brought.is_some() {
                            changes = given.changes.iter().map(|change| change.reversed()).collect();
                        }
                        self.note_published(index, brought);
                    }
                    Decision::Reject => drop(self.people.rejected.remove(policy)),
                    _ => {}
                }
                changes
            }
            Inverse::Judgement { policy, before } => {
                self.people.forget_judgement(policy);
                if let Some(is_approved) = before {
                    self.people.judge(*policy, *is_approved);
                }
                Vec::new()
            }
            Inverse::Templates(moved) => {
                let mut changes = Vec::new();
                for (world, by) in moved {
                    let before = self.people.prior(*world);
                    let after = before.minus(*by);
                    self.people.priors.insert(*world, after);
                    if after == Fixed::ZERO {
                        self.people.priors.remove(world);
                    }
                    let (before, after) = (before.to_raw(), after.to_raw());
                    let (what, world) = (What::Template, *world);
                    changes.push(Change { what, world, place: 0, action: 0, before, after });
                }
                changes
            }
            Inverse::Control(before) => {
                let now = core::mem::replace(&mut self.people.control, **before);
                control_changes(&now, before)
            }
        };
        self.people.counters.total_answers_undone += 1;
        if let Some(given) = self.people.given.get_mut(&answer) {
            given.undone = number;
        }
        let question = given.question;
        self.moved.push(Note::Changed { answer, question, undone: true, changes, step: number });
        Ok(())
    }

    /// What the latest answer about an episode says of it that is in force, without this one: whether it is learned from, and its
    /// score.
    fn said_of_episode(&self, world: u16, place: u64, without: u64) -> (u8, Option<Fixed>) {
        let is_about = |given: &Given| matches!(given.inverse, Inverse::Episode { world: of, place: at, .. } if of == world && at == place);
        let in_force = self.people.given.iter().rev();
        let mut in_force = in_force.filter(|(number, given)| **number != without && given.undone == 0);
        let latest = in_force.find(|(_, given)| is_about(given)).map(|(_, given)| &given.answer);
        match latest.map(|answer| Answer::from_bytes(QuestionKind::ScoreEpisode, answer)) {
            Some(Ok(Answer::Episode(said))) => (said.keep, Some(said.score)),
            _ => (1, None),
        }
    }

    /// Takes the labels of an answer back; what that changes.
    fn unsay(&mut self, world: u16, answer: u64) -> Vec<Change> {
        let Some(served) = self.world_mut(WorldIndex(world)) else { return Vec::new() };
        let own = served.standing.labels.iter().filter(|label| label.answer == answer);
        let (seen, actions): (Vec<Bits>, Vec<u16>) =
            own.map(|label| (label.observation, label.action)).unzip();
        let Some(seen) = seen.first().copied() else { return Vec::new() };
        let before = served.acting.context(&seen).1.clone();
        served.unsay(answer);
        let (place, after) = served.acting.context(&seen);
        bucket_changes((world, u32::from(place)), &before, after, &actions)
    }
}

/// Puts what was said into force.
fn say(world: &mut World, number: u64, (seen, time): (&Bits, u32), said: &[(u16, Advice)]) {
    let label = |(action, advice): &(u16, Advice)| {
        let (place, bucket) = world.acting.context(seen);
        let is_same =
            |other: &Label| other.action == *action && world.acting.context(&other.observation).0 == place;
        let before = match !world.standing.labels.iter().any(is_same) {
            true => (bucket.selections_total(), bucket.index(usize::from(*action))),
            false => UNKNOWN,
        };
        Label { answer: number, observation: *seen, action: *action, time, advice: *advice, before }
    };
    let labels = said.iter().map(label).collect();
    world.say(labels);
}
