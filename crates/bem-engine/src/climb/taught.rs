//! What a family is taught beside its rungs: which task it practises, and what becomes a template.
//!
//! Between two units programs of the control core ask the family's teacher ([`super::practice`]): every other request is for a
//! composition with another family, the others take first what edits have brought and nobody has practised, then whatever
//! the teacher's bandit chooses in the band that was practised least. Templates come out of the trace (two rungs that one
//! machine solved become one template with slots), of situations in which what was learned keeps failing or in which
//! verification found a circuit to contradict the log, and by mutation of what was climbed or practised. Rungs are templates
//! themselves: the steps that they took move their difficulty while the family climbs.
//! Each is a TEACH_EDIT patch. A user's world practises its own rungs. Clauses: GLE-5 to GLE-10; decisions D-25, D-152, D-153.

use super::practice::{Asked, BANDS_MAX, Programs, Standing};
use super::track::{Edit, Practised, Track};
use super::unit::{Purpose, UnitResult};
use super::{ClimbConfig, REQUESTS_EARLY};
use crate::parameters::teacher_config;
use bem_base::digest;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_base::prng::mix;
use bem_evolve::score::PoxState;
use bem_evolve::teach::judge_edit;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_isa::coprocessor::{TaskDescriptor, TeachSlot};
use bem_machine::config::GenesisConfig;
use bem_teacher::controller::ReplayShare;
use bem_teacher::ladder::{Domain, Ladder};
use bem_teacher::mutate::{TeachEdit, Transformation};
use bem_teacher::teacher::{Report, Teacher};
use bem_teacher::template::{TemplateId, structural_difficulty};
use std::collections::BTreeMap;

/// Patches of templates that one unit may bring: a mutation, a situation, and what comes before its first request.
const EDITS_A_UNIT: u64 = 8;
/// Rungs of a ladder whose lowest is a partner's part of a composition.
const PARTNER_STAGES: usize = 8;

/// How much is replayed while a family climbs.
pub(super) fn replay_share(config: &ClimbConfig) -> ReplayShare {
    ReplayShare::from_fixed(config.parameters.replay_share)
}

/// A teacher while a unit brings it edits: each becomes a TEACH_EDIT patch like any other (D-24) and is shown before it is
/// admitted. A full band keeps newcomers out; that is an outcome, not an error.
struct Editing<'a> {
    config: &'a GenesisConfig,
    teacher: &'a mut Teacher,
    edits: &'a mut Vec<Edit>,
    origins: &'a mut BTreeMap<u32, u8>,
    units: u32,
}

impl Editing<'_> {
    fn admit(&mut self, edit: &TeachEdit, situation: Option<Bits>) -> Option<TemplateId> {
        let serial = EDITS_A_UNIT * u64::from(self.units) + self.edits.len() as u64;
        let accepted =
            judge_edit(self.config, self.teacher, serial, edit, &PoxState::new(self.config)).ok()?;
        let template = self.teacher.admit(edit, &NoPrograms).ok()?;
        let (tree, patch) = (edit.tree.to_string(), accepted.patch().to_bytes());
        let transformation = edit.transformation as u8;
        self.origins.insert(template.0, transformation);
        self.edits.push(Edit { tree, transformation, situation, patch });
        Some(template)
    }
}

/// The teacher's slot of the control core.
struct Slot<'a> {
    editing: Editing<'a>,
    families: &'a [String],
    own: Domain,
    seed: u64,
    /// Templates that edits brought and nobody has practised, the oldest first.
    fresh: &'a mut Vec<TemplateId>,
    chosen: Option<(TemplateId, String)>,
}

impl Slot<'_> {
    /// A task of the family's own behind which one of its partner comes.
    fn compose(&mut self, partner: Domain, band: u8) -> Option<TemplateId> {
        let ladder = Ladder::new(partner);
        let other = ladder.rungs(PARTNER_STAGES).first()?.tree.clone();
        let parent = self.editing.teacher.select_template(self.own, band)?;
        let edit = self.editing.teacher.compose(parent, &other, &NoPrograms)?;
        let known = self.editing.teacher.template_of(&edit.tree);
        known.or_else(|| self.editing.admit(&edit, None))
    }
}

impl TeachSlot for Slot<'_> {
    fn teach(&mut self, domain: u64, difficulty: u64, context: u64) -> Option<TaskDescriptor> {
        let band = u8::try_from(difficulty).ok()?;
        let named = usize::try_from(domain).ok().and_then(|place| self.families.get(place));
        let partner = Domain::from_name(named?).filter(|partner| *partner != self.own);
        let composed = partner.and_then(|partner| self.compose(partner, band));
        let is_fresh = composed.is_none() && !self.fresh.is_empty();
        let template = match composed {
            Some(template) => template,
            None if is_fresh => self.fresh.remove(0),
            None => self.editing.teacher.select_template(self.own, band)?,
        };
        let task =
            self.editing.teacher.instantiate(template, mix(self.seed ^ mix(context)), &NoPrograms).ok()?;
        let tree = task.tree.to_string();
        self.chosen = Some((template, tree.clone()));
        Some(TaskDescriptor {
            number: u64::from(template.0),
            domain,
            band: u64::from(task.band),
            template: u64::from(template.0),
            difficulty: task.difficulty.to_raw(),
            seed: task.seed,
            tree,
        })
    }
}

/// Whether an edit made this template by chance; all others were asked for.
fn is_mutated(template: TemplateId, origins: &BTreeMap<u32, u8>) -> bool {
    let origin = origins.get(&template.0);
    Transformation::ALL.iter().any(|mutation| origin == Some(&(*mutation as u8)))
}

/// The slot of a user's world: a band is one of its rungs, of which nobody knows the difficulty.
struct Rungs<'a>(&'a [String]);

impl TeachSlot for Rungs<'_> {
    fn teach(&mut self, domain: u64, difficulty: u64, _context: u64) -> Option<TaskDescriptor> {
        let tree = self.0.get(usize::try_from(difficulty).ok()?)?.clone();
        let (number, band, template) = (difficulty, difficulty, difficulty);
        Some(TaskDescriptor { number, domain, band, template, difficulty: 0, seed: 0, tree })
    }
}

impl Track {
    /// Its teacher, which is made when it is first needed; none for a user's world.
    fn make_teacher(&mut self, config: &ClimbConfig) -> Option<Domain> {
        let domain = Domain::from_name(&self.family)?;
        if self.teacher.is_none() {
            let settings = teacher_config(&config.parameters, config.seed, domain);
            self.teacher = Teacher::new(settings, &NoPrograms).ok();
        }
        self.teacher.as_ref().map(|_| domain)
    }

    /// Puts edits to the teacher; the templates that were admitted are to be practised.
    fn edit(&mut self, config: &GenesisConfig, wanted: Vec<(TeachEdit, Option<Bits>)>) {
        let (units, before) = (self.units, self.edits.len());
        let Some(teacher) = &mut self.teacher else { return };
        let (edits, origins) = (&mut self.edits, &mut self.origins);
        let mut editing = Editing { config, teacher, edits, origins, units };
        for (edit, situation) in wanted {
            self.fresh.extend(editing.admit(&edit, situation));
        }
        self.link_edits(before);
    }

    /// Edits are part of the family's chain.
    fn link_edits(&mut self, before: usize) {
        for edit in &self.edits[before..] {
            let digest = digest::hash(&edit.patch);
            self.head = digest::hash_parts("bem/climb/edit", &[self.head.as_bytes(), digest.as_bytes()]);
        }
    }

    /// What a try at a rung asks the teacher for: where it resisted, a task that shows again the situation in which what was
    /// learned keeps failing; else, where verification found the circuit in force to contradict the log, one that shows this,
    /// unless something waits to be practised already.
    pub(super) fn expose(&mut self, config: &ClimbConfig, result: &UnitResult) {
        let learned = &result.solution.learned;
        let failing = learned.counterexample.filter(|_| !result.solution.is_solved());
        let refuting = learned.contradiction.filter(|_| self.fresh_asked().is_none());
        let asked = failing.map(|situation| (situation, Transformation::Focus));
        let asked = asked.or(refuting.map(|situation| (situation, Transformation::Contradict)));
        let Some((situation, transformation)) = asked else { return };
        let Ok(tree) = TaskTree::parse(&result.unit.task) else { return };
        if self.make_teacher(config).is_none() {
            return;
        }
        let asked = (&situation, transformation);
        let exposed = self.teacher.as_ref().and_then(|teacher| teacher.expose(&tree, asked, &NoPrograms));
        let wanted = exposed.map(|edit| (edit, Some(situation))).into_iter().collect();
        self.edit(&config.parameters, wanted);
    }

    /// What a try at a rung says to the teacher: the rung is one of its templates from now on, measured steps move its difficulty,
    /// and mutation may make another of it. A run over one task has no teacher.
    pub(super) fn report_rung(&mut self, config: &ClimbConfig, result: &UnitResult) {
        if config.stages == 1 || self.make_teacher(config).is_none() {
            return;
        }
        let (Ok(tree), Some(teacher)) = (TaskTree::parse(&result.unit.task), &mut self.teacher) else {
            return;
        };
        // A full band keeps a rung out: then nobody reports on it.
        let known = teacher.template_of(&tree);
        if let Some(template) = known.or_else(|| teacher.admit_tree(tree, &NoPrograms).ok()) {
            self.tell(&config.parameters, template, result, false);
        }
    }

    /// What a unit of practice says to the teacher, and the templates that come of it.
    pub(super) fn report(&mut self, config: &GenesisConfig, template: TemplateId, result: &UnitResult) {
        self.tell(config, template, result, true);
        if let Some(practised) = self.practised.last_mut().filter(|_| self.teacher.is_some()) {
            practised.edits = self.edits.clone();
        }
    }

    /// Reports what came of a task of this template. A rung that resists has asked for its situation already ([`Track::expose`]).
    fn tell(&mut self, config: &GenesisConfig, template: TemplateId, result: &UnitResult, is_practice: bool) {
        let Some(teacher) = &mut self.teacher else { return };
        let solution = &result.solution;
        let score = solution.score().unwrap_or(Fixed::ZERO);
        let regret = Fixed::ONE.minus(score.clamp(Fixed::ZERO, Fixed::ONE));
        let passed = solution.is_solved();
        let learned = solution.steps_to_99.filter(|_| passed);
        teacher.report(Report { template, passed, regret, step: self.steps, learned });
        // Of rungs one mutation at a time: there are as many rungs as requests that could practise them.
        let waits = self.fresh.iter().any(|template| is_mutated(*template, &self.origins));
        let mutation = if is_practice || !waits { teacher.maybe_mutate(template, &NoPrograms) } else { None };
        let mutation = mutation.map(|edit| (edit, None));
        // A situation in which what was learned keeps failing asks for tasks that show it more often.
        let counterexample = solution.learned.counterexample.filter(|_| is_practice && !passed);
        let focus = counterexample.and_then(|situation| {
            let edit = teacher.focus_on(template, &situation, &NoPrograms)?;
            Some((edit, Some(situation)))
        });
        self.edit(config, [mutation, focus].into_iter().flatten().collect());
        let Some(teacher) = &mut self.teacher else { return };
        teacher.re_estimate();
    }

    /// The band of a template as its teacher has it now; of a user's world the rung.
    pub(super) fn band_of(&self, template: TemplateId) -> u8 {
        let teacher =
            self.teacher.as_ref().filter(|teacher| (template.0 as usize) < teacher.templates().len());
        teacher.map_or(template.0.min(255) as u8, |teacher| teacher.band_of(template))
    }

    /// The oldest template that something asked for and nobody has practised.
    fn fresh_asked(&self) -> Option<usize> {
        self.fresh.iter().position(|template| !is_mutated(*template, &self.origins))
    }

    /// After a rung resisted: the task that shows where, before the rung is tried again.
    pub(super) fn plan_exposed(&mut self) -> Option<(Purpose, String)> {
        let teacher = self.teacher.as_ref()?;
        let place = self.fresh_asked()?;
        let template = self.fresh[place];
        let task = teacher.instantiate(template, u64::from(self.units), &NoPrograms).ok()?;
        self.fresh.remove(place);
        Some((Purpose::Replay { template }, task.tree.to_string()))
    }

    /// While the family climbs: a task from below its frontier.
    pub(super) fn plan_replay(&mut self, config: &ClimbConfig) -> Option<(Purpose, String)> {
        let domain = self.make_teacher(config)?;
        let frontier = self.tasks.get(self.stage)?.clone();
        let units = u64::from(self.units);
        let band = self.band_of_task(domain, &frontier)?;
        let teacher = self.teacher.as_mut()?;
        let lower = replay_share(config).before(units) % u64::from(band.max(1));
        let template = teacher.select_template(domain, lower as u8)?;
        let task = teacher.instantiate(template, units, &NoPrograms).ok()?;
        Some((Purpose::Replay { template }, task.tree.to_string()))
    }

    fn band_of_task(&self, domain: Domain, task: &str) -> Option<u8> {
        let difficulty = structural_difficulty(&TaskTree::parse(task).ok()?, &NoPrograms).ok()?;
        Some(self.teacher.as_ref()?.ladder(domain)?.band(difficulty))
    }

    /// After the climb: what the programs of the control core ask the teacher for.
    pub(super) fn plan_practice(&mut self, config: &ClimbConfig) -> Option<(Purpose, String)> {
        let chosen = match self.make_teacher(config) {
            Some(domain) => {
                if self.requests == 0 {
                    self.extract(config);
                }
                self.raise_frontier(domain);
                self.ask_teacher(config, domain)?
            }
            None => self.ask_rungs(config)?,
        };
        let (template, task) = chosen;
        // The first requests of a family that was quick come before the rungs of those that are slow.
        let is_early = self.requests <= REQUESTS_EARLY && self.spent <= config.unit_steps;
        let purpose = if is_early { Purpose::Replay { template } } else { Purpose::Practice { template } };
        Some((purpose, task))
    }

    /// What was climbed need not be shown again: practice begins at the highest band that was solved.
    fn raise_frontier(&mut self, domain: Domain) {
        let solved = self.stage.checked_sub(1).map(|stage| self.tasks[stage].clone());
        let band = solved.and_then(|task| self.band_of_task(domain, &task));
        if let (Some(teacher), Some(band)) = (&mut self.teacher, band) {
            teacher.raise_frontier(domain, band);
        }
    }

    /// Templates out of the trace: the latest two rungs in a row that one machine has solved.
    fn extract(&mut self, config: &ClimbConfig) {
        let solved: Vec<_> = self.climbed.iter().filter(|climbed| climbed.solved).collect();
        let pair = solved.windows(2).rev().find(|pair| pair[1].reused);
        let trees = pair.and_then(|pair| {
            Some((TaskTree::parse(&pair[0].task).ok()?, TaskTree::parse(&pair[1].task).ok()?))
        });
        let (Some((one, other)), Some(teacher)) = (trees, &self.teacher) else { return };
        let wanted = teacher.extract(&one, &other, &NoPrograms).map(|edit| (edit, None));
        self.edit(&config.parameters, wanted.into_iter().collect());
    }

    fn standing(&self, config: &ClimbConfig, bands: usize) -> Standing {
        let mut practised = [0; BANDS_MAX];
        for unit in &self.practised {
            practised[usize::from(unit.band).min(BANDS_MAX - 1)] += 1;
        }
        let (place, families) = (self.place, config.families.len());
        Standing { place, families, requests: self.requests, practised, bands }
    }

    /// Runs the programs with the family's teacher behind TEACH; without an answer the teacher's own request is taken.
    fn ask_teacher(&mut self, config: &ClimbConfig, own: Domain) -> Option<(TemplateId, String)> {
        let bands = self.teacher.as_ref()?.ladder(own)?.bands();
        let standing = self.standing(config, bands);
        let (units, before) = (self.units, self.edits.len());
        let teacher = self.teacher.as_mut()?;
        let (edits, origins) = (&mut self.edits, &mut self.origins);
        let editing = Editing { config: &config.parameters, teacher, edits, origins, units };
        let (families, seed) = (config.families.as_slice(), config.seed);
        let slot = Slot { editing, families, own, seed, fresh: &mut self.fresh, chosen: None };
        let shared = self.shard.as_ref()?.machine().shared();
        let (asked, chosen) = match Programs::get().run(shared, &standing, slot) {
            Ok((asked, slot)) => (Some(asked), slot.chosen),
            Err(_) => (None, None),
        };
        self.note_request(asked);
        self.link_edits(before);
        if chosen.is_some() {
            return chosen;
        }
        let (_, task) = self.teacher.as_mut()?.next_task(&NoPrograms).ok()??;
        Some((task.template, task.tree.to_string()))
    }

    /// A user's world: every rung that was solved is practised once more.
    fn ask_rungs(&mut self, config: &ClimbConfig) -> Option<(TemplateId, String)> {
        let rungs = self.stage.min(BANDS_MAX);
        if rungs <= self.requests as usize {
            return None;
        }
        let standing = self.standing(config, rungs);
        let shared = self.shard.as_ref()?.machine().shared();
        let (asked, _) = Programs::get().run(shared, &standing, Rungs(self.tasks.get(..rungs)?)).ok()?;
        let template = asked.template?;
        self.note_request(Some(asked));
        Some((TemplateId(template as u32), self.tasks.get(template as usize)?.clone()))
    }

    fn note_request(&mut self, asked: Option<Asked>) {
        self.requests += 1;
        self.asked = asked;
    }

    /// What is kept of a unit of practice.
    pub(super) fn practised(&mut self, template: TemplateId, result: &UnitResult) -> Practised {
        let solution = &result.solution;
        Practised {
            number: result.unit.number,
            task: result.unit.task.clone(),
            band: self.band_of(template),
            origin: self.origins.get(&template.0).copied(),
            score: solution.score().unwrap_or(Fixed::ZERO),
            solved: solution.is_solved(),
            steps: solution.learned.tally.steps,
            head: solution.learned.chain_head,
            asked: self.asked.take(),
            edits: Vec::new(),
        }
    }
}
