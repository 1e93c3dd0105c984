//! `bem ladder`: how the tasks of every family grow from trivial to hard, how straight that line is, and whether
//! measured difficulty agrees. Clauses: GLE-5, GLE-6.

mod measured;
mod regret;
mod show;

use super::{Answer, usage};
use crate::{interrupt, spelling};
use anyhow::{Context as _, Result, anyhow, bail};
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_engine::learner::Settings;
use bem_engine::measure::steps_to_solve;
use bem_games::compose::NoPrograms;
use bem_teacher::fit::{Line, line, spearman};
use bem_teacher::ladder::{Domain, Ladder, MEASURED_STAGES, Rung, STAGES_MAX, TRIED_STAGES};
use bem_teacher::order::{GROUP_MAX, Verdict};
use clap::{ArgGroup, Args};
use measured::{Measurement, Measurements};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

/// The difficulty ladder.
#[derive(Args)]
#[command(group = ArgGroup::new("learned").args(["measure", "bandit"]))]
#[command(after_help = "Example: bem ladder\n\
    Example: bem ladder --families parity,dyck\n\
    Example: bem ladder --families copy --measure --budget 20000\n\
    Example: bem ladder --bandit\n\n\
    Ctrl-C during --measure ends the run under way, keeps what was measured and\n\
    exits with code 1. Without --measure or --measured the measurement that this\n\
    build was shipped with is shown. The FILE of --measured holds what --save wrote\n\
    or `bem solve --json` prints, one object a line.")]
pub struct LadderArguments {
    /// Families to show rung by rung, separated by commas; without this, one line for each
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    families: Vec<String>,
    /// Stages of every ladder, 2 to 256; a family with few settings may have fewer. The rungs of five stages were chosen by
    /// measured steps, all others by the estimate
    #[arg(long, default_value_t = MEASURED_STAGES)]
    stages: usize,
    /// Instead of rungs, the settings that the rungs of five stages were chosen among
    #[arg(long, conflicts_with = "stages")]
    tried: bool,
    /// A file with measurements
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measure", "save"])]
    measured: Option<PathBuf>,
    /// Measure now: learn every rung and count the steps to a score of 0.99
    #[arg(long)]
    measure: bool,
    /// Steps that --measure may spend on one run
    #[arg(long, default_value_t = 60_000, requires = "measure", conflicts_with = "measured")]
    budget: u64,
    /// Runs of --measure for every rung, 1 to 10
    #[arg(long, default_value_t = 5, requires = "measure", conflicts_with = "measured")]
    seeds: u64,
    /// Seed of --bandit, and the first one of --measure
    #[arg(long, default_value_t = 1, requires = "learned")]
    seed: u64,
    /// Where --measure writes what it found, one line for every rung
    #[arg(long, value_name = "FILE", requires = "measure")]
    save: Option<PathBuf>,
    /// Instead, print the regret of the choice among templates
    #[arg(long, conflicts_with_all = ["families", "stages", "tried", "measured", "budget", "seeds", "save"])]
    bandit: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One family's ladder with its fit and its measurements.
struct Shown {
    domain: Domain,
    ladder: Ladder,
    rungs: Vec<Rung>,
    fit: Line,
    /// In the order of the rungs; none where nothing was measured.
    measured: Vec<Option<Measurement>>,
}

/// How the two orders agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// Some rung has no measurement.
    Unmeasured,
    /// What was measured has no order that could agree or disagree.
    Flat,
    /// Spearman's rank correlation, over rungs that fall into so many levels.
    Ordered { spearman: Fixed, levels: usize },
}

impl Shown {
    fn new(domain: Domain, arguments: &LadderArguments) -> Shown {
        let ladder = Ladder::new(domain);
        let shown = if arguments.tried { ladder.tried(TRIED_STAGES) } else { ladder.rungs(arguments.stages) };
        let rungs: Vec<Rung> = shown.into_iter().cloned().collect();
        let fit = line(&rungs.iter().map(|rung| rung.difficulty).collect::<Vec<Fixed>>());
        Shown { domain, ladder, fit, measured: vec![None; rungs.len()], rungs }
    }

    /// The logarithms of the median steps; none where a rung was not measured.
    fn logarithms(&self) -> Option<Vec<Fixed>> {
        // One more than the median, because a rung may be solved before the first step.
        let median = |measurement: &Measurement| log2_count_floor(1 + measurement.median_censored());
        self.measured.iter().map(|measured| measured.as_ref().map(median)).collect()
    }

    /// How much of what measured steps differ by a line over the stages explains.
    fn measured_fit(&self) -> Option<Fixed> {
        self.logarithms().filter(|medians| 2 <= medians.len()).map(|medians| line(&medians).r_squared)
    }

    fn agreement(&self) -> Agreement {
        let (Some(measured), Some(medians)) = (
            self.measured.iter().map(Option::as_ref).collect::<Option<Vec<&Measurement>>>(),
            self.logarithms(),
        ) else {
            return Agreement::Unmeasured;
        };
        let groups: Vec<Vec<u64>> = measured.iter().map(|measurement| measurement.censored()).collect();
        let Verdict::Ordered { levels } = Verdict::of(&groups) else { return Agreement::Flat };
        let estimated: Vec<Fixed> = self.rungs.iter().map(|rung| rung.difficulty).collect();
        Agreement::Ordered { spearman: spearman(&estimated, &medians), levels }
    }
}

/// Runs the command.
pub fn run(arguments: &LadderArguments) -> Result<Answer> {
    if arguments.bandit {
        return regret::print(arguments.seed, arguments.json);
    }
    if !(2..=STAGES_MAX).contains(&arguments.stages) {
        bail!("--stages is {}; allowed is 2 to {STAGES_MAX}", arguments.stages);
    }
    if !(1..=GROUP_MAX as u64).contains(&arguments.seeds) {
        bail!("--seeds is {}; allowed is 1 to {GROUP_MAX}", arguments.seeds);
    }
    let mut shown: Vec<Shown> =
        domains(&arguments.families)?.into_iter().map(|domain| Shown::new(domain, arguments)).collect();
    let mut answer = Answer::Yes;
    if arguments.measure {
        answer = measure(&mut shown, arguments)?;
    } else {
        let file = match &arguments.measured {
            Some(path) => Measurements::read(path)?,
            None => Measurements::shipped()?,
        };
        for family in &mut shown {
            family.measured = family.rungs.iter().map(|rung| file.of(&rung.tree)).collect();
        }
    }
    if arguments.json {
        let families: Vec<_> = shown.iter().map(show::to_json).collect();
        say!("{}", json!({ "stages": arguments.stages, "families": families }));
    } else if arguments.families.is_empty() {
        show::print_overview(&shown);
    } else {
        shown.iter().for_each(show::print_rungs);
    }
    Ok(answer)
}

fn domains(names: &[String]) -> Result<Vec<Domain>> {
    if names.is_empty() {
        return Ok(Domain::all().collect());
    }
    let known = || Domain::all().map(Domain::name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        Domain::from_name(name).ok_or_else(|| {
            anyhow!(
                "there is no family called {name:?}{}; known are {}",
                spelling::hint(name, Domain::all().map(Domain::name)),
                known()
            )
        })
    };
    names.iter().map(find).collect()
}

/// Learns every rung with every seed; each line is written as soon as it is known. Ctrl-C ends it after the run under way:
/// the rung that this belongs to then counts with the runs that it has.
fn measure(shown: &mut [Shown], arguments: &LadderArguments) -> Result<Answer> {
    let mut file = match &arguments.save {
        Some(path) => Some(std::fs::File::create(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    interrupt::listen();
    let all: usize = shown.iter().map(|family| family.rungs.len()).sum();
    let mut whole = 0;
    for (rung, measured) in shown.iter_mut().flat_map(|family| family.rungs.iter().zip(&mut family.measured))
    {
        let mut steps = Vec::new();
        for seed in usage::seeds("--seed", arguments.seed, arguments.seeds)? {
            if interrupt::is_asked() {
                break;
            }
            let game = rung.tree.build(seed, &NoPrograms)?;
            let settings = Settings { budget: arguments.budget, ..Settings::new(seed) };
            steps.push(steps_to_solve(game.as_ref(), settings)?);
        }
        whole += usize::from(steps.len() as u64 == arguments.seeds);
        if !steps.is_empty() {
            let measurement = Measurement { budget: arguments.budget, steps };
            let line = measurement.to_line(&rung.tree);
            note!("{line}");
            if let Some(file) = &mut file {
                writeln!(file, "{line}")?;
            }
            *measured = Some(measurement);
        }
        if interrupt::is_asked() && whole < all {
            note!("bem: interrupted after {whole} of {all} rungs; what was measured is shown and saved");
            return Ok(Answer::No);
        }
    }
    Ok(Answer::Yes)
}
