//! The teacher: cells of templates, the bandit that chooses among them, and what it learns from reports.
//!
//! Everything is a function of the configuration and the reports so far. Work per call is bounded: a choice costs
//! one load, a report two indices, a re-estimate at most [`RE_ESTIMATES_MAX`] templates. Clauses: GLE-4, GLE-5, GLE-6,
//! GLE-7, GLE-8, LOG-6.

use crate::controller::{Controller, Pace, Request};
use crate::extract;
use crate::focus::focus;
use crate::ladder::{BANDS, Domain, Ladder, equal_bands};
use crate::mutate::{MutationRate, TeachEdit, Transformation, mutate};
use crate::template::{Task, Template, TemplateId, TemplateStatistics, domain_of, structural_difficulty};
use bem_base::environment::Bits;
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_base::limits::ARMS_MAX;
use bem_base::prng::{Prng, mix};
use bem_games::compose::tree::TREE_DEPTH_MAX;
use bem_games::compose::{Programs, TaskTree};
use bem_games::game::GameError;
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use bem_learn::loss::Loss;
use std::collections::BTreeMap;

/// Templates of one cell at most, whatever the configuration.
#[doc(alias = "S_templates_per_band")]
pub const TEMPLATES_PER_BAND_MAX: usize = ARMS_MAX;
/// Templates of one teacher at most, whatever the configuration.
pub const TEMPLATES_MAX: usize = 1 << 14;
/// Templates that one call of [`Teacher::re_estimate`] looks at.
pub const RE_ESTIMATES_MAX: usize = 8;
/// Reports before a template's difficulty is estimated again.
const USAGE_TO_RE_ESTIMATE: u64 = 32;
/// Visits that a template keeps when it moves to another band.
const VISITS_KEPT: u32 = 32;

/// Everything that is frozen at the start.
#[derive(Clone, Debug)]
pub struct TeacherConfig {
    /// All draws come from this number.
    pub seed: u64,
    /// The domains to be taught.
    pub domains: Vec<Domain>,
    /// The choice rule over templates.
    pub parameters: Parameters,
    /// How often mutations are proposed.
    pub mutation: MutationRate,
    /// Depth of trees that a mutation may build.
    #[doc(alias = "D_task")]
    pub mutation_depth_max: usize,
    /// How fast the frontier moves, and how much is replayed.
    pub pace: Pace,
    /// Where the bands of a domain begin, as rising shares of its range.
    pub bands: Vec<Fixed>,
    /// Templates there may be.
    pub templates_max: usize,
    /// Templates that a cell may hold.
    pub templates_per_band: usize,
    /// Meta-rewards are held within these bounds, the lower first.
    #[doc(alias = "R_meta_min")]
    #[doc(alias = "R_meta_max")]
    pub meta_rewards: (Fixed, Fixed),
}

impl TeacherConfig {
    /// All domains with default rules.
    pub fn new(seed: u64) -> TeacherConfig {
        TeacherConfig {
            seed,
            domains: Domain::all().collect(),
            parameters: Parameters::DEFAULT,
            mutation: MutationRate::DEFAULT,
            mutation_depth_max: TREE_DEPTH_MAX,
            pace: Pace::DEFAULT,
            bands: equal_bands(BANDS),
            templates_max: TEMPLATES_MAX,
            templates_per_band: TEMPLATES_PER_BAND_MAX,
            meta_rewards: (Fixed::ZERO, Fixed::ONE),
        }
    }
}

/// The templates of one domain and band. Invariant: arm `i` of the bucket is member `i`, members ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub members: Vec<TemplateId>,
    pub bucket: Bucket,
}

/// What came of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The template it was made from.
    pub template: TemplateId,
    /// Whether the learner passed.
    pub passed: bool,
    /// How far it fell short of the optimum, from zero to one.
    pub regret: Fixed,
    /// When.
    pub step: u64,
    /// Steps that it took until it was learned, if it was.
    pub learned: Option<u64>,
}

/// Why a template was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The cell is full.
    #[error("domain {domain}, band {band} already has {maximum} templates")]
    BandFull {
        /// Templates that a band may hold.
        maximum: usize,
        /// The family.
        domain: &'static str,
        /// The band.
        band: u8,
    },
    /// No more templates at all.
    #[error("there are already {maximum} templates")]
    Full {
        /// Templates there may be.
        maximum: usize,
    },
    /// The tree has no leaf of a domain that is taught.
    #[error("the tree belongs to no domain that is taught")]
    NoDomain,
    /// The tree cannot be played.
    #[error(transparent)]
    Game(#[from] GameError),
}

/// Chooses tasks.
#[derive(Clone, Debug)]
pub struct Teacher {
    pub(crate) config: TeacherConfig,
    /// The ladder of each taught domain, in the order of the configuration.
    pub(crate) ladders: Vec<Ladder>,
    pub(crate) controller: Controller,
    pub(crate) templates: Vec<Template>,
    pub(crate) cells: BTreeMap<(Domain, u8), Cell>,
    pub(crate) selections: u64,
    /// Where the next re-estimate goes on.
    pub(crate) cursor: u32,
    pub(crate) mutations: Prng,
}

impl Teacher {
    /// A teacher with one template on every band of every domain: the boot set.
    pub fn new(config: TeacherConfig, programs: &dyn Programs) -> Result<Teacher, Refusal> {
        let mut teacher = Teacher::empty(config);
        for place in 0..teacher.ladders.len() {
            let stages = teacher.ladders[place].bands().max(2);
            let trees: Vec<TaskTree> =
                teacher.ladders[place].rungs(stages).iter().map(|rung| rung.tree.clone()).collect();
            for tree in trees {
                match teacher.admit_tree(tree, programs) {
                    // A narrow band or a small teacher has room for fewer.
                    Ok(_) | Err(Refusal::BandFull { .. } | Refusal::Full { .. }) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        Ok(teacher)
    }

    /// A teacher without templates.
    pub fn empty(config: TeacherConfig) -> Teacher {
        let ladder = |domain: &Domain| Ladder::new(*domain).with_bands(&config.bands);
        let ladders: Vec<Ladder> = config.domains.iter().map(ladder).collect();
        let bands = ladders.first().map_or(1, Ladder::bands);
        Teacher {
            controller: Controller::new(config.domains.clone(), bands, config.pace),
            ladders,
            templates: Vec::new(),
            cells: BTreeMap::new(),
            selections: 0,
            cursor: 0,
            mutations: Prng::stream(config.seed, "teacher mutations"),
            config,
        }
    }

    /// All templates, by number.
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Who asks for what, and how far everyone has come.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The ladder of a taught domain.
    pub fn ladder(&self, domain: Domain) -> Option<&Ladder> {
        let place = self.config.domains.iter().position(|other| *other == domain)?;
        Some(&self.ladders[place])
    }

    /// How many bands every domain has.
    pub(crate) fn bands(&self) -> usize {
        self.ladders.first().map_or(1, Ladder::bands)
    }

    /// The next request of the controller and the task for it.
    pub fn next_task(&mut self, programs: &dyn Programs) -> Result<Option<(Request, Task)>, GameError> {
        let request = self.controller.request();
        let task = self.task_for(request.domain, request.band, request.stage, programs)?;
        Ok(task.map(|task| (request, task)))
    }

    /// The task for a domain and a band; `context` draws its hidden choices.
    #[doc(alias = "TEACH_STEP")]
    pub fn task_for(
        &mut self,
        domain: Domain,
        band: u8,
        context: u64,
        programs: &dyn Programs,
    ) -> Result<Option<Task>, GameError> {
        let Some(id) = self.select_template(domain, band) else { return Ok(None) };
        let seed = mix(self.config.seed ^ mix(context));
        self.instantiate(id, seed, programs).map(Some)
    }

    /// The template to use now in this domain, from this band or the nearest one that has any.
    #[doc(alias = "TEACH_CHOOSE")]
    pub fn select_template(&mut self, domain: Domain, band: u8) -> Option<TemplateId> {
        let below = (0..=band).rev();
        let above = band + 1..self.bands() as u8;
        let cell = below.chain(above).find_map(|band| self.cells.get(&(domain, band)))?;
        self.selections += 1;
        Some(cell.members[cell.bucket.choose()])
    }

    /// The task of this template for this seed.
    pub fn instantiate(&self, id: TemplateId, seed: u64, programs: &dyn Programs) -> Result<Task, GameError> {
        let template = &self.templates[id.0 as usize];
        let ladder = self.ladder(template.domain).expect("templates belong to taught domains");
        template.instantiate(ladder, seed, programs)
    }

    /// Learns from what came of a task: moving averages, the bandit, and the controller.
    pub fn report(&mut self, report: Report) {
        let place = report.template.0 as usize;
        let band = self.band_of(report.template);
        let pace = self.config.pace;
        let template = &mut self.templates[place];
        let statistics = &mut template.statistics;
        statistics.usage += 1;
        statistics.pass_rate =
            pace.average(statistics.pass_rate, if report.passed { Fixed::ONE } else { Fixed::ZERO });
        statistics.regret = pace.average(statistics.regret, report.regret.clamp(Fixed::ZERO, Fixed::ONE));
        statistics.last_update = report.step;
        if let Some(steps) = report.learned {
            let measured = log2_count_floor(steps.max(1));
            let known = statistics.learned.map(|known| pace.average(known, measured));
            statistics.learned = Some(known.unwrap_or(measured));
        }
        let reward = meta_reward(statistics);
        let domain = template.domain;
        let (low, high) = self.config.meta_rewards;
        let lost = high.minus(reward.clamp(low, high)).div_floor(high.minus(low));
        let loss = Loss::from_fixed(lost).expect("meta-rewards lie within their bounds");
        if let Some(cell) = self.cells.get_mut(&(domain, band))
            && let Ok(arm) = cell.members.binary_search(&report.template)
        {
            cell.bucket.update(&self.config.parameters, arm, loss);
        }
        self.controller.report(domain, band, report.passed);
    }

    /// Competence shown outside of these reports, such as a climb to this band: requests start there.
    pub fn raise_frontier(&mut self, domain: Domain, band: u8) {
        self.controller.raise(domain, band);
    }

    /// With the falling chance of mutation, a proposal made from this template.
    pub fn maybe_mutate(&mut self, id: TemplateId, programs: &dyn Programs) -> Option<TeachEdit> {
        if !self.config.mutation.draw(self.selections, &mut self.mutations) {
            return None;
        }
        let (template, depth_max) = (&self.templates[id.0 as usize], self.config.mutation_depth_max);
        mutate(template, &self.ladders, depth_max, &mut self.mutations, programs)
    }

    /// A proposal made from this template that meets a situation, seen as observation bits, more often: what a
    /// counterexample asks for. None if nothing near the template does. See [`crate::focus`].
    pub fn focus_on(&self, id: TemplateId, situation: &Bits, programs: &dyn Programs) -> Option<TeachEdit> {
        focus(&self.templates[id.0 as usize], situation, programs)
    }

    /// A proposal that shows again where a task of this tree failed, or where a circuit was found to contradict what was seen
    /// in it: the neighbour that meets the situation more often, or the task itself where there is none.
    pub fn expose(
        &self,
        tree: &TaskTree,
        (situation, transformation): (&Bits, Transformation),
        programs: &dyn Programs,
    ) -> Option<TeachEdit> {
        let domain = domain_of(tree)?;
        let difficulty = structural_difficulty(tree, programs).ok()?;
        let template = Template {
            id: TemplateId(self.templates.len() as u32),
            domain,
            tree: tree.clone(),
            difficulty_structural: difficulty,
            difficulty,
            statistics: TemplateStatistics::NEUTRAL,
        };
        let tree = tree.clone();
        let itself = TeachEdit { parent: template.id, transformation, tree, domain, difficulty };
        let focused = focus(&template, situation, programs);
        Some(focused.map_or(itself, |edit| TeachEdit { transformation, ..edit }))
    }

    /// A proposal that puts a task of another family behind this template's.
    pub fn compose(&self, id: TemplateId, other: &TaskTree, programs: &dyn Programs) -> Option<TeachEdit> {
        let tree = extract::sequence(&self.templates[id.0 as usize].tree, other).ok()?;
        self.proposal(id, Transformation::Compose, tree, programs)
    }

    /// A proposal whose slots hold both of these tasks, which one machine has solved.
    pub fn extract(&self, one: &TaskTree, other: &TaskTree, programs: &dyn Programs) -> Option<TeachEdit> {
        self.proposal(TemplateId(0), Transformation::Extract, extract::common(one, other)?, programs)
    }

    fn proposal(
        &self,
        parent: TemplateId,
        transformation: Transformation,
        tree: TaskTree,
        programs: &dyn Programs,
    ) -> Option<TeachEdit> {
        if self.config.mutation_depth_max < tree.depth() {
            return None;
        }
        let (domain, difficulty) = (domain_of(&tree)?, structural_difficulty(&tree, programs).ok()?);
        Some(TeachEdit { parent, transformation, tree, domain, difficulty })
    }

    /// The template with this tree, if there is one.
    pub fn template_of(&self, tree: &TaskTree) -> Option<TemplateId> {
        self.templates.iter().find(|template| template.tree == *tree).map(|template| template.id)
    }

    /// Admits a proposal that was accepted elsewhere; it starts with neutral statistics.
    pub fn admit(&mut self, edit: &TeachEdit, programs: &dyn Programs) -> Result<TemplateId, Refusal> {
        self.admit_tree(edit.tree.clone(), programs)
    }

    /// Admits any tree that can be played and whose band has room.
    pub fn admit_tree(&mut self, tree: TaskTree, programs: &dyn Programs) -> Result<TemplateId, Refusal> {
        let domain = domain_of(&tree).filter(|domain| self.config.domains.contains(domain));
        let domain = domain.ok_or(Refusal::NoDomain)?;
        let difficulty = structural_difficulty(&tree, programs)?;
        let maximum = self.config.templates_max.min(TEMPLATES_MAX);
        if maximum <= self.templates.len() {
            return Err(Refusal::Full { maximum });
        }
        let band = self.ladder(domain).map_or(0, |ladder| ladder.band(difficulty));
        let maximum = self.band_capacity();
        if maximum <= self.members(domain, band) {
            return Err(Refusal::BandFull { maximum, domain: domain.name(), band });
        }
        let id = TemplateId(self.templates.len() as u32);
        self.templates.push(Template {
            id,
            domain,
            tree,
            difficulty_structural: difficulty,
            difficulty,
            statistics: TemplateStatistics::NEUTRAL,
        });
        self.rebuild((domain, band), None, Some((id, None)));
        Ok(id)
    }

    /// The band in which a template is now.
    pub fn band_of(&self, id: TemplateId) -> u8 {
        let template = &self.templates[id.0 as usize];
        self.ladder(template.domain).map_or(0, |ladder| ladder.band(template.difficulty))
    }

    fn members(&self, domain: Domain, band: u8) -> usize {
        self.cells.get(&(domain, band)).map_or(0, |cell| cell.members.len())
    }

    fn band_capacity(&self) -> usize {
        self.config.templates_per_band.min(TEMPLATES_PER_BAND_MAX)
    }

    /// Looks at the next few templates. Where steps to learn were measured, difficulty moves toward their logarithm; elsewhere
    /// what is nearly always passed becomes easier, what is nearly never passed harder. It moves by a quarter of a band at
    /// most at a time, and at most one band away from its structure. Returns how many changed their band.
    pub fn re_estimate(&mut self) -> usize {
        let mut moved = 0;
        for _ in 0..RE_ESTIMATES_MAX.min(self.templates.len()) {
            let place = self.cursor as usize % self.templates.len();
            self.cursor = (place as u32 + 1) % self.templates.len() as u32;
            moved += usize::from(self.re_estimate_one(place));
        }
        moved
    }

    fn re_estimate_one(&mut self, place: usize) -> bool {
        let template = &self.templates[place];
        let learned = template.statistics.learned;
        if learned.is_none() && template.statistics.usage < USAGE_TO_RE_ESTIMATE {
            return false;
        }
        let (id, domain, rate) = (template.id, template.domain, template.statistics.pass_rate);
        let Some(ladder) = self.ladder(domain) else { return false };
        let width = ladder.band_width();
        let quarter = width.div_count_floor(4);
        let change = if let Some(learned) = learned {
            learned.minus(template.difficulty).clamp(quarter.negated(), quarter)
        } else if Fixed::from_ratio(9, 10) < rate {
            quarter.negated()
        } else if rate < Fixed::from_ratio(1, 10) {
            quarter
        } else {
            return false;
        };
        let structural = template.difficulty_structural;
        let difficulty =
            template.difficulty.plus(change).clamp(structural.minus(width), structural.plus(width));
        let (old_band, new_band) = (ladder.band(template.difficulty), ladder.band(difficulty));
        if old_band == new_band {
            self.templates[place].difficulty = difficulty;
            return false;
        }
        // A full band keeps newcomers out; the last template of a band stays, or nothing would be left to ask for.
        if self.band_capacity() <= self.members(domain, new_band) || self.members(domain, old_band) == 1 {
            return false;
        }
        self.templates[place].difficulty = difficulty;
        let kept = self.statistics_of((domain, old_band), id);
        self.rebuild((domain, old_band), Some(id), None);
        self.rebuild((domain, new_band), None, Some((id, kept)));
        true
    }

    fn statistics_of(&self, key: (Domain, u8), id: TemplateId) -> Option<Kept> {
        let cell = self.cells.get(&key)?;
        let arm = cell.members.binary_search(&id).ok()?;
        Some(kept(&cell.bucket, arm, VISITS_KEPT))
    }

    /// Builds a cell anew without one member or with one more; everybody else keeps all statistics.
    fn rebuild(
        &mut self,
        key: (Domain, u8),
        gone: Option<TemplateId>,
        come: Option<(TemplateId, Option<Kept>)>,
    ) {
        let mut members: Vec<(TemplateId, Option<Kept>)> = Vec::new();
        if let Some(cell) = self.cells.remove(&key) {
            let stay = cell.members.iter().enumerate().filter(|(_, id)| Some(**id) != gone);
            members.extend(stay.map(|(arm, id)| (*id, Some(kept(&cell.bucket, arm, u32::MAX)))));
        }
        members.extend(come);
        members.sort_by_key(|(id, _)| *id);
        if members.is_empty() {
            return;
        }
        let live = u16::MAX >> (ARMS_MAX - members.len());
        let mut bucket = Bucket::new(&self.config.parameters, live);
        for (arm, (_, kept)) in members.iter().enumerate() {
            if let Some(kept) = kept {
                bucket.add_batch(arm, kept.visits, kept.loss_sum, kept.loss_sq_sum);
            }
        }
        bucket.refresh(&self.config.parameters);
        let members = members.into_iter().map(|(id, _)| id).collect();
        self.cells.insert(key, Cell { members, bucket });
    }
}

/// An arm's visits and losses without the imagined first one.
#[derive(Clone, Copy)]
struct Kept {
    visits: u32,
    loss_sum: u64,
    loss_sq_sum: u64,
}

fn kept(bucket: &Bucket, arm: usize, visits_max: u32) -> Kept {
    let statistics = bucket.statistics(arm);
    let own = statistics.visits - 1;
    let visits = own.min(visits_max);
    // The mean stays; a share of the sums goes with the visits.
    let scale = |sum: u64| {
        let whole = u128::from(sum) * u128::from(visits) / u128::from(statistics.visits);
        (whole as u64).min(u64::from(visits) << 32)
    };
    let loss_sum = scale(statistics.loss_sum);
    Kept { visits, loss_sum, loss_sq_sum: scale(statistics.loss_sq_sum).min(loss_sum) }
}

/// What a template is worth to the learner: most when it passes every other time, more when play falls far short,
/// a little more while it is new. Between zero and one.
pub fn meta_reward(statistics: &TemplateStatistics) -> Fixed {
    let rate = statistics.pass_rate;
    // 4 p (1 - p) is one at one half and zero at both ends.
    let frontier = rate.mul_floor(Fixed::ONE.minus(rate)).mul_int(4);
    let sum = frontier.mul_int(5).plus(statistics.regret.mul_int(3)).plus(statistics.novelty().mul_int(2));
    sum.div_count_floor(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::encode::{Reader, Writer};
    use bem_games::compose::NoPrograms;

    fn few(seed: u64) -> Teacher {
        let domains = vec![Domain(0), Domain(4), Domain(16)];
        Teacher::new(TeacherConfig { domains, ..TeacherConfig::new(seed) }, &NoPrograms).unwrap()
    }

    #[test]
    fn the_boot_set_has_a_playable_template_in_every_domain() {
        let teacher = Teacher::new(TeacherConfig::new(1), &NoPrograms).unwrap();
        for domain in Domain::all() {
            let bands: std::collections::BTreeSet<u8> = teacher
                .templates()
                .iter()
                .filter(|template| template.domain == domain)
                .map(|template| teacher.band_of(template.id))
                .collect();
            assert!(
                bands.contains(&0) && bands.contains(&7) && 5 <= bands.len(),
                "{}: {bands:?}",
                domain.name()
            );
        }
        for template in teacher.templates() {
            let task = teacher.instantiate(template.id, 5, &NoPrograms).unwrap();
            assert!(task.game.shape().horizon <= bem_base::limits::EPISODE_STEPS_MAX);
        }
    }

    /// Plays a learner that passes up to a band and writes down all tasks.
    fn play(teacher: &mut Teacher, rounds: u64) -> Vec<String> {
        let mut tasks = Vec::new();
        for step in 0..rounds {
            let (request, task) = teacher.next_task(&NoPrograms).unwrap().unwrap();
            tasks.push(format!("{} {} {}", request.stage, request.band, task.tree));
            let passed = request.band < 5;
            let regret = if passed { Fixed::ZERO } else { Fixed::HALF };
            teacher.report(Report { template: task.template, passed, regret, step, learned: None });
            if let Some(edit) = teacher.maybe_mutate(task.template, &NoPrograms) {
                let _ = teacher.admit(&edit, &NoPrograms);
            }
            teacher.re_estimate();
        }
        tasks
    }

    #[test]
    fn the_same_reports_give_the_same_tasks() {
        assert_eq!(play(&mut few(3), 400), play(&mut few(3), 400));
    }

    #[test]
    fn cells_never_hold_more_than_their_cap_and_every_template_has_one_place() {
        let mut teacher = few(4);
        teacher.config.mutation = MutationRate { numerator: 1, denominator: 1, half_life: 1_000_000 };
        play(&mut teacher, 1_500);
        assert!(40 < teacher.templates().len(), "{}", teacher.templates().len());
        let mut places = BTreeMap::new();
        for ((domain, band), cell) in &teacher.cells {
            assert!(cell.members.len() <= TEMPLATES_PER_BAND_MAX && cell.members.is_sorted());
            for id in &cell.members {
                assert_eq!((teacher.templates[id.0 as usize].domain, teacher.band_of(*id)), (*domain, *band));
                assert_eq!(places.insert(*id, *band), None);
            }
        }
        assert_eq!(places.len(), teacher.templates().len());
    }

    #[test]
    fn difficulty_follows_the_pass_rate_by_bounded_steps() {
        let mut teacher = few(5);
        let id = TemplateId(3);
        for bits in 0..4 {
            let tree =
                TaskTree::parse(&format!("mask{{bits={bits},percent=0}}({})", teacher.templates[3].tree))
                    .unwrap();
            teacher.admit_tree(tree, &NoPrograms).unwrap();
        }
        let before = teacher.templates()[3].difficulty;
        for step in 0..200 {
            teacher.report(Report { template: id, passed: true, regret: Fixed::ZERO, step, learned: None });
        }
        for _ in 0..100 {
            teacher.re_estimate();
        }
        let width = teacher.ladder(Domain(0)).unwrap().band_width();
        assert_eq!(teacher.templates()[3].difficulty, before.minus(width));
    }

    #[test]
    fn difficulty_follows_the_measured_steps_by_bounded_steps() {
        let mut teacher = few(5);
        let ladder = teacher.ladder(Domain(0)).unwrap();
        let (width, before) = (ladder.band_width(), teacher.templates()[3].difficulty);
        // Two bands above what its structure says; it may move by one.
        let above = before.plus(width.mul_int(2)).plus(Fixed::ONE);
        let steps = 1u64 << (above.to_raw() >> 32);
        let template = TemplateId(3);
        teacher.report(Report { template, passed: true, regret: Fixed::ZERO, step: 1, learned: Some(steps) });
        let mut last = before;
        for _ in 0..100 {
            teacher.re_estimate();
            let now = teacher.templates()[3].difficulty;
            assert!(last <= now && now.minus(last) <= width.div_count_floor(4));
            last = now;
        }
        assert!(before < last && last <= before.plus(width), "{before} {last}");
    }

    #[test]
    fn new_templates_are_tried_and_the_lowest_number_wins_ties() {
        let mut teacher = few(6);
        for percent in [0, 1, 2] {
            let tree = TaskTree::parse(&format!("mask{{bits=0,percent={percent}}}(parity{{n=2}})")).unwrap();
            teacher.admit_tree(tree, &NoPrograms).unwrap();
        }
        let cell = &teacher.cells[&(Domain(0), 0)];
        assert_eq!(cell.members.len(), 4);
        assert_eq!(teacher.select_template(Domain(0), 0), Some(TemplateId(0)));
        let mut chosen = std::collections::BTreeSet::new();
        for step in 0..200 {
            let id = teacher.select_template(Domain(0), 0).unwrap();
            chosen.insert(id);
            teacher.report(Report {
                template: id,
                passed: step % 2 == 0,
                regret: Fixed::HALF,
                step,
                learned: None,
            });
        }
        assert_eq!(chosen.len(), 4);
    }

    #[test]
    fn a_full_band_refuses() {
        let mut teacher = few(7);
        let mut last = Ok(TemplateId(0));
        for index in 0..20 {
            let tree = TaskTree::parse(&format!("parity{{n=2,noise={}}}", index % 3)).unwrap();
            last = teacher.admit_tree(tree, &NoPrograms);
        }
        assert_eq!(
            last,
            Err(Refusal::BandFull { maximum: TEMPLATES_PER_BAND_MAX, domain: "parity", band: 0 })
        );
        let foreign = TaskTree::parse("majority").unwrap();
        assert_eq!(teacher.admit_tree(foreign, &NoPrograms), Err(Refusal::NoDomain));
    }

    #[test]
    fn a_snapshot_goes_on_as_the_original_does() {
        let mut original = few(8);
        play(&mut original, 300);
        let mut writer = Writer::new();
        original.encode(&mut writer);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        let mut copy = Teacher::decode(original.config.clone(), &mut reader).unwrap();
        reader.finish().unwrap();
        let mut again = Writer::new();
        copy.encode(&mut again);
        assert_eq!(again.into_bytes(), bytes);
        assert_eq!(play(&mut copy, 200), play(&mut original, 200));
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]
        #[test]
        fn damaged_snapshots_are_refused_or_read_but_never_panic(place in 0usize..4_000, value in 0u8.., cut in 0usize..4_000) {
            let teacher = few(9);
            let mut writer = Writer::new();
            teacher.encode(&mut writer);
            let mut bytes = writer.into_bytes();
            let length = bytes.len();
            bytes[place % length] = value;
            let _ = Teacher::decode(teacher.config.clone(), &mut Reader::new(&bytes));
            bytes.truncate(cut % length);
            proptest::prop_assert!(Teacher::decode(teacher.config.clone(), &mut Reader::new(&bytes)).is_err());
        }
    }
}
