//! The first pages: all worlds, and one of them with what it earned, what acts and why, and what changed.
//!
//! Everything is rendered by the server; the one script reloads and logs in. Nothing is loaded from elsewhere, and every text that came
//! from outside is escaped. Must not know how anything is learned. Clause: GLE-9.

use crate::api::{Paging, Shown, interval, shown};
use crate::core::{Gauges, PatchLine};
use crate::explain;
use crate::http::{App, Failure};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use bem_base::plain::plain;
use bem_base::words::{noun, quantity};
pub use bem_explain::html::escaped;
use bem_runtime::input::WorldSpec;
use bem_runtime::statistics::{Moments, Statistics};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/app.js");

/// The style of all pages.
pub async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// The one script.
pub async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
}

/// A page with this title and body. Pages of people keep still and carry what their writes must show.
pub fn document(title: &str, body: &str, csrf: Option<&str>) -> Html<String> {
    let title = escaped(title);
    let own = csrf.map_or_else(String::new, |csrf| {
        format!("<meta name=csrf content=\"{}\"><script src=\"/queue.js\" defer></script>", escaped(csrf))
    });
    let still = if csrf.is_some() { " data-still" } else { "" };
    Html(format!(
        "<!doctype html><html lang=en{still}><head><meta charset=utf-8><meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><link rel=icon href=\"data:,\"><link rel=stylesheet href=\"/style.css\"><script src=\"/app.js\" defer></script>{own}\
         </head><body>{NAVIGATION}<main>{body}</main></body></html>"
    ))
}

/// The way to all pages.
const NAVIGATION: &str = "<nav aria-label=Pages><a href=\"/\">Worlds</a> <a href=\"/queue\">Questions</a> <a href=\"/patches\">Patches</a> <a href=\"/tools\">Tools</a> <a href=\"/history\">History</a></nav>";

/// Where a browser gives its token.
pub async fn login_page() -> Html<String> {
    document(
        "BEM: log in",
        "<h1>BEM</h1><p class=muted>Give a token of this server; <code>bem token add</code> makes one.</p>\
         <form id=login><label>token <input id=token type=password autocomplete=off required></label> <button>log in</button></form>\
         <p id=answer class=fail role=alert></p>",
        None,
    )
}

/// A number as people read it.
fn number(value: f64) -> String {
    if value.abs() < 10_000.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn mean(moments: &Moments) -> String {
    match interval(moments) {
        None => "none yet".to_string(),
        Some((mean, half)) => format!("{} ± {}", number(mean), number(half)),
    }
}

/// All worlds.
pub async fn worlds_page(State(app): State<App>) -> Result<Html<String>, Failure> {
    let rows = app.handle.look(|service| {
        let rows: Vec<(WorldSpec, Statistics, String)> = service
            .worlds()
            .map(|(_, world)| {
                (world.spec().clone(), world.statistics().clone(), world.acting().in_force().words)
            })
            .collect();
        (rows, PatchLine::latest(service, u64::MAX, 16))
    });
    let (rows, patches) = rows.await?;
    let gauges = &app.handle.gauges;
    let seconds = app.started.elapsed().as_secs_f64().max(1.0);
    let decided = gauges.decisions.load(Ordering::Relaxed);
    let groups = gauges.groups.load(Ordering::Relaxed).max(1);
    let sync = gauges.sync_micros.load(Ordering::Relaxed) as f64 / 1_000.0 / groups as f64;
    let (inputs, rounds) = (gauges.inputs.load(Ordering::Relaxed), gauges.rounds.load(Ordering::Relaxed));
    let mut body = format!(
        "<h1>BEM decides</h1><ul class=facts><li><b>{}</b>{} in the history</li><li><b>{decided}</b>{} since the start, {:.1} a second</li>\
         <li><b>{:.2} ms</b>to make a group durable</li><li><b>{}</b>{} of learning since the start</li></ul>",
        inputs,
        noun(inputs, "input"),
        noun(decided, "decision"),
        decided as f64 / seconds,
        sync,
        rounds,
        noun(rounds, "round"),
    );
    activities(&mut body, gauges);
    if rows.is_empty() {
        body.push_str("<p>No world is served yet: <code>POST /v1/worlds</code> makes one.</p>");
    } else {
        body.push_str(
            "<h2>Worlds</h2><div class=wide tabindex=0 role=region aria-label=Worlds><table><tr><th class=left>world<th>decisions<th>online return<th>score<th>lately<th>random<th>best fixed<th class=left>what acts",
        );
        for (spec, statistics, words) in &rows {
            let fixed = statistics.best_fixed().map_or("none yet".to_string(), |(_, moments)| mean(&moments));
            let _ = write!(
                body,
                "<tr><td class=left><a href=\"/worlds/{0}\">{0}</a><td>{1}<td>{2}<td>{6}<td>{7}<td>{3}<td>{4}<td class=\"left long\">{5}",
                escaped(&spec.name),
                statistics.decisions,
                mean(&statistics.returns),
                mean(&statistics.random),
                fixed,
                escaped(&plain(words)),
                score(spec, statistics),
                spark(statistics)
            );
        }
        body.push_str(
            "</table></div><p class=muted>Returns are in milli-units. The score is where the mean of the newest quarter lies between the \
             smallest and the largest return, 0 to 1. This page looks again every five seconds.</p>",
        );
    }
    patches_table(&mut body, &patches, true);
    Ok(document("BEM: worlds", &body, None))
}

/// What the threads of the server spent their time on since the start.
fn activities(body: &mut String, gauges: &Gauges) {
    let [act, learn, ledger, sync] =
        [&gauges.act_micros, &gauges.learn_micros, &gauges.ledger_micros, &gauges.sync_micros]
            .map(|micros| micros.load(Ordering::Relaxed) as f64 / 1e6);
    // Whoever decides waits for the disk before the answer goes out.
    let spent = [
        ("deciding", (act - sync).max(0.0)),
        ("learning, proving and measuring", learn),
        ("writing the history", ledger),
        ("waiting for the disk", sync),
    ];
    let most = spent.iter().fold(1e-6, |most: f64, (_, seconds)| most.max(*seconds));
    body.push_str("<h2>Time per activity <span class=muted>since the start</span></h2><div class=wide tabindex=0 role=region aria-label=\"Time per activity\"><table class=times>");
    for (name, seconds) in spent {
        let _ = write!(
            body,
            "<tr><th class=left scope=row>{name}<td>{seconds:.2} s<td><meter min=0 max=1 value=\"{:.3}\" aria-label=\"share of the longest\">{seconds:.2} s</meter>",
            seconds / most
        );
    }
    body.push_str("</table></div>");
}

/// The mean return of the newest quarter of episodes as a share of the range of returns.
fn score(spec: &WorldSpec, statistics: &Statistics) -> String {
    let newest = &statistics.curve[statistics.curve.len() - statistics.curve.len().div_ceil(4)..];
    let (count, sum) =
        newest.iter().fold((0, 0), |(count, sum), point| (count + point.count, sum + point.sum));
    if count == 0 {
        return "none yet".to_string();
    }
    let (low, high) = (spec.shape.return_min as f64, spec.shape.return_max as f64);
    format!("{:.3}", ((sum as f64 / count as f64 - low) / (high - low).max(1.0)).clamp(0.0, 1.0))
}

/// What was earned over time, as a line without axes.
fn spark(statistics: &Statistics) -> String {
    let means: Vec<f64> = statistics.curve.iter().filter_map(interval).map(|(mean, _)| mean).collect();
    let (Some(first), Some(last), true) = (means.first(), means.last(), 1 < means.len()) else {
        return "none yet".to_string();
    };
    let (low, high) =
        means.iter().fold((f64::MAX, f64::MIN), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    let point = |(place, mean): (usize, &f64)| {
        let x = 2.0 + 96.0 * place as f64 / (means.len() - 1) as f64;
        format!("{x:.1},{:.1}", 22.0 - 20.0 * (mean - low) / (high - low).max(1e-9))
    };
    let points: Vec<String> = means.iter().enumerate().map(point).collect();
    format!(
        "<svg class=spark viewBox=\"0 0 100 24\" role=img aria-label=\"mean return from {} to {}\"><polyline class=line points=\"{}\" /></svg>",
        number(*first),
        number(*last),
        points.join(" ")
    )
}

/// A table of patches.
pub fn patches_table(body: &mut String, patches: &[PatchLine], has_world: bool) {
    body.push_str("<h2>Patches <span class=muted>the latest first</span></h2>");
    if patches.is_empty() {
        body.push_str("<p class=muted>None yet.</p>");
        return;
    }
    let world = if has_world { "<th class=left>world" } else { "" };
    let _ = write!(
        body,
        "<div class=wide tabindex=0 role=region aria-label=Patches><table><tr><th>input{world}<th class=left>kind<th class=left>in force<th>proofs<th class=left>change"
    );
    for line in patches {
        let world =
            if has_world { format!("<td class=left>{}", escaped(&line.world)) } else { String::new() };
        let (class, verdict) = if line.accepted { ("pass", "yes") } else { ("muted", "no") };
        let reason = if line.reason.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escaped(&line.reason))
        };
        let _ = write!(
            body,
            "<tr><td>{}{world}<td class=left>{}<td class=\"left {class}\">{verdict}<td>{}<td class=\"left long\">{}{reason}",
            line.step,
            line.kind,
            line.proofs,
            escaped(&line.words)
        );
    }
    body.push_str("</table></div>");
}

/// One world; the query may hold an observation, for which the page says why.
pub async fn world_page(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Paging,
) -> Result<Html<String>, Failure> {
    let shown = shown(&app, name).await?;
    let shape = &shown.spec.shape;
    let statistics = &shown.statistics;
    let mut body = format!(
        "<p><a href=\"/\">all worlds</a></p><h1>{}</h1><p class=muted>{} bits, {} actions, horizon {}, rewards {} to {}</p>",
        escaped(&shown.spec.name),
        shape.observation_bits,
        shape.actions,
        shape.horizon,
        shape.reward_min,
        shape.reward_max
    );
    let drawn = 100.0 * statistics.drawn as f64 / statistics.decisions.max(1) as f64;
    let _ = write!(
        body,
        "<ul class=facts><li><b>{}</b>online return, 95 % interval</li><li><b>{}</b>{}, {}, {} lost</li>\
         <li><b>{drawn:.1} %</b>of decisions were drawn</li><li><b>{}</b>open {}</li></ul>",
        mean(&statistics.returns),
        statistics.decisions,
        noun(statistics.decisions, "decision"),
        quantity(statistics.rewards, "reward"),
        statistics.lost,
        shown.open,
        noun(shown.open, "episode")
    );
    body.push_str("<h2>What it earns</h2>");
    bars(&mut body, &shown);
    curve(&mut body, statistics);
    let explained = explain::part(&app, &shown, &query).await?;
    let policy = shown.agent.policy();
    let _ = write!(
        body,
        "<h2>The acting policy</h2><p>{}: {}, {}, {}.</p>{}\
         <p class=muted>circuit <code>{}</code>, <a href=\"/v1/worlds/{}/export?format=c\">as C</a></p>",
        escaped(&plain(&shown.words)),
        quantity(policy.gates(), "gate"),
        quantity(policy.memory_bits(), "memory bit"),
        quantity(shown.contexts, "situation"),
        explained,
        policy.digest(),
        escaped(&shown.spec.name)
    );
    patches_table(&mut body, &shown.patches, false);
    Ok(document(&format!("BEM: {}", shown.spec.name), &body, None))
}

/// Returns as bars on one scale.
fn bars(body: &mut String, shown: &Shown) {
    let statistics = &shown.statistics;
    let mut rows = vec![("online, exploring included".to_string(), statistics.returns, "own")];
    rows.push(("random play".to_string(), statistics.random, ""));
    if shown.spec.shape.horizon == 1
        && let Some((action, moments)) = statistics.best_fixed()
    {
        rows.push((format!("best fixed action ({action})"), moments, ""));
    }
    let (low, high) = (shown.spec.shape.return_min as f64, shown.spec.shape.return_max as f64);
    let place = |value: f64| ((value - low) / (high - low).max(1.0) * 100.0).clamp(0.0, 100.0);
    body.push_str("<svg class=chart viewBox=\"0 0 600 96\" role=img aria-label=\"mean returns\">");
    for (row, (name, moments, class)) in rows.iter().enumerate() {
        let y = 4 + 31 * row;
        let Some((mean, half)) = interval(moments) else { continue };
        let (x, left, right) = (place(mean) * 3.6, place(mean - half) * 3.6, place(mean + half) * 3.6);
        let _ = write!(
            body,
            "<text class=axis x=0 y={0}>{name}</text><rect class=\"fill {class}\" x=190 y={y} width=\"{x:.1}\" height=20 rx=3 />\
             <rect class=whisker x=\"{1:.1}\" y={2} width=\"{3:.1}\" height=4 /><text class=axis x=\"{4:.1}\" y={0}>{5}</text>",
            y + 15,
            190.0 + left,
            y + 8,
            (right - left).max(1.5),
            196.0 + right,
            number(mean)
        );
    }
    body.push_str("</svg>");
}

/// What was earned over time.
fn curve(body: &mut String, statistics: &Statistics) {
    let means: Vec<f64> = statistics.curve.iter().filter_map(interval).map(|(mean, _)| mean).collect();
    if means.len() < 2 {
        return;
    }
    let (low, high) =
        means.iter().fold((f64::MAX, f64::MIN), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    let span = (high - low).max(1e-9);
    let points: Vec<String> = means
        .iter()
        .enumerate()
        .map(|(place, mean)| {
            let x = 40.0 + 550.0 * place as f64 / (means.len() - 1) as f64;
            format!("{x:.1},{:.1}", 130.0 - 115.0 * (mean - low) / span)
        })
        .collect();
    let _ = write!(
        body,
        "<h3>Over time, {} episodes a point</h3><svg class=chart viewBox=\"0 0 600 150\" role=img aria-label=\"mean return over time\">\
         <text class=axis x=0 y=20>{}</text><text class=axis x=0 y=134>{}</text><polyline class=line points=\"{}\" /></svg>",
        statistics.curve_step,
        number(high),
        number(low),
        points.join(" ")
    );
}
