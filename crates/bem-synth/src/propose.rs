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
use crate::memory::Device;
use crate::models::reward;
use crate::policy::action_bits;
use crate::samples::Work;
use crate::view::View;
use bem_base::environment::Shape;

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
        Settings { memory: true, work: 2_000_000_000, steps_max: 24_000 }
    }
}

/// Shares of wrong labels that are tried in turn.
const TOLERANCES: [usize; 3] = [0, 4, 12];

/// Hypotheses that explain the experience, in the order they should be tried.
#[doc(alias = "SYNTH")]
pub fn propose(shape: &Shape, experience: &Experience, settings: &Settings) -> Vec<Hypothesis> {
    let episodes = recent(experience, settings.steps_max);
    let mut work = Work::new(settings.work);
    let mut search = Search { shape, experience, list: Vec::new() };
    if let Some(view) = View::new(shape, &episodes, None) {
        search.explain(&view, None, &mut work);
    }
    search.list
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
    list: Vec<Hypothesis>,
}

impl Search<'_> {
    /// Adds what explains one view; true when something did without exceptions.
    fn explain(&mut self, view: &View, device: Option<&dyn Device>, work: &mut Work) -> bool {
        for tolerance in TOLERANCES {
            let answers = [labels::complemented(view), Some(labels::positive(view))];
            for answers in answers.into_iter().flatten() {
                if let Some(bits) = fit_word(view, &answers, tolerance, work)
                    && let Some(policy) = assemble(self.shape, device, &bits)
                {
                    let mut words: Vec<String> = bits.iter().map(|function| function.words.clone()).collect();
                    words.dedup();
                    let length = bits.iter().map(|function| function.description_length).sum();
                    self.add(policy, device, words.join("; "), length);
                    return tolerance == 0;
                }
            }
            if let Some((policy, length, words)) = reward::fit(self.shape, view, device, tolerance, work) {
                self.add(policy, device, words, length);
                return tolerance == 0;
            }
        }
        false
    }

    fn add(
        &mut self,
        policy: crate::policy::Policy,
        device: Option<&dyn Device>,
        words: String,
        length: u32,
    ) {
        let words = match device {
            Some(device) => format!("{} and {words}", device.words()),
            None => words,
        };
        let description_length = length + device.map_or(0, Device::description_length);
        let provenance = self.experience.digest();
        self.list.push(Hypothesis { policy, words, description_length, provenance });
    }
}

/// One function per bit of the action code, or none if some bit is not explained.
pub fn fit_word(view: &View, answers: &Answers, tolerance: usize, work: &mut Work) -> Option<Vec<Function>> {
    (0..action_bits(view.actions))
        .map(|bit| functions::fit(&answers.samples(view, bit, false, tolerance), work))
        .collect()
}
