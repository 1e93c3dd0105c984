//! The words that the step's programs work on: segments, and how a family is written into them.
//!
//! Must not know how a step is computed. Clauses: ISA-5, MEM-2.

use super::Unsupported;
use crate::circuit_code::circuit_code;
use crate::instruction::SegmentBase;
use crate::interpreter::SegmentStarts;
use crate::memory::{PAGE_WORDS, STATE_START};
use crate::program::Program;
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::BUCKET_WORDS;
use bem_learn::index::IndexRule;
use bem_learn::loss::PayoffRange;
use bem_learn::numeric::table_words;
use bem_machine::config::GenesisConfig;
use bem_machine::family::{Family, learning_parameters};
use bem_machine::machine::TRACE_RECORDS;
use bem_machine::memory::context::{AGE, FamilyIndex, WORD_FACTORS};
use bem_machine::payoff::{PayoffScale, cost_penalty};
use bem_machine::route::directory::RouteInput;
use bem_machine::trace::{RECORDS_PER_STEP, Record};
use std::collections::BTreeMap;

/// Words of a slot in EXPERT.
const SLOT_WORDS: usize = 4;
/// Words of WORK before the experts' scratch memory.
const WORK_WORDS: usize = 128;
/// Bytes of a plane of STATE.
const PLANE_BYTES: usize = 32;

/// Offsets by name, read from the text that the programs are assembled with.
#[derive(Clone, Debug)]
pub struct Layout(BTreeMap<String, usize>);

impl Layout {
    /// Reads every `.equ NAME, value`.
    pub fn read(text: &str) -> Layout {
        let statements = text.lines().filter_map(|line| line.split(';').next()?.strip_prefix(".equ"));
        let entry = |statement: &str| {
            let (name, value) = statement.split_once(',')?;
            let value = value.trim();
            let number = match value.strip_prefix("0x") {
                Some(digits) => usize::from_str_radix(digits, 16).ok()?,
                None => value.parse().ok()?,
            };
            Some((name.trim().to_string(), number))
        };
        Layout(statements.filter_map(entry).collect())
    }

    /// The word that a name stands for, counted from the start of its segment.
    pub fn find(&self, name: &str) -> Option<usize> {
        Some(self.0.get(name)? / 8)
    }

    /// The same for a name that the layout has.
    pub fn word(&self, name: &str) -> usize {
        self.find(name).expect("the host asks for names of the layout only")
    }
}

/// A run of words of SHARED.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Its first word.
    pub start: usize,
    /// How many.
    pub words: usize,
}

/// All words of a family that runs on programs.
#[derive(Clone, Debug)]
pub struct Image {
    /// SHARED.
    pub shared: Vec<u64>,
    /// STATE: four words a plane.
    pub state: Vec<u64>,
    /// Where the segments start, as the core's base registers have it.
    pub starts: SegmentStarts,
    /// Where the segments are.
    pub segments: [(SegmentBase, Place); 6],
}

/// The code of every expert as a node `expert_K` that returns through `x30`, and the scratch memory they need.
pub fn expert_code(family: &Family) -> Result<(String, usize), Unsupported> {
    let (mut text, mut scratch_vectors) = (String::new(), 0);
    for (slot, expert) in family.occupied() {
        let uses_shared = !expert.read().shared.is_empty() || !expert.write().integers.is_empty();
        let code = circuit_code(expert.placed(), WORK_WORDS * 8);
        let code = code.ok().filter(|_| !uses_shared).ok_or(Unsupported::Expert { slot })?;
        text.push_str(&format!(".node expert_{slot}\n{}    ret x30\n", code.text));
        scratch_vectors = scratch_vectors.max(code.scratch_vectors);
    }
    Ok((text, scratch_vectors))
}

impl Image {
    /// Writes a family into words.
    pub fn new(
        config: &GenesisConfig,
        family: &Family,
        index: FamilyIndex,
        step: &Program,
        layout: &Layout,
        scratch_vectors: usize,
    ) -> Result<Image, Unsupported> {
        let parameters = learning_parameters(config);
        if parameters.rule != IndexRule::UcbV || !family.is_plain() {
            return Err(Unsupported::Rule);
        }
        let config_words = layout.word("LN_TABLE") + table_words().len();
        let mut image = Image::empty(
            [
                (SegmentBase::Env, PAGE_WORDS),
                (SegmentBase::Work, WORK_WORDS + 4 * scratch_vectors),
                (SegmentBase::Cfg, config_words),
                (SegmentBase::Expert, ARMS_MAX * SLOT_WORDS),
                (SegmentBase::Bandit, BUCKET_WORDS * (1 + family.buckets().len())),
                (SegmentBase::Trace, layout.word("RECORDS") + 2 * TRACE_RECORDS),
            ],
            family.layout().state_bits(),
        );
        image.write_world(config, family, layout);
        image.write_learning(config, family, layout);
        image.write_routing(family, layout)?;
        image.write_experts(config, family, step, layout);
        let buckets = std::iter::once(family.episode_bucket()).chain(family.buckets());
        for (place, bucket) in image.segment_mut(SegmentBase::Bandit).chunks_mut(BUCKET_WORDS).zip(buckets) {
            place.copy_from_slice(&bucket.words());
        }
        image.segment_mut(SegmentBase::Work)[layout.word("FAMILY")] = u64::from(index.0);
        Ok(image)
    }

    fn empty(sizes: [(SegmentBase, usize); 6], state_bits: usize) -> Image {
        let mut starts = SegmentStarts::default().with(SegmentBase::State, STATE_START);
        let mut next = 0;
        let segments = sizes.map(|(base, words)| {
            let place = Place { start: next, words };
            starts = starts.with(base, 8 * next as u64);
            next += words.next_multiple_of(PAGE_WORDS);
            (base, place)
        });
        Image { shared: vec![0; next], state: vec![0; 4 * state_bits], starts, segments }
    }

    fn place(&self, wanted: SegmentBase) -> std::ops::Range<usize> {
        let found = self.segments.iter().find(|(base, _)| *base == wanted);
        let place = found.expect("the image has every segment that the programs use").1;
        place.start..place.start + place.words
    }

    fn segment(&self, base: SegmentBase) -> &[u64] {
        &self.shared[self.place(base)]
    }

    fn segment_mut(&mut self, base: SegmentBase) -> &mut [u64] {
        let place = self.place(base);
        &mut self.shared[place]
    }

    /// The words exchanged with the world.
    pub fn env_mut(&mut self) -> &mut [u64] {
        self.segment_mut(SegmentBase::Env)
    }

    /// The words that the step keeps.
    pub fn work(&self) -> &[u64] {
        self.segment(SegmentBase::Work)
    }

    /// The records and their counts.
    pub fn trace_mut(&mut self) -> &mut [u64] {
        self.segment_mut(SegmentBase::Trace)
    }

    /// The records that wait.
    pub fn records(&self, layout: &Layout) -> Vec<Record> {
        let trace = self.segment(SegmentBase::Trace);
        let (first, count) = (layout.word("RECORDS"), trace[layout.word("WAITING")] as usize);
        trace[first..first + 2 * count].chunks_exact(2).map(|pair| Record([pair[0], pair[1]])).collect()
    }

    /// The words of a bucket; `None` is the bucket of whole episodes.
    pub fn bucket(&self, bucket: Option<u16>) -> &[u64] {
        let position = bucket.map_or(0, |bucket| 1 + usize::from(bucket));
        &self.segment(SegmentBase::Bandit)[position * BUCKET_WORDS..][..BUCKET_WORDS]
    }

    fn set(&mut self, layout: &Layout, values: &[(&str, u64)]) {
        let words = self.segment_mut(SegmentBase::Cfg);
        for (name, value) in values {
            words[layout.word(name)] = *value;
        }
    }

    /// Where planes are, what the world's numbers mean, and where segments start.
    fn write_world(&mut self, config: &GenesisConfig, family: &Family, layout: &Layout) {
        let (planes, shape) = (family.layout(), family.shape());
        let offset = |plane: usize| (plane * PLANE_BYTES) as u64;
        let middle = i64::from(shape.reward_min) + i64::from(shape.reward_max);
        let observation_bits = planes.observation().len();
        self.set(
            layout,
            &[
                ("OBSERVATION_BITS", observation_bits as u64),
                ("OBSERVATION_WORDS", observation_bits.div_ceil(64) as u64),
                ("ACTION_FIRST", offset(planes.action().start)),
                ("ACTION_BITS", planes.action().len() as u64),
                ("REWARD_PLANE", offset(planes.reward())),
                ("CLEAR_END", offset(planes.memory().start + family.memory_used())),
                ("ACTIONS", u64::from(shape.actions)),
                ("REWARD_MIDDLE", middle as u64),
                ("WINDOW", u64::from(config.context_window)),
                ("LEAVING_FACTOR", AGE.wrapping_pow(config.context_window)),
                ("TRACE_ROOM", (TRACE_RECORDS - RECORDS_PER_STEP) as u64),
                ("LANE_MASK", 1),
            ],
        );
        let starts = self.starts;
        let start = |base| starts.get(base);
        self.set(
            layout,
            &[
                ("BANDIT_START", start(SegmentBase::Bandit)),
                ("STATE_START", start(SegmentBase::State)),
                ("CFG_START", start(SegmentBase::Cfg)),
                ("EXPERT_START", start(SegmentBase::Expert)),
                ("TRACE_START", start(SegmentBase::Trace)),
                ("WORK_START", start(SegmentBase::Work)),
                ("ENV_START", start(SegmentBase::Env)),
            ],
        );
        let first = layout.word("WORD_FACTORS");
        self.segment_mut(SegmentBase::Cfg)[first..first + WORD_FACTORS.len()].copy_from_slice(&WORD_FACTORS);
    }

    /// Parameters, scales and tables.
    fn write_learning(&mut self, config: &GenesisConfig, family: &Family, layout: &Layout) {
        let parameters = learning_parameters(config);
        let (drift, threshold) = parameters
            .change
            .map_or((0, 0), |change| (change.drift.to_raw() as u64, change.threshold.to_raw() as u64));
        self.set(
            layout,
            &[
                ("EXPLORATION", (parameters.exploration.to_raw() as u64) << 16),
                ("LOSS_REFERENCE", parameters.loss_reference.to_raw() as u64),
                ("PRIOR_RATE", parameters.prior_rate.to_raw() as u64),
                ("PRIOR_MIN", parameters.prior_min.to_raw() as u64),
                ("PRIOR_MAX", parameters.prior_max.to_raw() as u64),
                ("CHANGE", u64::from(parameters.change.is_some())),
                ("DRIFT", drift),
                ("THRESHOLD", threshold),
                ("BAD_PENALTY", i64::from(config.bad_penalty) as u64),
                ("HAS_STICKY", u64::from(family.has_sticky())),
                ("BUCKETS", family.buckets().len() as u64),
            ],
        );
        let mut wide = family.payoff().clone();
        let (step_part, episode_part) = wide.widen();
        self.set(
            layout,
            &[("WIDE_STEP_PART", step_part.to_raw()), ("WIDE_EPISODE_PART", episode_part.to_raw())],
        );
        let (now, wide) = (scale_words(family.payoff()), scale_words(&wide));
        let config_words = self.segment_mut(SegmentBase::Cfg);
        config_words[layout.word("WIDE_SCALES")..][..wide.len()].copy_from_slice(&wide);
        let tables = table_words();
        config_words[layout.word("LN_TABLE")..][..tables.len()].copy_from_slice(&tables);
        let work = self.segment_mut(SegmentBase::Work);
        work[layout.word("STEP_SCALE")..][..now.len()].copy_from_slice(&now);
        work[layout.word("COVERS_BAD")] = u64::from(family.payoff().covers_bad());
    }

    /// The declared bits with their columns, and the directory.
    fn write_routing(&mut self, family: &Family, layout: &Layout) -> Result<(), Unsupported> {
        let directory = family.directory();
        let mut inputs = directory.inputs().to_vec();
        inputs.sort_unstable();
        inputs.dedup();
        let mut words = Vec::new();
        for input in &inputs {
            let RouteInput::State(bit) = input else { return Err(Unsupported::Routing) };
            // A column is the signature of its bit alone.
            words.push((usize::from(*bit) * PLANE_BYTES) as u64);
            words.push(directory.signature(|other| other == *input));
        }
        let entries = directory.entries();
        self.set(
            layout,
            &[("ROUTE_INPUTS", inputs.len() as u64), ("DIRECTORY_MASK", entries.len() as u64 - 1)],
        );
        let config_words = self.segment_mut(SegmentBase::Cfg);
        config_words[layout.word("ROUTE")..][..words.len()].copy_from_slice(&words);
        for (word, entry) in config_words[layout.word("DIRECTORY")..].iter_mut().zip(entries) {
            *word = u64::from(*entry);
        }
        Ok(())
    }

    /// Where the code of each slot starts and what a call costs; an empty slot leads nowhere.
    fn write_experts(&mut self, config: &GenesisConfig, family: &Family, step: &Program, layout: &Layout) {
        let start = |slot: usize| {
            let name = format!("expert_{slot}");
            step.nodes().iter().find(|node| node.name == name).map_or(u64::MAX, |node| u64::from(node.start))
        };
        let slots = self.segment_mut(SegmentBase::Expert).chunks_mut(SLOT_WORDS);
        for (slot, words) in slots.enumerate() {
            words[layout.word("ENTRY")] = start(slot);
            let cost = family.expert(slot).map_or(0, |expert| expert.cost());
            words[layout.word("COST")] = u64::from(cost);
            words[layout.word("PENALTY")] = cost_penalty(config, cost) as u64;
        }
    }
}

/// Low end, high end and reciprocal of both scales, and the halvings of the episode's.
fn scale_words(scale: &PayoffScale) -> [u64; 7] {
    let words = |range: &PayoffRange| {
        let (low, high, reciprocal) = range.parts();
        [low as u64, high as u64, reciprocal]
    };
    let (step, episode, shift) = scale.ranges();
    let ([a, b, c], [d, e, f]) = (words(&step), words(&episode));
    [a, b, c, d, e, f, u64::from(shift)]
}
