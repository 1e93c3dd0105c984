//! What a pipeline has reached, as JSON and as a table.

use crate::cli::run::scoreboard::shortened;
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_pipeline::pipeline::Pipeline;
use bem_pipeline::report::{Row, Summary};
use bem_tables::figures::to_float;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// One JSON object.
pub fn to_json(
    pipeline: &Pipeline,
    summary: &Summary,
    heads: &BTreeMap<String, Digest>,
    directory: &Path,
    finished: bool,
) -> Value {
    let float = |value: Option<Fixed>| value.map(to_float);
    let row = |row: &Row| {
        let (lesson, scratch) = (row.lesson.as_ref(), row.scratch.as_ref());
        json!({
            "domain": row.domain, "task": row.task, "unseen": row.unseen, "specialist": float(row.specialist),
            "main": to_float(row.main), "expert": row.expert, "renamed": row.renamed, "share": float(row.share()),
            "had": float(row.had), "lesson": float(lesson.map(|done| done.score)), "main_steps": lesson.map(|done| done.steps),
            "main_steps_to_99": lesson.and_then(|done| done.steps_to_99),
            "scratch_steps": scratch.map(|alone| alone.steps),
            "scratch_steps_to_99": scratch.and_then(|alone| alone.steps_to_99),
            "agreement": lesson.filter(|done| 0 < done.agreement.0).map(|done| done.agreement.1 as f64 / done.agreement.0 as f64),
        })
    };
    let kept: BTreeMap<&String, f64> =
        summary.kept.iter().map(|(domain, share)| (domain, to_float(*share))).collect();
    let heads: BTreeMap<&String, String> =
        heads.iter().map(|(folder, head)| (folder, head.to_hex())).collect();
    let (episodes, [off_policy, unstable]) = summary.episodes;
    let (renamed, without_lesson) = summary.shared();
    json!({
        "seed": pipeline.plan().seed, "finished": finished, "judged": summary.is_judged, "units": pipeline.units(),
        "setting_steps_max": pipeline.setting_steps_max(),
        "out": directory.display().to_string(), "trace_head": pipeline.head().to_hex(), "domains": pipeline.domains(),
        "late": pipeline.plan().late, "heads": heads,
        "experts": summary.experts, "experts_where_taught": summary.experts_where_taught(),
        "renamed": renamed, "without_lesson": without_lesson, "specialists_experts": summary.specialists_experts,
        "specialists_machines": summary.specialists_machines,
        "pool": { "installed": summary.pool.installed, "replaced": summary.pool.replaced, "known": summary.pool.known,
            "blocked": summary.pool.blocked },
        "episodes": { "handed_on": episodes, "off_policy": off_policy, "unstable": unstable },
        "chosen": summary.chosen, "kept_least": float(summary.kept_least), "kept": kept,
        "least_share": float(summary.least_share(false)), "least_share_unseen": float(summary.least_share(true)),
        "steps_share": steps_share(summary).map(|(_, share)| share),
        "settings": summary.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// How many settings both have tried, and the steps of the main machine as a share of those from scratch.
fn steps_share(summary: &Summary) -> Option<(usize, f64)> {
    let pairs: Vec<(u64, u64)> = summary.rows.iter().filter_map(Row::steps).collect();
    let (main, scratch) = pairs.iter().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (0 < scratch).then(|| (pairs.len(), main as f64 / scratch as f64))
}

/// Every setting, and what there is to say about the whole.
pub fn table(summary: &Summary) -> String {
    let mut text = format!(
        "\n{:<44} {:>10} {:>7} {:>7} {:>9} {:>9}\n",
        "setting", "specialist", "main", "lesson", "steps", "scratch"
    );
    let score =
        |value: Option<Fixed>| value.map_or("-".to_string(), |value| format!("{:.3}", to_float(value)));
    let steps = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
    for row in &summary.rows {
        let mark = if row.unseen { "*" } else { " " };
        let lesson = row.lesson.as_ref();
        let _ = writeln!(
            text,
            "{mark}{:<43} {:>10} {:>7} {:>7} {:>9} {:>9}",
            shortened(&row.task, 43),
            score(row.specialist),
            score(Some(row.main)),
            score(lesson.map(|done| done.score)),
            steps(lesson.and_then(|done| done.steps_to_99)),
            steps(row.scratch.and_then(|alone| alone.steps_to_99)),
        );
    }
    let seeds = if summary.is_judged { "seeds that nobody has seen" } else { "the seeds of its lesson" };
    let _ = writeln!(text, "\n* no specialist has seen it; main: the expert of its pool, on {seeds}");
    let pool = summary.pool;
    let _ = writeln!(
        text,
        "experts: {} of the main machine, {} of specialists ({} machines); {} came in, {} were replaced, {} were known, {} were blocked",
        summary.experts,
        summary.specialists_experts,
        summary.specialists_machines,
        pool.installed,
        pool.replaced,
        pool.known,
        pool.blocked
    );
    let (renamed, without_lesson) = summary.shared();
    let _ = writeln!(
        text,
        "on settings of specialists: {} of {} act, for {} machines; under other names in {renamed} settings, without a solved lesson in {without_lesson}",
        summary.experts_where_taught(),
        summary.experts,
        summary.specialists_machines
    );
    let (episodes, [off_policy, unstable]) = summary.episodes;
    let _ = writeln!(text, "episodes handed on: {episodes}; off-policy {off_policy}, unstable {unstable}");
    for (unseen, words) in [(false, "settings of specialists"), (true, "unseen settings")] {
        if let Some(share) = summary.least_share(unseen) {
            let _ = writeln!(text, "kept in {words}: at least {:.3}", to_float(share));
        }
    }
    if let Some((settings, share)) = steps_share(summary) {
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
