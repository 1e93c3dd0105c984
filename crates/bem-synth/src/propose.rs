//! The whole search: from experience to a short list of hypotheses, shortest explanations first.
//!
//! Order: answers as functions of the observation; reward models per action; then memory structures, each with
//! the same functions; then state machines. Everything is bounded in counted work. Must not know games.
//! Clauses: SCC-2; decisions D-34, D-35.

use crate::credit::Credit;
use crate::experience::{Episode, Experience, Step};
use crate::function::{self, Function};
use crate::functions;
use crate::hypothesis::{Hypothesis, Stated, assemble};
use crate::labels::{self, Answers, Common};
use crate::lens::Lens;
use crate::library::Machine;
use crate::memory::{self, Device};
use crate::models::control::memory_search::RECALL_WORK;
use crate::models::control::{Explorer, PlannedControl, fitted};
use crate::models::{graded, joint, levels, linear, mealy, means, reward};
use crate::policy::{Player, Policy, action_bits};
use crate::samples::{Queries, Row, Work};
use crate::view::View;
use bem_base::digest::Digest;
use bem_base::environment::{Bits, Forbidden, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the search may use: switches for ablation, and how much work it may spend.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Memory structures and state machines are tried.
    pub memory: bool,
    /// Later rewards are credited to the decisions that they depend on.
    pub credit: bool,
    /// Word operations of one call.
    pub work: u64,
    /// The most recent steps looked at.
    pub steps_max: usize,
    /// What one query for a smallest circuit may take.
    pub queries: Queries,
    /// Nothing is proposed that counts steps.
    pub stationary: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory: true,
            credit: true,
            work: 400_000_000,
            steps_max: 64_000,
            queries: Queries::DEFAULT,
            stationary: false,
        }
    }
}

/// Steps of an episode that count as its beginning, and episodes whose beginnings are compared.
const BEGINNING: usize = 3;
const BEGINNINGS_MAX: usize = 4_000;

/// Answers kept from fitting without which an explanation that reads its own actions is not borne out.
const KEPT_RIGHT_MIN: usize = 8;

/// The most recent steps that memory structures are run over.
const MEMORY_STEPS_MAX: usize = 24_000;
/// Before that they are run over short ends of a longer log: on all of it the work may be spent before the one is reached that
/// explains it.
const GLANCE_STEPS: [usize; 2] = [1_024, 4_096];

/// A closer look may spend one part in as many of a whole search's work.
const CLOSER_SHARE: u64 = 8;
/// Episodes that are fitted before memory is tried: steps of one episode are no independent evidence.
const REMEMBERED_MIN: usize = 6;

/// So many wrong answers fewer are no chance.
const CLEARLY: usize = 6;

/// Shares of wrong labels that are tried in turn.
const TOLERANCES: [usize; 3] = [0, 4, 12];
/// The same in worlds of one step in which every reward says which of two answers is right.
const TOLERANCES_TOLD: [usize; 4] = [0, 4, 12, 24];

/// Searches the grammar for what explains this experience, where these actions are forbidden and so much is known by an explorer.
#[doc(alias = "SYNTH")]
pub fn propose(
    shape: &Shape,
    experience: &Experience,
    forbidden: &[Forbidden],
    known: Option<&Explorer>,
    settings: &Settings,
) -> Proposal {
    let episodes = recent(experience, settings.steps_max);
    let queries = settings.queries;
    let mut work = Work::with_queries(settings.work, queries);
    let mut search =
        Proposing { shape, experience, forbidden, queries, provenance: None, list: Vec::new(), spent: 0 };
    let all: Vec<&Episode> = experience.episodes().collect();
    let mut means = Work::new(RECALL_WORK);
    let planned = PlannedControl::of(shape, &all, known, settings.stationary, &mut means);
    let explorer = planned.map(|planned| search.plan(planned));
    search.spent += RECALL_WORK - means.left();
    // Plans look ahead where actions change what is seen; elsewhere later rewards are credited to earlier decisions.
    let mut credit = None;
    if explorer.is_none() && settings.credit {
        search.within(settings.work / CLOSER_SHARE, |search, work| {
            credit = search.give_credit(&episodes, work);
            credit.is_some()
        });
    }
    let credited = if credit.is_some() { core::mem::take(&mut search.list) } else { Vec::new() };
    match credit {
        None => search.look(&episodes, settings, explorer.is_some(), &mut work),
        // Where credit is due, the rewards of single steps say little: they get a closer look's means.
        Some(_) => {
            search.within(settings.work / CLOSER_SHARE, |search, work| search.explain_now(&episodes, work));
        }
    }
    if explorer.is_none() && credit.is_none() && !search.is_explained(&episodes) {
        search.within(settings.work / 2, |search, work| search.fit_values(&episodes, work));
    }
    // What explains everything makes what has exceptions pointless; what looks ahead stays beside it.
    if search.list.iter().any(|hypothesis| hypothesis.exact) {
        search.list.retain(|hypothesis| hypothesis.exact || hypothesis.predicted.is_some());
    }
    // What is credited comes first, but after what explains every single reward.
    let first = search.list.iter().position(|hypothesis| !hypothesis.exact).unwrap_or(search.list.len());
    search.list.splice(first..first, credited);
    Proposal { explorer, credit, work: settings.work - work.left() + search.spent, hypotheses: search.list }
}

/// What explains rows of one step each as functions of the observation, within this much work; shortest tolerance first.
pub(crate) fn explain_alone(
    shape: &Shape,
    rows: &Experience,
    units: u64,
    queries: Queries,
) -> Vec<Hypothesis> {
    let (forbidden, provenance, list) = (&[][..], None, Vec::new());
    let mut search = Proposing { shape, experience: rows, forbidden, queries, provenance, list, spent: 0 };
    let episodes: Vec<&Episode> = rows.episodes().collect();
    search.explain_now(&episodes, &mut Work::with_queries(units, queries));
    search.list
}

/// What a search brings.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// Hypotheses that explain the experience, in the order they should be tried.
    pub hypotheses: Vec<Hypothesis>,
    /// Where actions change what is seen: what plays for knowledge.
    pub explorer: Option<Explorer>,
    /// Which later rewards depend on which decisions, where some do and no plan looks ahead.
    pub credit: Option<Credit>,
    /// Word operations that it took.
    pub work: u64,
}

/// The last of these episodes, with at most this many steps.
fn latest<'a, 'e>(episodes: &'a [&'e Episode], steps_max: usize) -> &'a [&'e Episode] {
    let mut left = steps_max;
    let fits = |episode: &&&Episode| {
        let fits = episode.steps.len() <= left;
        left = left.saturating_sub(episode.steps.len());
        fits
    };
    let count = episodes.iter().rev().take_while(fits).count();
    &episodes[episodes.len() - count..]
}

/// The latest episodes with at most this many steps.
pub fn recent(experience: &Experience, steps_max: usize) -> Vec<&Episode> {
    experience.latest(steps_max)
}

struct Proposing<'a> {
    shape: &'a Shape,
    experience: &'a Experience,
    /// What the log cannot show, because it is never tried; in the order of what is seen.
    forbidden: &'a [Forbidden],
    queries: Queries,
    provenance: Option<Digest>,
    list: Vec<Hypothesis>,
    /// Work of closer looks, which have means of their own.
    spent: u64,
}

impl Proposing<'_> {
    /// The whole search over the log as it is, then through lenses as long as nothing explains it. In worlds of chance,
    /// and where actions change what is seen, there is nothing that a closer look could explain.
    fn look(&mut self, episodes: &[&Episode], settings: &Settings, controlled: bool, work: &mut Work) {
        let closer = settings.work / CLOSER_SHARE;
        let view = View::new(self.shape, episodes, None).map(|view| view.forbidding(self.forbidden));
        let is_explained = view.as_ref().is_some_and(|view| self.explain(view, None, work));
        if !controlled && let Some(view) = &view {
            // Where some action earns the most almost always, what says which one is all there is to know.
            let is_all = is_asked_always(self.shape, episodes) && self.is_explained(episodes);
            if !is_all && self.within(closer, |search, work| search.grade(view, work)) {
                return;
            }
            if !is_explained {
                self.within(closer, |search, work| search.weigh(view, work) || search.compare(view, work));
            }
        }
        if is_explained {
            return;
        }
        let remembers = settings.memory && 1 < self.shape.horizon;
        let latest = latest(episodes, MEMORY_STEPS_MAX);
        let known = self.list.len();
        if remembers && self.within(closer, |search, work| search.glance(latest, work)) {
            return;
        }
        // A machine with one wrong edge is right almost everywhere: what a short end says of nearly all comes after what
        // the longer log says, which contradicts it.
        let nearly = self.list.len() - known;
        if remembers && self.remember(latest, work) {
            self.list[known..].rotate_left(nearly);
            return;
        }
        if 0 < nearly {
            return;
        }
        if controlled && remembers && is_asked_always(self.shape, latest) {
            self.within(closer, |search, work| search.follow(latest, work));
        }
        if controlled || by_chance(episodes) {
            return;
        }
        if remembers && self.within(closer, |search, work| search.remember_two(latest, work)) {
            return;
        }
        // Where no groups are declared, the search above looked at the wrong thing and this one gets the means.
        for lens in [Lens::grouped(self.shape, episodes), Lens::paired(self.shape, episodes)] {
            let Some(lens) = lens else { continue };
            let look =
                |search: &mut Self, work: &mut Work| search.look_through(&lens, episodes, settings, work);
            if self.within(settings.work / 2, look) {
                return;
            }
        }
        if remembers && let Some(lens) = Lens::own_action(self.shape) {
            self.within(closer, |search, work| search.look_through(&lens, latest, settings, work));
        }
    }

    /// Adds the state machine that moves by what is seen and by what was done before; true when there is one.
    fn follow(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        let Some(lens) = Lens::own_action(self.shape) else { return false };
        let shape = lens.shape(self.shape);
        let seen: Vec<Episode> = episodes.iter().map(|episode| lens.see(episode)).collect();
        let seen: Vec<&Episode> = seen.iter().collect();
        let found = mealy::fit(&shape, &seen, work)
            .filter(|(stated, _, _)| is_borne_out(&stated.policy, &seen))
            .and_then(|(stated, length, words)| Some((self.restore(&lens, stated)?, length, words)));
        let Some((stated, length, words)) = found else { return false };
        self.add(stated, None, format!("{words}, with {}", lens.words()), length, true);
        self.predict_the_most();
        true
    }

    /// Whether something explains nearly all highest rewards that were kept from fitting.
    fn is_explained(&self, episodes: &[&Episode]) -> bool {
        self.list.iter().any(|hypothesis| hypothesis.exact && is_borne_out(&hypothesis.policy, episodes))
    }

    /// Adds a policy by fitted values where actions change what is seen; it explains nothing and has to be measured.
    fn fit_values(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        let Some((stated, length, words)) = fitted::fit(self.shape, episodes, work) else { return false };
        self.add(stated, None, words, length, false);
        self.list.last_mut().expect("just added").predicted = Some(0);
        false
    }

    /// Adds what explains labelled decisions, to a list that is empty. It explains no single step and has to be measured.
    fn give_credit(&mut self, episodes: &[&Episode], work: &mut Work) -> Option<Credit> {
        let credit = Credit::of(self.shape, episodes, work)?;
        let decisions: Vec<&Episode> = credit.decisions().iter().collect();
        let shape = credit.shape(self.shape);
        if let Some((stated, length, words)) = credit.table(self.shape) {
            self.add(stated, None, words, length, false);
        }
        if let Some(view) = View::new(&shape, &decisions, None) {
            let known = self.list.len();
            self.explain(&view, None, work);
            let is_exact = self.list[known..].iter().any(|hypothesis| hypothesis.exact);
            if !is_exact {
                self.weigh(&view, work);
            }
        }
        for hypothesis in &mut self.list {
            (hypothesis.exact, hypothesis.predicted) = (false, Some(self.shape.return_max));
        }
        Some(credit)
    }

    /// What was added last cannot be judged by the highest rewards in the log, because it reads its own actions, which are not
    /// those of the log, or because it is about lower rewards too. Only what it is worth by its own explanation can be said.
    fn predict_the_most(&mut self) {
        let last = self.list.last_mut().expect("called after something was added");
        last.predicted = Some(self.shape.return_max);
    }

    /// A closer look with means of its own.
    fn within(&mut self, units: u64, look: impl FnOnce(&mut Self, &mut Work) -> bool) -> bool {
        let mut work = Work::with_queries(units, self.queries);
        let found = look(self, &mut work);
        self.spent += units - work.left();
        found
    }

    /// The same search in the world that a lens shows; true when something explained it without exceptions.
    fn look_through(
        &mut self,
        lens: &Lens,
        episodes: &[&Episode],
        settings: &Settings,
        work: &mut Work,
    ) -> bool {
        let shape = lens.shape(self.shape);
        let seen: Vec<Episode> = episodes.iter().map(|episode| lens.see(episode)).collect();
        let seen: Vec<&Episode> = seen.iter().collect();
        let mut inner = Proposing {
            queries: self.queries,
            shape: &shape,
            experience: self.experience,
            // What is forbidden is said of what is seen without it.
            forbidden: &[],
            provenance: self.provenance,
            list: Vec::new(),
            spent: 0,
        };
        if !inner.explain_now(&seen, work) && settings.memory && 1 < shape.horizon {
            inner.remember(latest(&seen, MEMORY_STEPS_MAX), work);
        }
        self.provenance = inner.provenance;
        let mut explained = false;
        for hypothesis in inner.list {
            let Hypothesis { policy, statement: Some(statement), .. } = &hypothesis else { continue };
            let inner = Stated { policy: policy.clone(), statement: statement.clone() };
            let Some(stated) = self.restore(lens, inner) else { continue };
            explained |= hypothesis.exact;
            let words = format!("{}, with {}", hypothesis.words, lens.words());
            self.add(stated, None, words, hypothesis.description_length, hypothesis.exact);
            if hypothesis.exact && lens.shows_actions() && is_borne_out(&hypothesis.policy, &seen) {
                self.predict_the_most();
            }
        }
        explained
    }

    /// Adds what explains the log without memory; true when something did without exceptions.
    fn explain_now(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        View::new(self.shape, episodes, None).is_some_and(|view| self.explain(&view, None, work))
    }

    /// Adds what explains how much every action earns, where there is more to it than earning the most or less; true when
    /// something did.
    fn grade(&mut self, view: &View, work: &mut Work) -> bool {
        let Some((stated, length, words)) = graded::fit(self.shape, view, work) else { return false };
        self.add(stated, None, words, length, true);
        // The highest rewards alone, which screens count, say little about it; it was held against all of them. Where
        // episodes go on, what is earned at once may not be what counts, and screens decide.
        if self.shape.horizon == 1 {
            self.predict_the_most();
        }
        true
    }

    /// Adds weighted sums of bits; they explain nothing without exceptions.
    fn weigh(&mut self, view: &View, work: &mut Work) -> bool {
        if let Some((stated, length, words)) = linear::fit(self.shape, view, work) {
            self.add(stated, None, words, length, false);
        }
        false
    }

    /// Adds sums of comparisons of numbers; they explain nothing without exceptions.
    fn compare(&mut self, view: &View, work: &mut Work) -> bool {
        if let Some((stated, length, words)) = levels::fit(self.shape, view, work) {
            self.add(stated, None, words, length, false);
        }
        false
    }

    /// Adds what explains one view; true when something did without exceptions.
    fn explain(&mut self, view: &View, structure: Option<&Arc<dyn Device>>, work: &mut Work) -> bool {
        let device = structure.map(Arc::as_ref);
        let (every, positive) = (labels::complemented(view), labels::positive(view));
        // Over several steps a step may ask nothing.
        let is_told = every.is_some() && self.shape.horizon == 1;
        let shares = if is_told { &TOLERANCES_TOLD[..] } else { &TOLERANCES };
        for tolerance in shares.iter().copied() {
            let positive = [&positive].into_iter().filter(|_| TOLERANCES.contains(&tolerance));
            for answers in every.iter().chain(positive) {
                if let Some(found) = fit_answers(view, answers, tolerance, shares, work) {
                    // What acts earns by its own answers, so that the highest rewards alone bear it out for ever.
                    let told = every.as_ref().filter(|_| !answers.complemented);
                    let mended = told.and_then(|told| fit_better(view, told, &found, shares, work));
                    let is_exact = tolerance == 0 && mended.is_none();
                    let bits = mended.unwrap_or(found);
                    let Some(stated) = assemble(self.shape, device, &bits) else { continue };
                    let mut words: Vec<String> = bits.iter().map(|function| function.words.clone()).collect();
                    words.dedup();
                    let length = bits.iter().map(|function| function.description_length).sum();
                    self.add(stated, device, words.join("; "), length, is_exact);
                    if let Some(structure) = structure {
                        self.abstract_last(|shape, about| {
                            Machine::structure(shape, structure.clone(), bits, about)
                        });
                    }
                    return is_exact;
                }
            }
            // With two actions the answers above already say what every reward says.
            if every.is_some() {
                continue;
            }
            if tolerance == 0
                && let Some((stated, length, words)) = joint::fit(self.shape, view, device, work)
                && self.pays(view, &stated.policy)
            {
                self.add(stated, device, words, length, true);
                return true;
            }
            if let Some((stated, length, words)) = reward::fit(self.shape, view, device, tolerance, work)
                && (0 < tolerance || self.pays(view, &stated.policy))
            {
                self.add(stated, device, words, length, tolerance == 0);
                return tolerance == 0;
            }
        }
        false
    }

    /// Whether, in worlds of one step, what the policy would do was paid in the steps that were kept from fitting, as
    /// far as there are enough to tell.
    fn pays(&self, view: &View, policy: &Policy) -> bool {
        if 1 < self.shape.horizon {
            return true;
        }
        let top = view.top();
        let mut player = Player::new(policy);
        let (mut paid, mut unpaid) = (0, 0);
        for record in view.told().filter(|record| record.screen) {
            if player.act(&record.row.to_observation()) == record.action {
                paid += usize::from(record.reward == top);
                unpaid += usize::from(record.reward < top);
            }
        }
        function::are_few(unpaid, paid + unpaid, 0)
    }

    /// Adds what memory structures explain of a short end of these episodes, if it holds for nearly all of them; true
    /// when it holds for all.
    fn glance(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        let known = self.list.len();
        for steps in GLANCE_STEPS {
            let end = latest(episodes, steps);
            if end.len() == episodes.len() {
                return false;
            }
            let nearly = self.list.len();
            let is_found = self.remember(end, work);
            let found = self.list.split_off(nearly);
            let exact = || found.iter().filter(|hypothesis| hypothesis.exact);
            if is_found && exact().any(|hypothesis| is_borne_out(&hypothesis.policy, episodes)) {
                let is_all =
                    exact().any(|hypothesis| is_never_wrong(self.shape, &hypothesis.policy, episodes));
                self.list.truncate(known);
                self.list.extend(found);
                if is_all {
                    return true;
                }
            }
        }
        false
    }

    /// Adds what memory structures explain; true when something did without exceptions.
    fn remember(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        if episodes.iter().filter(|episode| !episode.is_screen()).count() < REMEMBERED_MIN {
            return false;
        }
        let Some(view) = View::new(self.shape, episodes, None) else { return false };
        let answers = labels::complemented(&view).unwrap_or_else(|| labels::positive(&view));
        for device in memory::search::table_candidates(self.shape, episodes) {
            if self.explain_with(&device, episodes, work) {
                return true;
            }
        }
        for device in memory::search::candidates(self.shape, episodes, &view, &answers, work) {
            if self.explain_with(&device, episodes, work) {
                return true;
            }
        }
        if let Some((stated, length, words)) = mealy::fit(self.shape, episodes, work) {
            self.add(stated, None, words, length, true);
            return true;
        }
        for device in memory::sticky_search::sticky_candidates(self.shape, episodes, view.top(), work) {
            if self.explain_with(&device, episodes, work) {
                return true;
            }
        }
        for device in memory::search::tape_candidates(self.shape, episodes, &view, &answers) {
            if self.explain_with(&device, episodes, work) {
                return true;
            }
        }
        for length in 1..=2 {
            let delay = memory::delay::Delay { fields: self.shape.fields.clone(), length };
            if let Some(view) = View::new(self.shape, episodes, Some(&delay))
                && let Some((stated, length, words)) = means::fit(self.shape, &view, Some(&delay))
            {
                self.add(stated, Some(&delay), words, length, false);
            }
        }
        false
    }

    /// Adds what two structures side by side explain; true when something did without exceptions.
    fn remember_two(&mut self, episodes: &[&Episode], work: &mut Work) -> bool {
        let Some(view) = View::new(self.shape, episodes, None) else { return false };
        let answers = labels::complemented(&view).unwrap_or_else(|| labels::positive(&view));
        let pairs = memory::search::pair_candidates(self.shape, episodes, &view, &answers, work);
        pairs.iter().any(|device| self.explain_with(device, episodes, work))
    }

    fn explain_with(&mut self, device: &Arc<dyn Device>, episodes: &[&Episode], work: &mut Work) -> bool {
        if !work.spend(View::cost(self.shape, episodes, device.as_ref())) {
            return false;
        }
        match View::new(self.shape, episodes, Some(device.as_ref())) {
            Some(view) => self.explain(&view, Some(device), work),
            None => false,
        }
    }

    /// Adds the best plan in the counted model.
    fn plan(&mut self, planned: PlannedControl) -> Explorer {
        if let Some(stated) = planned.stated {
            self.add(stated, None, planned.words, planned.states as u32, false);
            self.list.last_mut().expect("just added").predicted = Some(planned.predicted);
        }
        planned.explorer
    }

    /// A policy through a lens as one for this world, with what it says; none if a bound is exceeded.
    fn restore(&self, lens: &Lens, inner: Stated) -> Option<Stated> {
        let policy = lens.restore(self.shape, &inner.policy)?;
        Some(Stated { policy, statement: lens.state(inner.statement) })
    }

    fn add(&mut self, stated: Stated, device: Option<&dyn Device>, words: String, length: u32, exact: bool) {
        let words = match device {
            Some(device) => format!("{} and {words}", device.words()),
            None => words,
        };
        let description_length = length + device.map_or(0, Device::description_length);
        let machine = device
            .is_none()
            .then(|| Machine::circuit(self.shape, stated.clone(), (words.clone(), description_length)));
        let provenance = *self.provenance.get_or_insert_with(|| self.experience.digest());
        let Stated { policy, statement } = stated;
        self.list.push(Hypothesis {
            policy,
            statement: Some(statement),
            words,
            description_length,
            exact,
            predicted: None,
            provenance,
            machine,
        });
    }

    /// Keeps the abstract machine of what was added last.
    fn abstract_last(&mut self, make: impl FnOnce(&Shape, (String, u32)) -> Machine) {
        let last = self.list.last_mut().expect("called after something was added");
        last.machine = Some(make(self.shape, (last.words.clone(), last.description_length)));
    }
}

/// Whether hardly any action that earned the highest reward, in the episodes kept from fitting, differs from the
/// policy's.
fn is_borne_out(policy: &Policy, episodes: &[&Episode]) -> bool {
    let (mut missed, mut highest) = (0, 0);
    for (action, step, top) in kept_answers(policy, episodes) {
        highest += usize::from(step.reward == top);
        missed += usize::from(step.reward == top && step.action != action);
    }
    KEPT_RIGHT_MIN <= highest && 50 * missed <= highest
}

/// Whether the policy's action is, in the episodes kept from fitting, every one that earned the highest reward, and none that
/// earned less where a row asks for an answer.
fn is_never_wrong(shape: &Shape, policy: &Policy, episodes: &[&Episode]) -> bool {
    let asked = View::new(shape, episodes, None).and_then(|view| Common::of(&view));
    let is_asked =
        |step: &Step| asked.is_some_and(|asked| asked.holds(&Row::from_observation(&step.observation)));
    kept_answers(policy, episodes).into_iter().all(|(action, step, top)| match step.reward == top {
        true => step.action == action,
        false => step.action != action || !is_asked(step),
    })
}

/// The policy's action at every step of the episodes kept from fitting, and the highest reward of all.
fn kept_answers<'e>(policy: &Policy, episodes: &[&'e Episode]) -> Vec<(u16, &'e Step, i32)> {
    let kept: Vec<&Episode> = episodes.iter().copied().filter(|episode| episode.is_screen()).collect();
    let steps = || kept.iter().flat_map(|episode| &episode.steps);
    let top = steps().map(|step| step.reward).max().unwrap_or(0);
    let wanted = policy.replay(kept.iter().copied());
    wanted.into_iter().flatten().zip(steps()).map(|(action, step)| (action, step, top)).collect()
}

/// Whether about one action in all earns the highest reward at every step: then there is nothing to look ahead for.
fn is_asked_always(shape: &Shape, episodes: &[&Episode]) -> bool {
    let steps = || episodes.iter().flat_map(|episode| &episode.steps);
    let top = steps().map(|step| step.reward).max().unwrap_or(0);
    let highest = steps().filter(|step| step.reward == top).count();
    steps().count() <= 2 * usize::from(shape.actions) * highest
}

/// Whether the same beginning, own actions included, often brings different rewards: then chance decides.
fn by_chance(episodes: &[&Episode]) -> bool {
    let mut outcomes: BTreeMap<Vec<(Bits, u16)>, [u32; 2]> = BTreeMap::new();
    let top = episodes.iter().flat_map(|episode| &episode.steps).map(|step| step.reward).max().unwrap_or(0);
    for episode in episodes.iter().rev().take(BEGINNINGS_MAX) {
        let lived = episode.steps.iter().take(BEGINNING).map(|step| (step.observation, step.action));
        let lived: Vec<(Bits, u16)> = lived.collect();
        for (time, step) in episode.steps.iter().take(BEGINNING).enumerate() {
            let outcome = outcomes.entry(lived[..=time].to_vec()).or_default();
            outcome[usize::from(step.reward == top)] += 1;
        }
    }
    let repeated = || outcomes.values().filter(|[lower, highest]| 4 <= lower + highest);
    let all: u32 = repeated().flatten().sum();
    let rarer: u32 = repeated().map(|[lower, highest]| lower.min(highest)).sum();
    40 <= all && 15 * all < 100 * rarer
}

/// Whether the functions are right on what was kept from fitting, as far as enough was kept to tell. What is not is
/// no explanation, and the search goes on.
fn holds_up(view: &View, answers: &Answers, bits: &[Function], tolerance: usize) -> bool {
    bits.iter()
        .enumerate()
        .all(|(bit, function)| function.holds_up(&answers.samples(view, bit, true, 0), 2 * tolerance))
}

/// Functions that explain all answers with exceptions, where clearly fewer of those kept from fitting are wrong than by these.
fn fit_better(
    view: &View,
    told: &Answers,
    than: &[Function],
    shares: &[usize],
    work: &mut Work,
) -> Option<Vec<Function>> {
    let wrong = |bits: &[Function]| -> usize {
        let of = |(bit, function): (usize, &Function)| function.errors(&told.samples(view, bit, true, 0));
        bits.iter().enumerate().map(of).sum()
    };
    let most = wrong(than).checked_sub(CLEARLY)?;
    let wide = shares.iter().copied().filter(|share| 0 < *share);
    let mut found = wide.filter_map(|share| fit_answers(view, told, share, shares, work));
    found.find(|found| wrong(found) <= most)
}

/// One function per bit of the action code that explains the answers but for this share of exceptions and holds up, or none if
/// some bit is not explained.
///
/// Where exceptions are allowed, a long description that leaves few of them says less than a short one that leaves more: what
/// the next wider of these shares brings is taken where it is shorter, exceptions counted.
fn fit_answers(
    view: &View,
    answers: &Answers,
    tolerance: usize,
    shares: &[usize],
    work: &mut Work,
) -> Option<Vec<Function>> {
    let wider = shares.iter().copied().find(|wider| 0 < tolerance && tolerance < *wider);
    let fit = |bit| {
        let mut at = |tolerance| {
            let samples = answers.samples(view, bit, false, tolerance);
            // Gathering rows into columns is work too.
            if !work.spend((samples.observations * 8 + samples.len() * samples.width) as u64) {
                return None;
            }
            let function = functions::fit(&samples, work)?;
            Some((function.length_with_exceptions(&samples), function))
        };
        let found = at(tolerance)?;
        let wider = wider.and_then(at).filter(|wider| wider.0 < found.0);
        Some(wider.unwrap_or(found).1)
    };
    let bits: Option<Vec<Function>> = (0..action_bits(view.actions)).map(fit).collect();
    bits.filter(|bits| holds_up(view, answers, bits, tolerance))
}

#[cfg(test)]
mod tests;
