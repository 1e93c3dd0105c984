//! The whole search: from experience to a short list of hypotheses, shortest explanations first.
//!
//! Order: answers as functions of the observation; reward models per action; then memory structures, each with
//! the same functions; then state machines. Everything is bounded in counted work. Must not know games.
//! Clauses: SCC-1; decisions D-34, D-35.

use crate::experience::{Episode, Experience};
use crate::function::Function;
use crate::functions;
use crate::hypothesis::{Hypothesis, assemble};
use crate::labels::{self, Answers};
use crate::library::Machine;
use crate::memory::{self, Device};
use crate::models::control::{Explorer, Prospect};
use crate::models::{joint, mealy, means, reward};
use crate::policy::{Policy, action_bits};
use crate::samples::Work;
use crate::view::View;
use bem_base::digest::Digest;
use bem_base::environment::Shape;
use std::sync::Arc;

/// What the search may use: switches for ablation, and how much work it may spend.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Memory structures and state machines are tried.
    pub memory: bool,
    /// Word operations of one call.
    pub work: u64,
    /// The most recent steps looked at.
    pub steps_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { memory: true, work: 400_000_000, steps_max: 64_000 }
    }
}

/// The most recent steps that memory structures are run over.
const MEMORY_STEPS_MAX: usize = 24_000;

/// Shares of wrong labels that are tried in turn.
const TOLERANCES: [usize; 3] = [0, 4, 12];

/// Searches the grammar for what explains the experience.
#[doc(alias = "SYNTH")]
pub fn propose(shape: &Shape, experience: &Experience, settings: &Settings) -> Proposal {
    let episodes = recent(experience, settings.steps_max);
    let mut work = Work::new(settings.work);
    let mut search = Search { shape, experience, provenance: None, list: Vec::new() };
    let all: Vec<&Episode> = experience.episodes().collect();
    let explorer = Prospect::of(shape, &all).map(|prospect| search.plan(prospect));
    if let Some(view) = View::new(shape, &episodes, None) {
        let explained = search.explain(&view, None, &mut work);
        if settings.memory && !explained && 1 < shape.horizon {
            let latest = recent(experience, settings.steps_max.min(MEMORY_STEPS_MAX));
            if let Some(view) = View::new(shape, &latest, None) {
                search.remember(&view, &latest, &mut work);
            }
        }
    }
    // What explains everything makes what has exceptions pointless; what looks ahead stays beside it.
    if search.list.iter().any(|hypothesis| hypothesis.exact) {
        search.list.retain(|hypothesis| hypothesis.exact || hypothesis.foreseen.is_some());
    }
    Proposal { hypotheses: search.list, explorer, work: settings.work - work.left() }
}

/// What a search brings.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// Hypotheses that explain the experience, in the order they should be tried.
    pub hypotheses: Vec<Hypothesis>,
    /// Where actions change what is seen: what plays for knowledge.
    pub explorer: Option<Explorer>,
    /// Word operations that it took.
    pub work: u64,
}

/// The latest episodes with at most this many steps.
pub fn recent(experience: &Experience, steps_max: usize) -> Vec<&Episode> {
    let mut left = steps_max;
    let mut list: Vec<&Episode> = experience
        .episodes()
        .rev()
        .take_while(|episode| {
            let fits = episode.steps.len() <= left;
            left = left.saturating_sub(episode.steps.len());
            fits
        })
        .collect();
    list.reverse();
    list
}

struct Search<'a> {
    shape: &'a Shape,
    experience: &'a Experience,
    provenance: Option<Digest>,
    list: Vec<Hypothesis>,
}

impl Search<'_> {
    /// Adds what explains one view; true when something did without exceptions.
    fn explain(&mut self, view: &View, structure: Option<&Arc<dyn Device>>, work: &mut Work) -> bool {
        let device = structure.map(Arc::as_ref);
        for tolerance in TOLERANCES {
            let answers = [labels::complemented(view), Some(labels::positive(view))];
            for answers in answers.into_iter().flatten() {
                if let Some(bits) = fit_word(view, &answers, tolerance, work)
                    && let Some(policy) = assemble(self.shape, device, &bits)
                {
                    let mut words: Vec<String> = bits.iter().map(|function| function.words.clone()).collect();
                    words.dedup();
                    let length = bits.iter().map(|function| function.description_length).sum();
                    self.add(policy, device, words.join("; "), length, tolerance == 0);
                    if let Some(structure) = structure {
                        self.abstract_last(|shape, about| {
                            Machine::structure(shape, structure.clone(), bits, about)
                        });
                    }
                    return tolerance == 0;
                }
            }
            // With two actions the answers above already say what every reward says.
            if view.actions == 2 && labels::complemented(view).is_some() {
                continue;
            }
            if tolerance == 0
                && let Some((policy, length, words)) = joint::fit(self.shape, view, device, work)
            {
                self.add(policy, device, words, length, true);
                return true;
            }
            if let Some((policy, length, words)) = reward::fit(self.shape, view, device, tolerance, work) {
                self.add(policy, device, words, length, tolerance == 0);
                return tolerance == 0;
            }
        }
        false
    }

    /// Adds what memory structures explain.
    fn remember(&mut self, view: &View, episodes: &[&Episode], work: &mut Work) {
        let answers = labels::complemented(view).unwrap_or_else(|| labels::positive(view));
        for device in memory::search::candidates(self.shape, episodes, view, &answers, work) {
            if self.explain_with(&device, episodes, work) {
                return;
            }
        }
        if let Some((policy, length, words)) = mealy::fit(self.shape, episodes, work) {
            self.add(policy, None, words, length, true);
            return;
        }
        for device in memory::search::sticky_candidates(self.shape, episodes, view.top(), work) {
            if self.explain_with(&device, episodes, work) {
                return;
            }
        }
        for device in memory::search::tape_candidates(self.shape, episodes, view, &answers) {
            if self.explain_with(&device, episodes, work) {
                return;
            }
        }
        for length in 1..=2 {
            let delay = memory::delay::Delay { fields: self.shape.fields.clone(), length };
            if let Some(view) = View::new(self.shape, episodes, Some(&delay))
                && let Some((policy, length, words)) = means::fit(self.shape, &view, Some(&delay))
            {
                self.add(policy, Some(&delay), words, length, false);
            }
        }
    }

    fn explain_with(&mut self, device: &Arc<dyn Device>, episodes: &[&Episode], work: &mut Work) -> bool {
        match View::new(self.shape, episodes, Some(device.as_ref())) {
            Some(view) => self.explain(&view, Some(device), work),
            None => false,
        }
    }

    /// Adds the best plan in the counted model.
    fn plan(&mut self, prospect: Prospect) -> Explorer {
        if let Some(policy) = prospect.policy {
            self.add(policy, None, prospect.words, prospect.states as u32, false);
            self.list.last_mut().expect("just added").foreseen = Some(prospect.foreseen);
        }
        prospect.explorer
    }

    fn add(&mut self, policy: Policy, device: Option<&dyn Device>, words: String, length: u32, exact: bool) {
        let words = match device {
            Some(device) => format!("{} and {words}", device.words()),
            None => words,
        };
        let description_length = length + device.map_or(0, Device::description_length);
        let machine = device
            .is_none()
            .then(|| Machine::circuit(self.shape, policy.clone(), (words.clone(), description_length)));
        let provenance = *self.provenance.get_or_insert_with(|| self.experience.digest());
        self.list.push(Hypothesis {
            policy,
            words,
            description_length,
            exact,
            foreseen: None,
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

/// One function per bit of the action code, or none if some bit is not explained.
pub fn fit_word(view: &View, answers: &Answers, tolerance: usize, work: &mut Work) -> Option<Vec<Function>> {
    (0..action_bits(view.actions))
        .map(|bit| functions::fit(&answers.samples(view, bit, false, tolerance), work))
        .collect()
}
