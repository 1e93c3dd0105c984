//! What a pipeline has reached, as JSON and as a table.

use crate::cli::run::scoreboard::shortened;
use crate::cli::solve::to_float;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_pipeline::pipeline::Pipeline;
use bem_pipeline::report::{Row, Summary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// One JSON object.
pub fn to_json(
    pipeline: &Pipeline,
    heads: &BTreeMap<String, Digest>,
    directory: &Path,
    finished: bool,
) -> Value {
    let summary = pipeline.summary();
    let float = |value: Option<Fixed>| value.map(to_float);
    let row = |row: &Row| {
        let main = row.main.as_ref();
        json!({
            "domain": row.domain, "task": row.task, "unseen": row.unseen, "specialist": float(row.specialist),
            "main": float(main.map(|done| done.score)), "pool": float(row.pool), "main_steps": main.map(|done| done.steps),
            "main_steps_to_99": main.and_then(|done| done.steps_to_99), "scratch_steps_to_99": row.scratch_steps,
            "agreement": main.filter(|done| 0 < done.agreement.0).map(|done| done.agreement.1 as f64 / done.agreement.0 as f64),
        })
    };
    let kept: BTreeMap<&String, f64> =
        summary.kept.iter().map(|(domain, share)| (domain, to_float(*share))).collect();
    let heads: BTreeMap<&String, String> =
        heads.iter().map(|(folder, head)| (folder, head.to_hex())).collect();
    let (episodes, [off_policy, unstable]) = summary.episodes;
    json!({
        "seed": pipeline.plan().seed, "finished": finished, "units": pipeline.units(), "out": directory.display().to_string(),
        "trace_head": pipeline.head().to_hex(), "domains": pipeline.domains(), "heads": heads,
        "experts": summary.experts, "specialists_experts": summary.specialists_experts,
        "pool": { "installed": summary.pool.installed, "replaced": summary.pool.replaced, "known": summary.pool.known,
            "blocked": summary.pool.blocked },
        "episodes": { "handed_on": episodes, "off_policy": off_policy, "unstable": unstable },
        "chosen": summary.chosen, "kept_least": float(summary.kept_least), "kept": kept, "steps_share": steps_share(&summary).map(|(_, share)| share),
        "settings": summary.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// How many settings both ways have learned, and the steps of the main machine as a share of those from scratch.
fn steps_share(summary: &Summary) -> Option<(usize, f64)> {
    let both = |row: &Row| Some((row.main.as_ref()?.steps_to_99?, row.scratch_steps?));
    let pairs: Vec<(u64, u64)> = summary.rows.iter().filter_map(both).collect();
    let (main, scratch) = pairs.iter().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (0 < scratch).then(|| (pairs.len(), main as f64 / scratch as f64))
}

/// Domains, and what is in the way.
pub fn table(pipeline: &Pipeline) -> String {
    let summary = pipeline.summary();
    let mut text = format!(
        "\n{:<44} {:>10} {:>7} {:>7} {:>9} {:>9}\n",
        "setting", "specialist", "main", "pool", "steps", "scratch"
    );
    let score =
        |value: Option<Fixed>| value.map_or("-".to_string(), |value| format!("{:.3}", to_float(value)));
    let steps = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
    for row in &summary.rows {
        let mark = if row.unseen { "*" } else { " " };
        let main = row.main.as_ref();
        let _ = writeln!(
            text,
            "{mark}{:<43} {:>10} {:>7} {:>7} {:>9} {:>9}",
            shortened(&row.task, 43),
            score(row.specialist),
            score(main.map(|done| done.score)),
            score(row.pool),
            steps(main.and_then(|done| done.steps_to_99)),
            steps(row.scratch_steps),
        );
    }
    let _ = writeln!(text, "\n* no specialist has seen it");
    let pool = summary.pool;
    let _ = writeln!(
        text,
        "experts: {} of the main machine, {} of specialists; {} came in, {} were replaced, {} were known, {} were blocked",
        summary.experts, summary.specialists_experts, pool.installed, pool.replaced, pool.known, pool.blocked
    );
    let (episodes, [off_policy, unstable]) = summary.episodes;
    let _ = writeln!(text, "episodes handed on: {episodes}; off-policy {off_policy}, unstable {unstable}");
    if let Some((settings, share)) = steps_share(&summary) {
        let _ = writeln!(text, "steps to 0.99 against from scratch: {share:.3} over {settings} settings");
    }
    if let Some(least) = summary.kept_least {
        let _ = writeln!(
            text,
            "in mixed learning every domain kept at least {:.3} of what it had",
            to_float(least)
        );
    }
    text.push('\n');
    text
}
