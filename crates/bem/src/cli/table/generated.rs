//! `bem table --generated`: says what is earned while learning in worlds drawn from a seed, beside three kinds of peers.
//!
//! What names the sources under test is found out here; worlds, players and their figures are those of
//! `bem_tables::generated`. Clauses: VM-16, SCC-8; decision D-64.

use super::{EDGES, TableArguments, over_http};
use crate::cli::Answer;
use crate::interrupt;
use anyhow::{Context as _, Result, bail};
use bem_base::digest::hash_parts;
use bem_games::generated::WorldKind;
use bem_machine::config::GenesisConfig;
use bem_tables::generated::served::{OpenDoor, open_within};
use bem_tables::generated::{
    CHANGING, Column, Compared, Drawing, KindColumns, MEAN_MIN, SERVED_SHARE_MIN, SHARE_MIN, changing_json,
    missed, served_share, summary, to_json,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Runs the worlds.
pub fn run(arguments: &TableArguments, config: &Arc<GenesisConfig>) -> Result<Answer> {
    let (kinds, is_changing) = kinds_of(arguments)?;
    if arguments.worlds == 0 {
        bail!("--worlds 0: at least one world of every kind is needed");
    }
    let sources = match &arguments.sources {
        Some(text) => text.clone(),
        None => own_digest()?,
    };
    interrupt::listen();
    if !arguments.json {
        say!(
            "{} worlds of each kind, {} steps each; seeds from sources {} and salt {}",
            arguments.worlds,
            arguments.budget,
            &sources[..sources.len().min(16)],
            arguments.salt
        );
        say!(
            "\n| kind | player | median online score | mean (95 %) | median, last half | steps to 0.95 (never) | CPU s a world |"
        );
        say!("|---|---|---|---|---|---|---|");
    }
    let door: OpenDoor = if arguments.http { over_http::open } else { open_within };
    let drawing = Drawing {
        sources: &sources,
        salt: &arguments.salt,
        worlds: arguments.worlds,
        steps: arguments.budget,
        ablate: arguments.ablate,
        served: arguments.served.then_some(door),
        config,
    };
    let mut found = Vec::new();
    for kind in kinds {
        let columns = drawing.run(kind, &EDGES)?;
        if interrupt::is_asked() {
            note!("bem: interrupted at {}", kind.name());
            break;
        }
        if !arguments.json {
            columns.iter().for_each(|column| say!("| {} | {} |", kind.name(), column.to_line()));
        }
        found.push((kind, columns));
    }
    if arguments.served {
        return Ok(tell_served(&found, &sources, arguments));
    }
    let mut changing = None;
    if is_changing && !interrupt::is_asked() {
        changing = Some(drawing.changing(&EDGES)?);
        if interrupt::is_asked() {
            note!("bem: interrupted at {CHANGING}");
            changing = None;
        }
    }
    if let Some(columns) = changing.as_ref().filter(|_| !arguments.json) {
        columns.iter().for_each(|column| say!("| {CHANGING} | {} |", column.to_line()));
    }
    Ok(tell(&found, changing.as_deref(), &sources, arguments))
}

/// Says what the learner earned beside its peers: yes if it is as much as is asked for, on every kind that was asked for.
fn tell(
    found: &[KindColumns],
    changing: Option<&[Column]>,
    sources: &str,
    arguments: &TableArguments,
) -> Answer {
    let compared: Vec<Compared> = found.iter().map(Compared::of).collect();
    // Nothing is asked of the worlds that change, so that without a kind there is no mean to be judged.
    let figures = (!compared.is_empty()).then(|| summary(&compared));
    let mut missed = if compared.is_empty() { Vec::new() } else { missed(&compared) };
    if interrupt::is_asked() {
        missed.push("not all kinds were played".to_string());
    }
    if arguments.json {
        let kinds: Vec<Value> = found.iter().map(to_json).collect();
        let (worlds, steps, salt) = (arguments.worlds, arguments.budget, &arguments.salt);
        let changing = changing.map(changing_json);
        let (mean, least) = figures.unzip();
        say!(
            "{}",
            json!({ "sources": sources, "salt": salt, "worlds": worlds, "steps": steps, "kinds": kinds,
                "changing": changing, "mean_of_medians": mean, "least_share_of_best_peer": least, "missed": missed })
        );
    } else {
        if let Some((mean, least)) = figures {
            say!("\nMean over kinds of the median online score: {mean:.3} ({MEAN_MIN} is asked).");
            say!("Least share of the best peer's median: {least:.3} ({SHARE_MIN} is asked).");
        }
        missed.iter().for_each(|missed| say!("Missed: {missed}."));
    }
    if missed.is_empty() { Answer::Yes } else { Answer::No }
}

/// The share of what `bem solve --online` earns that the service earns, over all worlds, and by kind.
fn tell_served(found: &[KindColumns], sources: &str, arguments: &TableArguments) -> Answer {
    let all = served_share(found);
    if arguments.json {
        let kinds: Vec<Value> = found
            .chunks(1)
            .map(|kind| {
                let mut object = to_json(&kind[0]);
                object["served_share"] = json!(served_share(kind));
                object
            })
            .collect();
        let (worlds, steps, salt) = (arguments.worlds, arguments.budget, &arguments.salt);
        say!(
            "{}",
            json!({ "sources": sources, "salt": salt, "worlds": worlds, "steps": steps, "kinds": kinds, "served_share": all, "http": arguments.http })
        );
    } else {
        let way = if arguments.http { "Served over HTTP" } else { "Served" };
        say!("\n{way} with rewards up to 1,000 decisions late and 5 % lost: {all:.3} of the online score.");
    }
    if SERVED_SHARE_MIN <= all { Answer::Yes } else { Answer::No }
}

/// The kinds that are played, and whether the worlds that change are: those that are named, or all kinds. Beside all kinds the
/// worlds that change are played where parts are switched off: without them, nothing shows what alarms are worth.
fn kinds_of(arguments: &TableArguments) -> Result<(Vec<WorldKind>, bool)> {
    if arguments.families.is_empty() {
        return Ok((WorldKind::ALL.to_vec(), arguments.ablate));
    }
    let known = || WorldKind::ALL.map(WorldKind::name).join(", ");
    let of = |name: &&String| {
        let kind = WorldKind::ALL.into_iter().find(|kind| kind.name() == name.as_str());
        kind.with_context(|| {
            format!("--families {name}: no kind of world has this name; they are {}, {CHANGING}", known())
        })
    };
    let (changing, kinds): (Vec<&String>, Vec<&String>) =
        arguments.families.iter().partition(|name| name.as_str() == CHANGING);
    if arguments.served && !changing.is_empty() {
        bail!("--families {CHANGING}: these worlds are not served; those that are: {}", known());
    }
    Ok((kinds.iter().map(of).collect::<Result<_>>()?, !changing.is_empty()))
}

/// Without a name for the sources, the program itself is what is under test.
fn own_digest() -> Result<String> {
    let path = std::env::current_exe().context("the program does not know where it lies")?;
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(hash_parts("bem/generated/program", &[&bytes]).to_string())
}
