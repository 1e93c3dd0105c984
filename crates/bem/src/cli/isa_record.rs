//! What a program of the control core leaves behind: words that it logged and tasks that it was taught, in a ledger.
//!
//! TEACH is answered by the teacher over all domains (TEACH_STEP): the domain is its place in `bem ladder`, the difficulty a
//! band, and the context draws the hidden choices; the task goes into the program's memory. With a folder, every line of LOG and every task is an entry of a signed ledger there.
//! Clauses: ISA-4, LOG-1; decisions D-119, D-204.

use crate::file_store::FileStore;
use crate::keys;
use anyhow::{Context as _, Result, bail};
use bem_base::digest::{hash, hash_parts};
use bem_games::compose::NoPrograms;
use bem_isa::coprocessor::{TaskDescriptor, TeachSlot};
use bem_isa::program::Program;
use bem_ledger::entry::{Entry, Genesis, event_code};
use bem_ledger::log::{Log, LogOptions, store_blob};
use bem_teacher::ladder::Domain;
use bem_teacher::teacher::{Teacher, TeacherConfig};
use serde_json::{Value, json};
use std::path::Path;

/// Tasks that one program may ask for.
const TASKS_MAX: usize = 1 << 12;

/// A task that a program was given.
pub struct Taught {
    domain: Domain,
    asked: [u64; 3],
    given: TaskDescriptor,
}

/// The teacher behind TEACH; it is made when it is first asked.
pub struct Teaching {
    seed: u64,
    teacher: Option<Teacher>,
    tasks: Vec<Taught>,
}

impl Teaching {
    /// A teacher whose draws come from this seed.
    pub fn new(seed: u64) -> Teaching {
        Teaching { seed, teacher: None, tasks: Vec::new() }
    }

    /// The descriptors of all tasks, by number.
    pub fn descriptors(&self) -> Vec<Value> {
        let shown = |task: &Taught| {
            let [_, band, context] = task.asked;
            let TaskDescriptor { template, difficulty, seed, tree, .. } = &task.given;
            let (domain, seed) = (task.domain.name(), seed.to_string());
            json!({ "domain": domain, "band": band, "context": context, "task": tree, "seed": seed,
                "template": template, "difficulty": difficulty.to_string() })
        };
        self.tasks.iter().map(shown).collect()
    }
}

impl TeachSlot for Teaching {
    fn teach(&mut self, domain: u64, difficulty: u64, context: u64) -> Option<TaskDescriptor> {
        let named = Domain::all().nth(usize::try_from(domain).ok()?)?;
        if TASKS_MAX <= self.tasks.len() {
            return None;
        }
        let teacher = match &mut self.teacher {
            Some(teacher) => teacher,
            none => none.insert(Teacher::new(TeacherConfig::new(self.seed), &NoPrograms).ok()?),
        };
        let band = u8::try_from(difficulty).ok()?;
        if teacher.ladder(named)?.bands() <= usize::from(band) {
            return None;
        }
        let task = teacher.task_for(named, band, context, &NoPrograms).ok()??;
        let given = TaskDescriptor {
            number: self.tasks.len() as u64,
            domain,
            band: u64::from(task.band),
            template: u64::from(task.template.0),
            difficulty: task.difficulty.to_raw(),
            seed: task.seed,
            tree: task.tree.to_string(),
        };
        self.tasks.push(Taught { domain: named, asked: [domain, difficulty, context], given: given.clone() });
        Some(given)
    }
}

/// The ledger of a program's run, if one is kept.
pub struct Record {
    log: Option<Log<FileStore>>,
    logged: usize,
    taught: usize,
}

impl Record {
    /// Begins a ledger in a folder, or none.
    pub fn create(folder: Option<&Path>, program: &Program, seed: u64) -> Result<Record> {
        let log = folder.map(|folder| begin(folder, program, seed)).transpose()?;
        Ok(Record { log, logged: 0, taught: 0 })
    }

    /// Appends what is new, and commits it.
    pub fn write(&mut self, lines: &[Vec<u64>], teaching: &Teaching) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        for (index, line) in lines.iter().enumerate().skip(self.logged) {
            let payload = line.iter().flat_map(|word| word.to_le_bytes()).collect();
            let values = vec![index as i64];
            log.append(&Entry::Event { step: index as u64, code: event_code::LOGGED, values, payload })?;
        }
        for (number, task) in teaching.tasks.iter().enumerate().skip(self.taught) {
            let [domain, difficulty, context] = task.asked;
            let values = [domain, difficulty, context, task.given.seed, number as u64]
                .map(|value| value as i64)
                .to_vec();
            let payload = task.given.tree.clone().into_bytes();
            log.append(&Entry::Event { step: number as u64, code: event_code::TAUGHT, values, payload })?;
        }
        (self.logged, self.taught) = (lines.len(), teaching.tasks.len());
        log.commit()?;
        Ok(())
    }
}

fn begin(folder: &Path, program: &Program, seed: u64) -> Result<Log<FileStore>> {
    if folder.join("ledger/checkpoint").exists() {
        bail!("{} holds a history already: name another folder", folder.display());
    }
    let ledger = folder.join("ledger");
    std::fs::create_dir_all(&ledger).with_context(|| format!("{} cannot be made", ledger.display()))?;
    let signer = keys::for_new_run(None, folder)?;
    let mut store = FileStore::open_locked(&ledger).with_context(|| ledger.display().to_string())?;
    // The program is what the ledger is about; it is there before anything names it.
    let configuration = program.to_bytes();
    store_blob(&mut store, &configuration)?;
    let genesis = Genesis {
        instance: hash_parts("bem/instance", &[&signer.public_key(), &seed.to_le_bytes()]),
        configuration: hash(&configuration),
        code: env!("CARGO_PKG_VERSION").to_string(),
        public_key: signer.public_key(),
    };
    Ok(Log::create(store, signer, &genesis, LogOptions::default())?)
}
