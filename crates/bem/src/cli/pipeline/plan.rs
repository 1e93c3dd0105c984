//! The plan of a pipeline: from arguments, in the folder, and back.

use super::histories::PLAN;
use anyhow::{Context as _, Result, bail};
use bem_machine::config::GenesisConfig;
use bem_pipeline::domain::DOMAINS;
use bem_pipeline::pipeline::Plan;
use bem_teacher::ladder::STAGES_MAX;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// What a user may say about a plan.
#[derive(Args)]
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
}

const FORMAT: &str = "bem-pipeline-1";

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
    };
    kept.check()?;
    Ok(kept)
}

/// The plan in a folder. Domains that it does not know come in late; everything else was fixed when it began.
pub fn resumed(directory: &Path, arguments: &PlanArguments) -> Result<Kept> {
    let text = std::fs::read_to_string(directory.join(PLAN))
        .with_context(|| format!("{} is no pipeline: it has no {PLAN}", directory.display()))?;
    let mut kept: Kept = serde_json::from_str(&text).with_context(|| PLAN.to_string())?;
    kept.check()?;
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
    let known = |kept: &Kept, name: &String| kept.domains.contains(name) || kept.late.contains(name);
    for name in arguments.domains.iter().chain(&arguments.late) {
        if !known(&kept, name) {
            kept.late.push(name.clone());
        }
    }
    kept.check()?;
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

fn keep_file(directory: &Path, kept: &Kept) -> Result<()> {
    let text = serde_json::to_string_pretty(kept).context("the plan")?;
    std::fs::write(directory.join(PLAN), text + "\n")
        .with_context(|| directory.join(PLAN).display().to_string())
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
        if 10_000 < self.mixed_rounds {
            bail!("--mixed-rounds {} is out of range: 0 to 10000", self.mixed_rounds);
        }
        Ok(())
    }

    /// The plan itself.
    pub fn plan(&self) -> Result<Plan> {
        let Kept { seed, stages, unit_steps, mixed_rounds, distils, masks, compares, .. } = *self;
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
            parameters: Arc::new(GenesisConfig::default()),
        })
    }
}
