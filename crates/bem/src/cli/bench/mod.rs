//! `bem bench`: micro-benchmarks, each beside a floor measured in the same run.
//!
//! A benchmark is a function that returns one [`Measurement`]; the files of this directory hold them by area and
//! [`registry`] lists them. The shared machine is noisy, so times are minima over many short trials and ratios
//! count more than figures.

mod beside;
mod bounds;
mod choice;
mod circuits;
mod evaluate;
mod games;
mod isa;
mod layers;
mod learner_regret;
mod ledger;
mod long_run;
mod measure;
mod pacing;
mod peers;
mod people;
mod prover;
mod regret;
mod restore;
mod rules;
mod schedule;
pub mod serve;
mod serve_long;
mod statistics;
mod step;
mod threads;
mod tools;

pub use measure::{Measurement, cpu_seconds, minimum_nanoseconds};

use super::Answer;
use crate::{interrupt, spelling};
use anyhow::bail;
use clap::Args;
use std::io::IsTerminal;

/// Micro-benchmarks with ratios to their floor.
#[derive(Args)]
#[command(after_help = "Example: bem bench index_choose_uncached --json\n\
    NAME is a benchmark or an area (all benchmarks of one file). Without NAME\n\
    everything runs. `bem bench regret` prints the whole table of the regret\n\
    laboratory, `bem bench threads` a run with one thread and with two, `bem bench\n\
    bounds` what can be reached where the best arm changes, `bem bench\n\
    regret_layers` the regret of experts, templates and schedules at several\n\
    lengths, `bem bench regret_learner` the regret of the whole learner beside its\n\
    choice rule alone, `bem bench pacing` the schedulers side by side,\n\
    `bem bench choice_rules` the choice rules in worlds where each may be right,\n\
    `bem bench serve` the decision service under load, `bem bench serve_long` a\n\
    million decisions tenth by tenth, `bem bench long_run` ten million steps online\n\
    tenth by tenth (BEM_LONG_STEPS says how many, BEM_LONG_FOLDER where the run is\n\
    kept), `bem bench people` whether answers help, `bem\n\
    bench people_bad` whether something BAD happens more often beside a liar, `bem\n\
    bench people_page` how long the next question takes in a long history, `bem\n\
    bench restore` how soon an image decides.")]
pub struct BenchArguments {
    /// Benchmarks or areas to run
    names: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// List the names and stop
    #[arg(long)]
    list: bool,
}

/// One benchmark: its name in the contract, the area it belongs to, what it measures, and how.
pub struct Benchmark {
    /// The name in the contract.
    pub name: &'static str,
    /// The file it lives in; an area can be asked for as a whole.
    pub area: &'static str,
    /// One line for `--list`.
    pub about: &'static str,
    /// Does the work.
    pub run: fn() -> anyhow::Result<Measurement>,
}

/// Every benchmark, area by area. Register yours here.
fn registry() -> Vec<&'static Benchmark> {
    let areas: &[&'static [Benchmark]] = &[
        choice::BENCHMARKS,
        circuits::BENCHMARKS,
        regret::BENCHMARKS,
        layers::BENCHMARKS,
        learner_regret::BENCHMARKS,
        rules::BENCHMARKS,
        schedule::BENCHMARKS,
        pacing::BENCHMARKS,
        beside::BENCHMARKS,
        bounds::BENCHMARKS,
        threads::BENCHMARKS,
        isa::BENCHMARKS,
        games::BENCHMARKS,
        evaluate::BENCHMARKS,
        ledger::BENCHMARKS,
        step::BENCHMARKS,
        prover::BENCHMARKS,
        serve::BENCHMARKS,
        serve_long::BENCHMARKS,
        long_run::BENCHMARKS,
        people::BENCHMARKS,
        people::harm::BENCHMARKS,
        people::page::BENCHMARKS,
        tools::BENCHMARKS,
        restore::BENCHMARKS,
    ];
    areas.iter().flat_map(|area| area.iter()).collect()
}

/// Runs the benchmarks asked for and prints a table or one JSON object.
pub fn run(arguments: &BenchArguments) -> anyhow::Result<Answer> {
    let registry = registry();
    let selected = select(&registry, &arguments.names)?;
    if arguments.list {
        list(&selected, arguments.json);
        return Ok(Answer::Yes);
    }
    if arguments.names == ["regret"] {
        return regret::laboratory(arguments.json);
    }
    if arguments.names == ["regret_layers"] {
        return layers::report(arguments.json);
    }
    if arguments.names == ["regret_learner"] {
        return learner_regret::report(arguments.json);
    }
    if arguments.names == ["beside"] {
        return beside::report(arguments.json);
    }
    if arguments.names == ["threads"] {
        return threads::report(arguments.json);
    }
    if arguments.names == ["bounds"] {
        return bounds::report(arguments.json);
    }
    if arguments.names == ["choice_rules"] {
        return rules::report(arguments.json);
    }
    if arguments.names == ["serve"] {
        return serve::report(arguments.json);
    }
    if arguments.names == ["serve_long"] {
        return serve_long::report(arguments.json);
    }
    if arguments.names == ["long_run"] {
        return long_run::report(arguments.json);
    }
    if arguments.names == ["people_bad"] {
        return people::harm::report(arguments.json);
    }
    if let Some(kinds) = people::kinds(&arguments.names) {
        return people::report(&kinds, arguments.json);
    }
    if arguments.names == ["pacing"] {
        return pacing::report(arguments.json);
    }
    let progress = progress_bar(selected.len() as u64, arguments.json);
    let mut measurements = Vec::new();
    interrupt::listen();
    for benchmark in &selected {
        if interrupt::is_asked() {
            progress.suspend(|| {
                note!("bem: interrupted after {} of {} benchmarks", measurements.len(), selected.len());
            });
            break;
        }
        progress.set_message(benchmark.name);
        let measurement = (benchmark.run)()?;
        assert_eq!(measurement.name, benchmark.name, "a benchmark returns the name it is registered under");
        measurements.push(measurement);
        progress.inc(1);
    }
    progress.finish_and_clear();
    if arguments.json {
        let benches: Vec<_> = measurements.iter().map(Measurement::to_json).collect();
        say!("{}", serde_json::json!({ "machine": measure::machine(), "benches": benches }));
    } else {
        say!("{}", measure::machine());
        say_text!("{}", measure::table(&measurements));
    }
    let missed: Vec<String> = measurements.iter().filter_map(Measurement::missed).collect();
    missed.iter().for_each(|missed| note!("bem: missed: {missed}"));
    Ok(if missed.is_empty() { Answer::Yes } else { Answer::No })
}

/// Yes if a figure is what was asked for; a miss is said beside the output.
fn answer_to(measurement: &Measurement) -> Answer {
    match measurement.missed() {
        None => Answer::Yes,
        Some(missed) => {
            note!("bem: missed: {missed}");
            Answer::No
        }
    }
}

fn select<'a>(registry: &[&'a Benchmark], names: &[String]) -> anyhow::Result<Vec<&'a Benchmark>> {
    let matches = |benchmark: &Benchmark, name: &str| benchmark.name == name || benchmark.area == name;
    if let Some(unknown) = names.iter().find(|name| !registry.iter().any(|entry| matches(entry, name))) {
        let known: Vec<_> = registry.iter().map(|benchmark| benchmark.name).collect();
        bail!(
            "unknown benchmark {unknown:?}{}; known: {}",
            spelling::hint(unknown, known.iter().copied()),
            known.join(", ")
        );
    }
    let wanted = |entry: &&&Benchmark| names.is_empty() || names.iter().any(|name| matches(entry, name));
    Ok(registry.iter().filter(wanted).copied().collect())
}

fn list(selected: &[&Benchmark], json: bool) {
    if json {
        let names: Vec<_> = selected.iter().map(|benchmark| benchmark.name).collect();
        say!("{}", serde_json::json!({ "names": names }));
    } else {
        for benchmark in selected {
            say!("{:<26} {:<10} {}", benchmark.name, benchmark.area, benchmark.about);
        }
    }
}

/// A progress bar on a terminal, and nothing at all when output is piped or machine-read.
pub fn progress_bar(length: u64, quiet: bool) -> indicatif::ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let style = indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}]");
    indicatif::ProgressBar::new(length).with_style(style.expect("the template is a constant"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_an_unknown_one_lists_the_known() {
        let registry = registry();
        for (position, benchmark) in registry.iter().enumerate() {
            assert!(
                registry[..position].iter().all(|earlier| earlier.name != benchmark.name),
                "{}",
                benchmark.name
            );
        }
        let error = select(&registry, &["no_such_bench".into()]).err().expect("the name is unknown");
        assert!(error.to_string().starts_with("unknown benchmark \"no_such_bench\"; known: "), "{error}");
        assert_eq!(select(&registry, &[]).expect("no names select all").len(), registry.len());
    }
}
