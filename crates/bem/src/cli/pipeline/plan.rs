//! The plan of a pipeline: from arguments, in the folder, and back.
//!
//! What comes in later is written down with the number of the unit before which it came in, so that the history follows from the
//! plan alone. Clauses: PIPE-1, PIPE-2; decision D-237.

use super::histories::PLAN;
use crate::cli::config::ConfigFile;
use anyhow::{Context as _, Result, bail};
use bem_engine::parameters;
use bem_machine::config::GenesisConfig;
use bem_pipeline::PipelineError;
use bem_pipeline::domain::{DOMAINS, families_of};
use bem_pipeline::pipeline::Plan;
use bem_teacher::ladder::STAGES_MAX;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// What a user may say about a plan.
#[derive(Args, Default)]
pub struct PlanArguments {
    /// The domains, separated by commas [default: all but the last, which comes in late]
    #[arg(long, value_delimiter = ',')]
    domains: Vec<String>,
    /// Domains that come in when the others have been learned, one after the other (phase 4)
    #[arg(long, value_delimiter = ',')]
    late: Vec<String>,
    /// All random choices come from this number [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Rungs of every family's ladder [default: 4]
    #[arg(long)]
    stages: Option<usize>,
    /// Steps of the first try at a setting [default: 20000]
    #[arg(long)]
    unit_steps: Option<u64>,
    /// Rounds of mixed learning in every cycle [default: 6]
    #[arg(long)]
    mixed_rounds: Option<u32>,
    /// Learn every setting of the main machine from scratch as well, to compare
    #[arg(long)]
    compare: bool,
    /// Hand nothing on from specialists to the main machine
    #[arg(long)]
    no_distillation: bool,
    /// Let the main machine learn from off-policy and unstable episodes too
    #[arg(long)]
    no_masking: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// A plan as the folder keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    format: String,
    seed: u64,
    domains: Vec<String>,
    late: Vec<String>,
    stages: usize,
    unit_steps: u64,
    mixed_rounds: u32,
    distils: bool,
    masks: bool,
    compares: bool,
    /// The configuration of every machine as TOML; none for the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    /// The main machine's, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    main_configuration: Option<String>,
    /// Whether it goes on without end, as under a server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    endless: bool,
    /// Domains that were named later and wait for the next round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<String>,
    /// Domains that were named later and came in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taken_in: Vec<TakenIn>,
}

/// A domain that came in later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TakenIn {
    domain: String,
    /// The number of the first unit after it.
    unit: u32,
}

const FORMAT: &str = "bem-pipeline-1";
/// The main machine's configuration where nobody has said one: Algorithm D picks its verification jobs.
const MAIN_CONFIGURATION: &str = "scheduler = \"linear\"\n";

/// The plan that arguments say.
pub fn new(arguments: &PlanArguments) -> Result<Kept> {
    let names: Vec<String> = DOMAINS.iter().map(|(name, _)| (*name).to_string()).collect();
    let (first, last) = names.split_at(names.len() - 1);
    let is_default = arguments.domains.is_empty() && arguments.late.is_empty();
    let late = if is_default { last.to_vec() } else { arguments.late.clone() };
    let others = || first.iter().filter(|name| !late.contains(name)).cloned().collect();
    let kept = Kept {
        format: FORMAT.to_string(),
        seed: arguments.seed.unwrap_or(1),
        domains: if arguments.domains.is_empty() { others() } else { arguments.domains.clone() },
        late,
        stages: arguments.stages.unwrap_or(4),
        unit_steps: arguments.unit_steps.unwrap_or(20_000),
        mixed_rounds: arguments.mixed_rounds.unwrap_or(6),
        distils: !arguments.no_distillation,
        masks: !arguments.no_masking,
        compares: arguments.compare,
        configuration: arguments
            .config
            .is_named()
            .then(|| arguments.config.load())
            .transpose()?
            .map(|config| config.to_toml()),
        main_configuration: (!arguments.config.is_named()).then(|| MAIN_CONFIGURATION.to_string()),
        endless: false,
        asked: Vec::new(),
        taken_in: Vec::new(),
    };
    kept.check()?;
    Ok(kept)
}

/// The plan of a server's pipeline in this folder, made if there is none. It has no end, and domains that it does not know come in.
pub fn of_server(directory: &Path, domains: &[String], seed: u64) -> Result<Kept> {
    let mut kept = match directory.join(PLAN).exists() {
        true => read(directory)?,
        false => {
            new(&PlanArguments { domains: domains.to_vec(), seed: Some(seed), ..PlanArguments::default() })?
        }
    };
    kept.endless = true;
    kept.ask_for_all(domains)?;
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    keep_file(directory, &kept)?;
    Ok(kept)
}

/// The plan in a folder.
pub fn read(directory: &Path) -> Result<Kept> {
    let text = std::fs::read_to_string(directory.join(PLAN))
        .with_context(|| format!("{} is no pipeline: it has no {PLAN}", directory.display()))?;
    let kept: Kept = serde_json::from_str(&text).with_context(|| PLAN.to_string())?;
    kept.check()?;
    Ok(kept)
}

/// The plan in a folder. Domains that it does not know come in late; everything else was fixed when it began.
pub fn resumed(directory: &Path, arguments: &PlanArguments) -> Result<Kept> {
    let mut kept = read(directory)?;
    let frozen = [
        ("--seed", arguments.seed.is_some()),
        ("--stages", arguments.stages.is_some()),
        ("--unit-steps", arguments.unit_steps.is_some()),
        ("--mixed-rounds", arguments.mixed_rounds.is_some()),
        ("--compare", arguments.compare),
        ("--no-distillation", arguments.no_distillation),
        ("--no-masking", arguments.no_masking),
    ];
    if let Some((option, _)) = frozen.into_iter().find(|(_, is_given)| *is_given) {
        bail!(
            "{option} has no effect on --resume {}: it was fixed when the pipeline began",
            directory.display()
        );
    }
    arguments.config.check_against(&*kept.parameters()?)?;
    kept.ask_for_all(&arguments.domains)?;
    kept.ask_for_all(&arguments.late)?;
    keep_file(directory, &kept)?;
    Ok(kept)
}

/// Puts a plan into a new folder.
pub fn keep(directory: &Path, kept: &Kept) -> Result<()> {
    if directory.join(PLAN).exists() {
        bail!(
            "{} holds a pipeline already: go on with --resume, or name another folder",
            directory.display()
        );
    }
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    keep_file(directory, kept)
}

/// Writes the plan, durably and in one step.
pub fn keep_file(directory: &Path, kept: &Kept) -> Result<()> {
    let text = serde_json::to_string_pretty(kept).context("the plan")?;
    replace(directory, PLAN, (text + "\n").as_bytes())
}

/// Replaces a file of the folder by these bytes, durably and in one step.
pub fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (place, aside) = (directory.join(name), directory.join(format!("{name}.tmp")));
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&aside, &place)?;
        std::fs::File::open(directory)?.sync_all()
    };
    write().with_context(|| place.display().to_string())
}

impl Kept {
    fn check(&self) -> Result<()> {
        if self.format != FORMAT {
            bail!("{PLAN} says format {:?}; this version knows {FORMAT:?}", self.format);
        }
        if !(2..=STAGES_MAX).contains(&self.stages) {
            bail!("--stages {} is out of range: 2 to {STAGES_MAX}", self.stages);
        }
        if self.unit_steps == 0 {
            bail!("--unit-steps 0 is out of range: at least 1");
        }
        self.parameters()?;
        self.main_parameters()?;
        if 10_000 < self.mixed_rounds {
            bail!("--mixed-rounds {} is out of range: 0 to 10000", self.mixed_rounds);
        }
        Ok(())
    }

    fn parameters(&self) -> Result<Arc<GenesisConfig>> {
        let Some(text) = &self.configuration else { return Ok(Arc::default()) };
        let config = parameters::read(text).with_context(|| format!("the configuration in {PLAN}"))?;
        Ok(Arc::new(config))
    }

    /// The main machine's configuration: plans that name none have one for all machines.
    fn main_parameters(&self) -> Result<Arc<GenesisConfig>> {
        let Some(text) = &self.main_configuration else { return self.parameters() };
        let config =
            parameters::read(text).with_context(|| format!("the main machine's configuration in {PLAN}"))?;
        Ok(Arc::new(config))
    }

    fn knows(&self, name: &str) -> bool {
        let later = self.taken_in.iter().map(|one| &one.domain);
        self.domains.iter().chain(&self.late).chain(&self.asked).chain(later).any(|known| known == name)
    }

    /// Names a domain later: it comes in with the next round.
    pub fn ask_for(&mut self, name: &str) -> Result<(), PipelineError> {
        families_of(name)?;
        if self.knows(name) {
            return Err(PipelineError::Twice { name: name.to_string() });
        }
        self.asked.push(name.to_string());
        Ok(())
    }

    fn ask_for_all(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            match self.ask_for(name) {
                Ok(()) | Err(PipelineError::Twice { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Domains that nobody has named yet.
    pub fn unnamed(&self) -> Vec<&'static str> {
        DOMAINS.iter().map(|(name, _)| *name).filter(|name| !self.knows(name)).collect()
    }

    /// Domains that wait for the next round.
    pub fn asked(&self) -> &[String] {
        &self.asked
    }

    /// Those that wait come in before the unit of this number; whether there were any.
    pub fn let_in(&mut self, unit: u32) -> bool {
        let waiting = std::mem::take(&mut self.asked);
        let is_new = !waiting.is_empty();
        self.taken_in.extend(waiting.into_iter().map(|domain| TakenIn { domain, unit }));
        is_new
    }

    /// Domains that came in before the unit of this number.
    pub fn taken_in_at(&self, unit: u32) -> Vec<String> {
        let here = self.taken_in.iter().filter(|one| one.unit == unit);
        here.map(|one| one.domain.clone()).collect()
    }

    /// The plan itself, without what came in later.
    pub fn plan(&self) -> Result<Plan> {
        let Kept { seed, stages, unit_steps, mixed_rounds, distils, masks, compares, endless, .. } = *self;
        Ok(Plan {
            seed,
            domains: self.domains.clone(),
            late: self.late.clone(),
            stages,
            unit_steps,
            mixed_rounds,
            distils,
            masks,
            compares,
            endless,
            parameters: self.parameters()?,
            main: self.main_parameters()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_machine::config::SchedulerKind;

    #[test]
    fn algorithm_d_schedules_the_main_machine_unless_a_plan_says_otherwise() {
        let kept = new(&PlanArguments::default()).unwrap();
        let plan = kept.plan().unwrap();
        assert_eq!(plan.main.scheduler, SchedulerKind::Linear);
        assert_eq!(plan.parameters.scheduler, SchedulerKind::Paced);
        // A plan of an earlier version names none for the main machine.
        let before = Kept { main_configuration: None, ..kept }.plan().unwrap();
        assert_eq!(before.main.scheduler, SchedulerKind::Paced);
    }
}
