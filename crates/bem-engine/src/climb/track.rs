//! One family on its way up: what it has climbed, what it keeps, and what its next unit is.
//!
//! Most units are rungs; one in ten, by default, replays something below (D-25). A rung that resists is tried again with
//! four times the steps. After the top, or when stuck, the family's teacher chooses: its templates, those it
//! makes by mutation, and what came of each decide the next task. Clauses: GLE-5, GLE-6, GLE-7, GLE-10.

use super::practice::Asked;
use super::taught::replay_share;
use super::unit::{Purpose, Unit, UnitResult};
use super::{ATTEMPTS_MAX, ClimbConfig, OPENING_UNITS};
use crate::shard::Shard;
use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_games::compose::TaskTree;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::Transformation;
use bem_teacher::teacher::Teacher;
use bem_teacher::template::TemplateId;
use std::collections::{BTreeMap, BTreeSet};

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
    /// The circuit; of what adapts, what is done before anything is learned.
    pub policy: Policy,
    /// Whether what was measured goes on learning within an episode, which the circuit alone does not.
    pub adapts: bool,
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
    /// The band of its template.
    pub band: u8,
    /// How an edit made its template, by the number of the `Transformation`; none for a template of the teacher's boot set.
    pub origin: Option<u8>,
    /// Final score.
    pub score: Fixed,
    /// Whether it counts as solved.
    pub solved: bool,
    /// Steps taken.
    pub steps: u64,
    /// Head of the unit's own chain.
    pub head: Digest,
    /// The request of the control core that it answers, if it does.
    pub asked: Option<Asked>,
    /// What it made of the teacher's templates, in order.
    pub edits: Vec<Edit>,
}

impl Practised {
    /// Whether its task is a composition of several families.
    pub fn is_across_families(&self) -> bool {
        let Ok(tree) = TaskTree::parse(&self.task) else { return false };
        let mut leaves = BTreeSet::new();
        gather_leaves(&tree, &mut leaves);
        1 < leaves.len()
    }
}

fn gather_leaves(tree: &TaskTree, leaves: &mut BTreeSet<String>) {
    if tree.parts().is_empty() {
        leaves.insert(tree.name().to_string());
    }
    tree.parts().iter().for_each(|part| gather_leaves(part, leaves));
}

/// A TEACH_EDIT patch that a unit brought. Only what was admitted is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The new template as text.
    pub tree: String,
    /// What was done, by the number of its `Transformation`.
    pub transformation: u8,
    /// What asked for it: the situation in which what was learned kept failing or contradicted the log; none for a mutation by
    /// chance.
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
    /// Requests that programs of the control core have made.
    pub(super) requests: u32,
    /// The request that the next unit answers.
    pub(super) asked: Option<Asked>,
    /// Templates that edits brought and nobody has practised, the oldest first.
    pub(super) fresh: Vec<TemplateId>,
    /// What the latest unit made of the teacher's templates.
    pub(super) edits: Vec<Edit>,
    /// How edits made templates: the number of the `Transformation` by that of the template.
    pub(super) origins: BTreeMap<u32, u8>,
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
            requests: 0,
            asked: None,
            fresh: Vec::new(),
            edits: Vec::new(),
            origins: BTreeMap::new(),
            next: None,
        };
        track.next = track.plan(config, None);
        track
    }

    fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// Rungs solved, or passed over where the climb does that.
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

    /// Templates whose difficulty was moved by what came of them.
    pub fn re_estimated(&self) -> usize {
        let templates = self.teacher.as_ref().map_or(&[][..], |teacher| teacher.templates());
        templates.iter().filter(|template| template.difficulty != template.difficulty_structural).count()
    }

    /// The difficulty of a task that is a template of its teacher's, as the logarithm of the steps to learn it, base two: estimated
    /// from its structure, and after what play has shown.
    pub fn difficulty_of(&self, task: &str) -> Option<[Fixed; 2]> {
        let (tree, teacher) = (TaskTree::parse(task).ok()?, self.teacher.as_ref()?);
        let template = teacher.templates().iter().find(|template| template.tree == tree)?;
        Some([template.difficulty_structural, template.difficulty])
    }

    /// What its latest unit made of the teacher's templates.
    pub fn latest_edits(&self) -> &[Edit] {
        &self.edits
    }

    /// How many templates an edit of this kind has brought.
    pub fn edited_by(&self, transformation: Transformation) -> usize {
        self.origins.values().filter(|number| **number == transformation as u8).count()
    }

    /// How many units have practised a template that an edit of this kind brought.
    pub fn practised_by(&self, transformation: Transformation) -> usize {
        self.practised.iter().filter(|practised| practised.origin == Some(transformation as u8)).count()
    }

    /// Requests that programs of the control core have made.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// The request that its latest unit answered.
    pub fn latest_asked(&self) -> Option<&Asked> {
        let latest = self.practised.last().filter(|practised| practised.number + 1 == self.units);
        latest?.asked.as_ref()
    }

    /// The task of one of its teacher's templates.
    pub fn template(&self, index: usize) -> Option<String> {
        self.teacher.as_ref()?.templates().get(index).map(|template| template.tree.to_string())
    }

    /// Takes a result in: the place on the ladder, the library, what the teacher learns, and what comes next.
    pub(super) fn take(&mut self, config: &ClimbConfig, tries: Option<u32>, result: &UnitResult) {
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
        self.edits.clear();
        match result.unit.purpose {
            Purpose::Rung { stage, attempt } => {
                let is_behind =
                    result.solution.is_solved() || tries.is_some_and(|tries| tries <= attempt + 1);
                (self.stage, self.attempt) = if is_behind { (stage + 1, 0) } else { (stage, attempt + 1) };
                self.climbed.push(climbed(result, stage, attempt));
                if attempt == 0 {
                    self.expose(config, result);
                }
                self.report_rung(config, result);
            }
            Purpose::Replay { template } | Purpose::Practice { template } => {
                let practised = self.practised(template, result);
                self.practised.push(practised);
                self.report(&config.parameters, template, result);
            }
        }
        self.next = self.plan(config, Some(result.unit.purpose));
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

    /// What comes after a unit of this purpose.
    fn plan(&mut self, config: &ClimbConfig, latest: Option<Purpose>) -> Option<Unit> {
        let single = config.stages == 1;
        if single && 0 < self.units {
            return None;
        }
        // A user's world has no teacher that could bring back what was solved.
        let is_taught = Domain::from_name(&self.family).is_some();
        let replays =
            replay_share(config).replays(u64::from(self.units)) && 0 < self.stage && !single && is_taught;
        // Where a rung has just resisted, the task that shows where comes before the next try.
        let resisted = matches!(latest, Some(Purpose::Rung { .. })) && 0 < self.attempt && !single;
        let exposed = if resisted && self.is_climbing() { self.plan_exposed() } else { None };
        let (purpose, task) = match exposed {
            Some(exposed) => exposed,
            None if self.is_climbing() && !replays => {
                (Purpose::Rung { stage: self.stage, attempt: self.attempt }, self.tasks[self.stage].clone())
            }
            None if self.is_climbing() => self.plan_replay(config)?,
            None => self.plan_practice(config)?,
        };
        let budget = budget_of(config, purpose);
        Some(Unit { track: self.place, number: self.units, purpose, spent: self.spent, budget, task })
    }
}

/// Steps that a unit may take: four times as many with every try, half of them where it holds up the climb.
pub(super) fn budget_of(config: &ClimbConfig, purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Rung { attempt, .. } => config.unit_steps.saturating_mul(1 << (2 * attempt)),
        Purpose::Replay { .. } => (config.unit_steps / 2).max(1),
        Purpose::Practice { .. } => config.unit_steps,
    }
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
        adapts: learned.agent.adapts(),
        head: learned.chain_head,
    }
}
