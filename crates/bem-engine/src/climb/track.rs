//! One family on its way up: what it has climbed, what it keeps, and what its next unit is.
//!
//! Most units are rungs; one in ten, by default, replays something below (D-25). A rung that resists is tried again with
//! four times the steps. After the top, or when stuck, the family's teacher chooses: its templates, those it
//! makes by mutation, and what came of each decide the next task. Clauses: GLE-5, GLE-6, GLE-7, GLE-10.

use super::unit::{Purpose, Unit, UnitResult};
use super::{ATTEMPTS_MAX, ClimbConfig, OPENING_UNITS};
use crate::parameters::teacher_config;
use crate::shard::Shard;
use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_evolve::patch::Patch;
use bem_evolve::score::PoxState;
use bem_evolve::teach::judge_edit;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use bem_teacher::controller::ReplayShare;
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::TeachEdit;
use bem_teacher::teacher::{Report, Teacher};
use bem_teacher::template::{TemplateId, structural_difficulty};

/// Word operations of a search that take about as long as one step.
const WORK_A_STEP: u64 = 1 << 10;
/// Machines that a family keeps.
const LIBRARY_MAX: usize = 8;

/// What is kept of a try at a rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climbed {
    /// The task.
    pub task: String,
    /// Which rung.
    pub stage: usize,
    /// Which try.
    pub attempt: u32,
    /// Final score.
    pub score: Fixed,
    /// Whether it counts as solved.
    pub solved: bool,
    /// What acts was known before: a machine of the library, built for this rung.
    pub reused: bool,
    /// Steps that were allowed.
    pub budget: u64,
    /// Steps taken.
    pub steps: u64,
    /// Steps until the score first was 0.99.
    pub steps_to_99: Option<u64>,
    /// Patches installed.
    pub applied: u32,
    /// Patches turned down.
    pub rejected: u32,
    /// Proofs that the checker accepted.
    pub proofs: u32,
    /// What was learned, in words.
    pub words: String,
    /// The circuit.
    pub policy: Policy,
    /// Head of the unit's own chain.
    pub head: Digest,
}

/// What is kept of a unit of practice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Practised {
    /// Its place in the family's chain.
    pub number: u32,
    /// The task.
    pub task: String,
    /// Final score.
    pub score: Fixed,
    /// Whether it counts as solved.
    pub solved: bool,
    /// Steps taken.
    pub steps: u64,
    /// Head of the unit's own chain.
    pub head: Digest,
    /// What it made of the teacher's templates, in order.
    pub edits: Vec<Edit>,
}

/// A TEACH_EDIT patch that a unit of practice brought. Only what was admitted is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The new template as text.
    pub tree: String,
    /// What asked for it: the situation in which what was learned kept failing; none for a mutation by chance.
    pub situation: Option<Bits>,
    /// The accepted patch as canonical bytes.
    pub patch: Vec<u8>,
}

/// One family.
#[derive(Clone, Debug)]
pub struct Track {
    /// The family.
    pub family: String,
    pub(super) place: usize,
    pub(super) tasks: Vec<String>,
    pub(super) stage: usize,
    pub(super) attempt: u32,
    pub(super) units: u32,
    pub(super) steps: u64,
    /// Steps, and what searching took in steps.
    pub(super) spent: u64,
    pub(super) head: Digest,
    /// Every try at a rung, in order.
    pub climbed: Vec<Climbed>,
    /// Every unit of practice, in order.
    pub practised: Vec<Practised>,
    /// Its part of the run's machine, as the latest unit left it.
    pub(super) shard: Option<Shard>,
    pub(super) library: Vec<Machine>,
    pub(super) lent: Vec<Machine>,
    pub(super) teacher: Option<Teacher>,
    pub(super) next: Option<Unit>,
}

/// Everything but the teacher is compared as it is, the teacher by its bytes.
impl PartialEq for Track {
    fn eq(&self, other: &Track) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Track {}

impl Track {
    pub(super) fn new(config: &ClimbConfig, place: usize, family: &str, tasks: Vec<String>) -> Track {
        let mut track = Track {
            family: family.to_string(),
            place,
            tasks,
            stage: 0,
            attempt: 0,
            units: 0,
            steps: 0,
            spent: 0,
            head: digest::hash_parts("bem/climb/track", &[family.as_bytes()]),
            climbed: Vec::new(),
            practised: Vec::new(),
            shard: None,
            library: Vec::new(),
            lent: Vec::new(),
            teacher: None,
            next: None,
        };
        track.next = track.plan(config);
        track
    }

    fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// Rungs solved.
    pub fn solved(&self) -> usize {
        self.stage
    }

    /// The tasks of its rungs.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// Rungs there are.
    pub fn stages(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the top is reached.
    pub fn is_at_top(&self) -> bool {
        self.stage == self.tasks.len()
    }

    /// Whether a rung resisted every try.
    pub fn is_stuck(&self) -> bool {
        ATTEMPTS_MAX <= self.attempt
    }

    /// Whether it is neither at the top nor stuck.
    pub fn is_climbing(&self) -> bool {
        !self.is_at_top() && !self.is_stuck()
    }

    /// Units taken in.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Steps taken in its worlds.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The digest of its chain.
    pub fn head(&self) -> Digest {
        self.head
    }

    /// Its part of the run's machine; none before its first unit.
    pub fn shard(&self) -> Option<&Shard> {
        self.shard.as_ref()
    }

    /// What it tries first, the latest before the others.
    pub fn library(&self) -> &[Machine] {
        &self.library
    }

    /// What it learned in its first units.
    pub(super) fn lent(&self) -> &[Machine] {
        &self.lent
    }

    /// Its next unit; none for a single task that was worked on.
    pub fn next(&self) -> Option<Unit> {
        self.next.clone()
    }

    /// Templates of its teacher, those made by mutation included.
    pub fn templates(&self) -> usize {
        self.teacher.as_ref().map_or(0, |teacher| teacher.templates().len())
    }

    /// What its latest unit made of the teacher's templates.
    pub fn latest_edits(&self) -> &[Edit] {
        let latest = self.practised.last().filter(|practised| practised.number + 1 == self.units);
        latest.map_or(&[], |practised| &practised.edits)
    }

    /// The task of one of its teacher's templates.
    pub fn template(&self, index: usize) -> Option<String> {
        self.teacher.as_ref()?.templates().get(index).map(|template| template.tree.to_string())
    }

    /// Takes a result in: the place on the ladder, the library, what the teacher learns, and what comes next.
    pub(super) fn take(&mut self, config: &ClimbConfig, result: &UnitResult) {
        let learned = &result.solution.learned;
        assert!(result.unit.number == self.units, "a unit follows the one before");
        self.units += 1;
        self.steps += learned.tally.steps;
        // At least one, so that keys grow.
        let searched = learned.tally.work / WORK_A_STEP;
        self.spent = self.spent.saturating_add(learned.tally.steps.max(1).saturating_add(searched));
        let link = [self.head.as_bytes().as_slice(), learned.chain_head.as_bytes()];
        self.head = digest::hash_parts("bem/climb/link", &link);
        self.shard = Some(result.solution.shard.clone());
        self.keep(result);
        match result.unit.purpose {
            Purpose::Rung { stage, attempt } => {
                let solved = result.solution.is_solved();
                (self.stage, self.attempt) = if solved { (stage + 1, 0) } else { (stage, attempt + 1) };
                self.climbed.push(climbed(result, stage, attempt));
            }
            Purpose::Replay { template } | Purpose::Practice { template } => {
                self.practised.push(practised(result));
                self.report(&config.parameters, template, result);
            }
        }
        self.next = self.plan(config);
    }

    /// What was solved goes to the front of the library.
    fn keep(&mut self, result: &UnitResult) {
        let Some(machine) = result.solution.learned.machine.as_ref().filter(|_| result.solution.is_solved())
        else {
            return;
        };
        self.library.retain(|held| held != machine);
        self.library.insert(0, machine.clone());
        self.library.truncate(LIBRARY_MAX);
        if result.unit.number < OPENING_UNITS {
            self.lent.push(machine.clone());
        }
    }

    /// What a unit of practice says to the teacher, and the templates that come of it.
    fn report(&mut self, config: &GenesisConfig, template: TemplateId, result: &UnitResult) {
        let Some(teacher) = &mut self.teacher else { return };
        let solution = &result.solution;
        let score = solution.score().unwrap_or(Fixed::ZERO);
        let regret = Fixed::ONE.minus(score.clamp(Fixed::ZERO, Fixed::ONE));
        teacher.report(Report { template, passed: solution.is_solved(), regret, step: self.steps });
        let mutation = teacher.maybe_mutate(template, &NoPrograms).map(|edit| (edit, None));
        // A situation in which what was learned keeps failing asks for tasks that show it more often.
        let counterexample = solution.learned.counterexample.filter(|_| !solution.is_solved());
        let focus = counterexample.and_then(|situation| {
            let edit = teacher.focus_on(template, &situation, &NoPrograms)?;
            Some((edit, Some(situation)))
        });
        let mut edits = Vec::new();
        for (place, (edit, situation)) in (0u64..).zip([mutation, focus].into_iter().flatten()) {
            let serial = 2 * u64::from(self.units) + place;
            if let Some(patch) = admit(config, teacher, serial, &edit) {
                let digest = patch.digest();
                self.head = digest::hash_parts("bem/climb/edit", &[self.head.as_bytes(), digest.as_bytes()]);
                edits.push(Edit { tree: edit.tree.to_string(), situation, patch: patch.to_bytes() });
            }
        }
        teacher.re_estimate();
        if let Some(practised) = self.practised.last_mut() {
            practised.edits = edits;
        }
    }

    fn plan(&mut self, config: &ClimbConfig) -> Option<Unit> {
        let single = config.stages == 1;
        if single && 0 < self.units {
            return None;
        }
        // A user's world has no teacher that could bring back what was solved.
        let is_taught = Domain::from_name(&self.family).is_some();
        let replays =
            replay_share(config).replays(u64::from(self.units)) && 0 < self.stage && !single && is_taught;
        let (purpose, task, attempt) = if self.is_climbing() && !replays {
            let purpose = Purpose::Rung { stage: self.stage, attempt: self.attempt };
            (purpose, self.tasks[self.stage].clone(), self.attempt)
        } else {
            let (purpose, task) = self.plan_practice(config)?;
            (purpose, task, 0)
        };
        let budget = config.unit_steps.saturating_mul(1 << (2 * attempt));
        Some(Unit { track: self.place, number: self.units, purpose, spent: self.spent, budget, task })
    }

    /// A task of the family's teacher: below the frontier while it climbs, then whatever the teacher asks for.
    fn plan_practice(&mut self, config: &ClimbConfig) -> Option<(Purpose, String)> {
        let domain = Domain::from_name(&self.family)?;
        if self.teacher.is_none() {
            self.teacher =
                Teacher::new(teacher_config(&config.parameters, config.seed, domain), &NoPrograms).ok();
        }
        let climbing = self.is_climbing();
        let below = self.tasks.get(self.stage).filter(|_| climbing).cloned();
        let solved = self.stage.checked_sub(1).map(|stage| self.tasks[stage].clone());
        let units = u64::from(self.units);
        let teacher = self.teacher.as_mut()?;
        let band_of = |teacher: &Teacher, task: &str| {
            let tree = TaskTree::parse(task).ok()?;
            let difficulty = structural_difficulty(&tree, &NoPrograms).ok()?;
            Some(teacher.ladder(domain)?.band(difficulty))
        };
        if let Some(frontier) = below {
            let band = band_of(teacher, &frontier)?;
            let lower = replay_share(config).before(units) % u64::from(band.max(1));
            let template = teacher.select_template(domain, lower as u8)?;
            let task = teacher.instantiate(template, units, &NoPrograms).ok()?;
            return Some((Purpose::Replay { template }, task.tree.to_string()));
        }
        // What was climbed need not be shown again: practice begins at the highest band that was solved.
        if let Some(band) = solved.and_then(|task| band_of(teacher, &task)) {
            teacher.raise_frontier(domain, band);
        }
        let (_, task) = teacher.next_task(&NoPrograms).ok()??;
        Some((Purpose::Practice { template: task.template }, task.tree.to_string()))
    }
}

/// An edit as a TEACH_EDIT patch like any other (D-24): its condition is shown before it is admitted. A full band keeps
/// newcomers out; that is an outcome, not an error.
fn admit(config: &GenesisConfig, teacher: &mut Teacher, serial: u64, edit: &TeachEdit) -> Option<Patch> {
    let accepted = judge_edit(config, teacher, serial, edit, &PoxState::new(config)).ok()?;
    teacher.admit(edit, &NoPrograms).ok()?;
    Some(accepted.patch().clone())
}

fn replay_share(config: &ClimbConfig) -> ReplayShare {
    ReplayShare::from_fixed(config.parameters.replay_share)
}

fn climbed(result: &UnitResult, stage: usize, attempt: u32) -> Climbed {
    let solution = &result.solution;
    let learned = &solution.learned;
    Climbed {
        task: result.unit.task.clone(),
        stage,
        attempt,
        score: solution.score().unwrap_or(Fixed::ZERO),
        solved: solution.is_solved(),
        reused: result.reused,
        budget: result.unit.budget,
        steps: learned.tally.steps,
        steps_to_99: solution.steps_to_99,
        applied: learned.tally.applied,
        rejected: learned.tally.rejected,
        proofs: learned.tally.proofs,
        words: learned.words.clone(),
        policy: learned.agent.policy().clone(),
        head: learned.chain_head,
    }
}

fn practised(result: &UnitResult) -> Practised {
    let solution = &result.solution;
    Practised {
        number: result.unit.number,
        task: result.unit.task.clone(),
        score: solution.score().unwrap_or(Fixed::ZERO),
        solved: solution.is_solved(),
        steps: solution.learned.tally.steps,
        head: solution.learned.chain_head,
        edits: Vec::new(),
    }
}
