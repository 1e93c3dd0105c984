//! The pages of people: the queue with one question at a time, the history of answers, and the patches.
//!
//! A question is drawn here, whole: what was seen and done, what may be answered, and under every answer what it would
//! change. Every text from outside is escaped; the script is a file of its own, so that the policy for content stays strict.
//! Must not know how anything is learned. Clause: HUM-12.

use super::person_of;
use super::view::{self, bits, fields, float, sentence, world_name};
use crate::core::PatchLine;
use crate::http::{App, Failure};
use crate::page::{document, escaped, patches_table};
use crate::tokens::{Caller, Role};
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use bem_base::fixed::Fixed;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode};
use bem_people::payload::context::{
    ConfigContext, Context, EpisodeContext, PatchContext, StepContext, TemplatesContext,
};
use bem_people::payload::{Answer, ConfigAnswer, EpisodeAnswer, PatchAnswer, StepAnswer};
use bem_people::table::{ADJUDICATES, Question};
use bem_runtime::input::WorldIndex;
use bem_runtime::people::oversight::{
    RISK_BAD, RISK_EVERY, RISK_EXPLORATION, RISK_FORBIDDEN, RISK_THRESHOLD,
};
use bem_runtime::service::Service;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

const SCRIPT: &str = include_str!("queue.js");
/// Gates of a policy that is drawn as rules while everybody waits.
const DRAWN_GATES_MAX: usize = 400;
/// Answers that the history shows.
const HISTORY_SHOWN: usize = 50;

/// The script of these pages.
pub async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
}

/// A button that answers, with its key and what the answer would change.
fn button(
    page: &mut String,
    service: &Service,
    question: &Question,
    key: &str,
    words: &str,
    answer: &Answer,
) {
    let said = view::answer_json(answer).to_string();
    let consequence = match service.preview(question.serial, &answer.to_bytes()) {
        Ok(changes) if changes.is_empty() => "Nothing changes.".to_string(),
        Ok(changes) => {
            let told =
                changes.iter().filter(|change| !matches!(change.what.name(), "loss_sum" | "loss_sq_sum"));
            let told: Vec<String> = told.take(4).map(|change| sentence(service, change)).collect();
            format!("Changes {}.", told.join("; "))
        }
        Err(refusal) => format!("Not possible now: {refusal}."),
    };
    let _ = write!(
        page,
        "<li><button type=button data-key=\"{0}\" data-answer=\"{1}\" aria-keyshortcuts=\"{0}\"><kbd>{0}</kbd> <span>{2}</span><small>{3}</small></button></li>",
        escaped(key),
        escaped(&said),
        escaped(words),
        escaped(&consequence)
    );
}

/// A question as it is judged.
pub fn draw(service: &Service, question: &Question) -> String {
    let mut page = String::new();
    let Ok(context) = Context::from_bytes(question.kind, &question.context) else { return page };
    let left = match question.deadline {
        0 => "no deadline".to_string(),
        deadline => format!("skipped after {} more inputs", deadline.saturating_sub(service.last())),
    };
    let mut marks = vec![format!("priority {}", question.priority.name()), left];
    if question.flags & ADJUDICATES != 0 {
        marks.push("people disagreed: your answer settles it".to_string());
    }
    if !question.first_answer.is_empty() {
        marks.push("a first approver proposes to loosen safety: the same answer confirms it".to_string());
    }
    let marks = escaped(&marks.join(" · "));
    match &context {
        Context::Step(shown) => draw_step(&mut page, service, question, shown, &marks),
        Context::Episode(shown) => draw_episode(&mut page, service, question, shown, &marks),
        Context::Patch(shown) => draw_patch(&mut page, service, question, shown, &marks),
        Context::Templates(shown) => draw_templates(&mut page, question, shown, &marks),
        Context::Config(shown) => draw_config(&mut page, service, question, shown, &marks),
    }
    page
}

fn heading(page: &mut String, question: &Question, title: &str, marks: &str) {
    let _ = write!(
        page,
        "<h2 id=asked>{}</h2><p class=muted>Question {} · {marks}</p>",
        escaped(title),
        question.serial
    );
}

/// What is seen, field by field.
fn seen(page: &mut String, service: &Service, world: u16, observation: &bem_base::environment::Bits) {
    let values = fields(service, world, observation);
    page.push_str("<dl class=seen>");
    for (name, value) in values.iter().take(64) {
        let _ = write!(page, "<div><dt>{}</dt><dd>{value}</dd></div>", escaped(name));
    }
    page.push_str("</dl>");
}

fn draw_step(page: &mut String, service: &Service, question: &Question, shown: &StepContext, marks: &str) {
    let world = world_name(service, shown.task);
    heading(page, question, &format!("Was action {} right in {world}?", shown.chosen), marks);
    let reasons = [
        (1, "two actions look nearly the same here"),
        (2, "something BAD happened"),
        (4, "this context was seldom seen"),
        (8, "somebody asked"),
    ];
    let why: Vec<&str> =
        reasons.iter().filter(|(bit, _)| shown.cause & bit != 0).map(|(_, why)| *why).collect();
    let reward = shown.reward.map_or("none yet".to_string(), |reward| format!("{reward} milli-units"));
    let bad = if shown.bad { ", and it was BAD" } else { "" };
    let _ = write!(
        page,
        "<p>Asked because {}. What was seen:</p>",
        escaped(&if why.is_empty() { "it is unsure".to_string() } else { why.join(", ") })
    );
    seen(page, service, shown.task, &shown.observation);
    let _ = write!(
        page,
        "<p>It did <b>action {}</b>. Reward: <b>{}</b>{bad}.</p><h3>What is known of each action here</h3>\
         <div class=wide tabindex=0 role=region aria-label=\"What is known of each action\"><table><tr><th class=left scope=col>action<th scope=col>times tried<th scope=col>mean loss (0 is best)<th scope=col>chosen by index (lowest)",
        shown.chosen,
        escaped(&reward)
    );
    for one in &shown.candidates {
        let mark = if one.action == shown.chosen { " (taken)" } else { "" };
        let _ = write!(
            page,
            "<tr><th class=left scope=row>action {}{mark}<td>{}<td>{:.3}<td>{:.3}",
            one.action,
            one.visits,
            float(one.mean_loss),
            float(one.index)
        );
    }
    page.push_str("</table></div><h3>Your answer</h3><ul class=answers aria-label=\"Answers\">");
    let right = StepAnswer { accept: true, best: None, score: Fixed::ONE, comment: 0 };
    button(
        page,
        service,
        question,
        "Enter",
        &format!("Action {} was right", shown.chosen),
        &Answer::Step(right),
    );
    let wrong = StepAnswer { accept: false, best: None, score: Fixed::ZERO, comment: 0 };
    button(
        page,
        service,
        question,
        "0",
        "It was wrong, and I do not know which is best",
        &Answer::Step(wrong),
    );
    let others = shown.candidates.iter().map(|one| one.action).filter(|action| *action != shown.chosen);
    let mut others: Vec<u16> = others.collect();
    others.sort_unstable();
    for (key, action) in "123456789abcdefg".chars().zip(others) {
        let better = StepAnswer { accept: false, best: Some(action), score: Fixed::ZERO, comment: 0 };
        let words = format!("Action {action} would have been best");
        button(page, service, question, &key.to_string(), &words, &Answer::Step(better));
    }
    page.push_str("</ul>");
}

fn draw_episode(
    page: &mut String,
    service: &Service,
    question: &Question,
    shown: &EpisodeContext,
    marks: &str,
) {
    let world = world_name(service, shown.task);
    heading(page, question, &format!("How good was this episode in {world}?"), marks);
    let compared = match shown.regret {
        0 => "as much as the mean".to_string(),
        less if 0 < less => format!("{less} less than the mean"),
        more => format!("{} more than the mean", -more),
    };
    let flags =
        [(1, "something BAD happened"), (2, "among the worst"), (4, "among the best"), (8, "somebody asked")];
    let why: Vec<&str> =
        flags.iter().filter(|(bit, _)| shown.flags & bit != 0).map(|(_, why)| *why).collect();
    let _ = write!(
        page,
        "<p>{} steps earned <b>{}</b> milli-units, {compared}. Asked because: {}.</p><div class=wide tabindex=0 role=region aria-label=\"The steps of the episode\">\
         <table><tr><th scope=col>step<th class=left scope=col>seen<th scope=col>action<th scope=col>reward",
        shown.length,
        shown.return_env,
        escaped(&why.join(", "))
    );
    let width = service.world(WorldIndex(shown.task)).map_or(64, |world| world.spec().shape.observation_bits);
    for (place, step) in shown.steps.iter().enumerate() {
        let values = fields(service, shown.task, &step.observation);
        let text = match values.len() {
            0..=8 => {
                values.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
            }
            _ => bits(&step.observation, width),
        };
        let bad = if step.bad { " <b class=fail>BAD</b>" } else { "" };
        let _ = write!(
            page,
            "<tr><td>{}<td class=\"left long\">{}<td>{}<td>{}{bad}",
            place + 1,
            escaped(&text),
            step.action,
            step.reward
        );
    }
    page.push_str("</table></div>");
    if (shown.steps.len() as u32) < shown.length {
        let _ = write!(page, "<p class=muted>The first {} steps are shown.</p>", shown.steps.len());
    }
    page.push_str("<h3>Your answer</h3><ul class=answers aria-label=\"Answers\">");
    let grades = [(0, "Very bad"), (1, "Bad"), (2, "Middling"), (3, "Good"), (4, "Very good")];
    for (grade, words) in grades {
        let score = Fixed::from_ratio(grade, 4);
        let answer = Answer::Episode(EpisodeAnswer { score, keep: 1, tags: 0 });
        button(page, service, question, &(grade + 1).to_string(), words, &answer);
    }
    let discard = Answer::Episode(EpisodeAnswer { score: Fixed::ZERO, keep: 0, tags: 0 });
    button(page, service, question, "d", "Do not learn from it", &discard);
    let curriculum = Answer::Episode(EpisodeAnswer { score: Fixed::HALF, keep: 2, tags: 0 });
    button(page, service, question, "c", "For the curriculum only", &curriculum);
    page.push_str("</ul>");
}

fn draw_patch(page: &mut String, service: &Service, question: &Question, shown: &PatchContext, marks: &str) {
    let world = world_name(service, shown.task);
    let title = match shown.in_force {
        true => format!("The policy of {world} has changed: is that right?"),
        false => format!("May this change of the policy of {world} take effect?"),
    };
    heading(page, question, &title, marks);
    let risks = [
        (RISK_BAD, "it touches a world in which something BAD has happened"),
        (RISK_FORBIDDEN, "it touches what is forbidden"),
        (RISK_EXPLORATION, "it makes the machine explore again"),
        (RISK_THRESHOLD, "its score is near the threshold"),
        (RISK_EVERY, "every change needs an approval"),
    ];
    page.push_str("<ul>");
    for line in shown.words.lines() {
        let _ = write!(page, "<li>{}</li>", escaped(line));
    }
    page.push_str("</ul><ul class=facts>");
    let _ = write!(
        page,
        "<li><b>{:+.4}</b>measured gain, lower bound, of the range</li><li><b>{}</b>proofs that the checker accepted</li>\
         <li><b>{:08x} → {:08x}</b>policy, first bytes of its digest</li></ul>",
        float(shown.pox_score),
        shown.proofs,
        shown.policies[0] >> 32,
        shown.policies[1] >> 32
    );
    if Fixed::ZERO < shown.missing {
        let weight = service.people().control().human_weight_pox;
        let _ = write!(
            page,
            "<p>Its score is <b>{:.4}</b> below the threshold. It takes effect only if you approve it: that adds <b>{:.4}</b> to the score.</p>",
            float(shown.missing),
            float(weight)
        );
    }
    let why: Vec<&str> =
        risks.iter().filter(|(bit, _)| shown.risks & bit != 0).map(|(_, why)| *why).collect();
    let _ = write!(page, "<p>Asked because {}.</p>", escaped(&why.join(", ")));
    differences(page, service, shown);
    page.push_str(
        "<p class=muted>Its condition is proven and its gain is measured already; an approval replaces neither.</p>\
         <h3>Your answer</h3><ul class=answers aria-label=\"Answers\">",
    );
    let decisions = match shown.in_force {
        false => [
            ("a", "Approve: it takes effect", Decision::Approve),
            ("x", "Reject: this policy is not proposed again", Decision::Reject),
            ("d", "Defer: not now", Decision::Defer),
        ],
        true => [
            ("a", "Right: it stays", Decision::Approve),
            ("x", "Wrong: take it back", Decision::Reject),
            ("d", "Leave it for now", Decision::Defer),
        ],
    };
    for (key, words, decision) in decisions {
        let answer = Answer::Patch(PatchAnswer { decision, risks: shown.risks, weight: Fixed::ONE });
        button(page, service, question, key, words, &answer);
    }
    page.push_str("</ul>");
}

/// Rules of the policy in force and of the one proposed.
fn differences(page: &mut String, service: &Service, shown: &PatchContext) {
    let Some(world) = service.world(WorldIndex(shown.task)) else { return };
    let Some(held) = world.standing().held().filter(|held| held.question != 0) else { return };
    let spec = world.spec();
    let rules = |acting: &bem_engine::serving::Acting| {
        crate::page::rules_of(&acting.in_force().agent, spec, DRAWN_GATES_MAX)
    };
    let _ = write!(
        page,
        "<div class=pair><div><h3>In force</h3><pre class=rules tabindex=0>{}</pre></div><div><h3>Proposed</h3><pre class=rules tabindex=0>{}</pre></div></div>",
        escaped(&rules(world.acting())),
        escaped(&rules(&held.round.acting))
    );
}

fn draw_templates(page: &mut String, question: &Question, shown: &TemplatesContext, marks: &str) {
    heading(page, question, "What should be learned first?", marks);
    page.push_str(
        "<p>Press the numbers in the order in which you want them, the most wanted first; with the last one the answer is \
         given. Where several worlds have something to learn, the more wanted one is worked on first.</p><ul class=answers aria-label=\"Worlds\">",
    );
    for (place, one) in shown.templates.iter().enumerate() {
        let key = char::from_digit(place as u32 + 1, 36).unwrap_or('-');
        let _ = write!(
            page,
            "<li><button type=button data-key=\"{key}\" data-rank={place} aria-keyshortcuts=\"{key}\" aria-pressed=false><kbd>{key}</kbd> <span>{}</span> <span class=place></span>\
             <small>{} decisions, mean return {:.0} % of the range, {} bits seen</small></button></li>",
            escaped(&one.name),
            one.usage,
            100.0 * float(one.pass_rate),
            one.difficulty
        );
    }
    page.push_str("</ul>");
}

fn draw_config(
    page: &mut String,
    service: &Service,
    question: &Question,
    shown: &ConfigContext,
    marks: &str,
) {
    heading(page, question, "Should the limits change?", marks);
    let _ = write!(
        page,
        "<p>{}</p><ul class=facts><li><b>{}</b>decisions</li><li><b>{}</b>BAD outcomes</li><li><b>{}</b>patches in force, {} turned down, {} waiting</li></ul>",
        escaped(&shown.words),
        shown.safety[0],
        shown.safety[1],
        shown.patches[0],
        shown.patches[1],
        shown.patches[2]
    );
    control_table(page, &shown.control);
    page.push_str("<h3>Your answer</h3><ul class=answers aria-label=\"Answers\">");
    let config = |answer: ConfigAnswer| Answer::Config(answer);
    button(page, service, question, "Enter", "Leave everything as it is", &config(ConfigAnswer::default()));
    for (key, mode) in ["o", "w", "a", "l"].into_iter().zip(Mode::ALL) {
        if *mode == shown.control.safety_override_mode {
            continue;
        }
        let words = match mode {
            Mode::Off => "Off: changes need nobody",
            Mode::Warn => "Warn: changes take effect, and critical ones are asked about",
            Mode::RequireApproval => "Require approval: critical changes wait",
            Mode::Whitelist => "Whitelist: every change waits",
        };
        let answer = ConfigAnswer { safety_override_mode: Some(*mode), ..ConfigAnswer::default() };
        button(page, service, question, key, words, &config(answer));
    }
    let online = !shown.control.enable_online;
    let words =
        if online { "Let the machine ask by itself" } else { "Stop the machine from asking by itself" };
    button(
        page,
        service,
        question,
        "e",
        words,
        &config(ConfigAnswer { enable_online: Some(online), ..ConfigAnswer::default() }),
    );
    for (key, words, by) in [
        ("+", "Labels count for a quarter visit more", 1),
        ("-", "Labels count for a quarter visit less", -1),
    ] {
        let mut answer = ConfigAnswer::default();
        answer.deltas[1] = Fixed::from_ratio(by, 4);
        button(page, service, question, key, words, &config(answer));
    }
    page.push_str("</ul>");
}

fn control_table(page: &mut String, control: &Control) {
    page.push_str("<div class=wide tabindex=0 role=region aria-label=\"The control\"><table><tr><th class=left scope=col>field<th scope=col>value");
    let seen = view::control(control);
    for (name, value) in seen.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let _ = write!(page, "<tr><th class=left scope=row>{}<td>{}", escaped(name), escaped(&text));
    }
    page.push_str("</table></div>");
}

/// One question at a time.
pub async fn queue_page(Extension(caller): Extension<Caller>) -> Html<String> {
    let csrf = caller.csrf.clone().unwrap_or_default();
    let may = Role::Annotator <= caller.role;
    let body = match may {
        false => {
            "<h1>Questions</h1><p>The role viewer looks; answering needs the role annotator.</p>".to_string()
        }
        true => {
            let row = |name: &str, words: &str| {
                format!("<p><label>{words} <input id=key-{name} maxlength=1 size=2></label></p>")
            };
            format!(
                "<h1>Questions</h1><p id=progress class=muted></p><p id=status role=status aria-live=polite></p>\
                 <section id=question aria-label=\"The question\"></section>\
                 <div id=tools class=tools hidden>\
                 <button type=button id=do-skip><kbd data-cap=skip>s</kbd> Skip</button>\
                 <button type=button id=do-release><kbd data-cap=release>r</kbd> Give back</button></div>\
                 <div class=tools><button type=button id=do-undo disabled><kbd data-cap=undo>u</kbd> Take my last answer back</button>\
                 <button type=button id=do-help><kbd data-cap=help>?</kbd> Keys</button></div>\
                 <dialog id=help aria-labelledby=help-title><h2 id=help-title>Keys</h2>\
                 <p>The key on a button answers and goes on to the next question. These can be changed:</p>{}{}{}{}\
                 <p><button type=button id=save-keys>Keep these keys</button> <button type=button id=close-help>Close</button></p></dialog>",
                row("skip", "Skip"),
                row("release", "Give back"),
                row("undo", "Take my last answer back"),
                row("help", "Keys"),
            )
        }
    };
    document("BEM: questions", &body, Some(&csrf))
}

/// What changed, and what waits.
pub async fn patches_page(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Html<String>, Failure> {
    let seen = app.handle.look(|service| {
        let waits: Vec<(String, u64)> = service
            .worlds()
            .filter_map(|(_, world)| Some((world.spec().name.clone(), world.standing().held()?.question)))
            .collect();
        (waits, PatchLine::latest(service, u64::MAX, 100))
    });
    let (waits, patches) = seen.await?;
    let mut body = "<h1>Patches</h1>".to_string();
    if waits.is_empty() {
        body.push_str("<p class=muted>No change waits for an approval.</p>");
    }
    for (world, question) in &waits {
        let _ = write!(
            body,
            "<p><b>{}</b>: a change that is proven and measured waits for an approval: <a href=\"/queue\">question {question}</a></p>",
            escaped(world)
        );
    }
    patches_table(&mut body, &patches, true);
    Ok(document("BEM: patches", &body, Some(&caller.csrf.unwrap_or_default())))
}

/// The answers with what each changed, the counters, and the control.
pub async fn history_page(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Html<String>, Failure> {
    let (person, role) = (person_of(&caller.token), caller.role);
    let body = app.handle.look(move |service| history(service, person, role)).await?;
    let gauges = &app.handle.gauges;
    let facts = format!(
        "<h1>History</h1><ul class=facts><li><b>{}</b>inputs in the history</li><li><b>{}</b>of them under a signed checkpoint</li></ul>\
         <p class=muted><code>bem verify DIR</code> audits this server's folder while it runs, and <code>bem replay DIR</code> plays it again; \
         the signed checkpoint is the file <code>ledger/checkpoint</code> in it.</p>",
        gauges.inputs.load(Ordering::Relaxed),
        gauges.covered.load(Ordering::Relaxed)
    );
    Ok(document("BEM: history", &(facts + &body), Some(&caller.csrf.unwrap_or_default())))
}

fn history(service: &Service, person: u32, role: Role) -> String {
    let people = service.people();
    let mut body = "<p id=status role=status aria-live=polite></p><h2>Answers <span class=muted>the latest first</span></h2>".to_string();
    if people.given().is_empty() {
        body.push_str("<p class=muted>Nobody has answered yet.</p>");
    }
    body.push_str("<ol class=timeline>");
    for (number, given) in people.given().iter().rev().take(HISTORY_SHOWN) {
        let who = if given.person == person { "you".to_string() } else { format!("{:08x}", given.person) };
        let said = Answer::from_bytes(given.kind, &given.answer)
            .map_or_else(|_| String::new(), |answer| said_words(&answer));
        let may = given.person == person || Role::Approver <= role;
        let undo = match (given.undone, may) {
            (0, true) => format!("<button type=button data-undo={number}>Take answer {number} back</button>"),
            (0, false) => String::new(),
            (at, _) => format!("<span class=muted>taken back with input {at}</span>"),
        };
        let _ = write!(
            body,
            "<li><p><b>Input {number}</b>, question {}, {} by {who}: {} {undo}</p><ul>",
            given.question,
            given.kind.name(),
            escaped(&said)
        );
        for change in &given.changes {
            let _ = write!(body, "<li>{}</li>", escaped(&sentence(service, change)));
        }
        body.push_str("</ul></li>");
    }
    body.push_str("</ol><h2>People</h2><div class=wide tabindex=0 role=region aria-label=\"People\"><table><tr><th class=left scope=col>person<th scope=col>answers<th scope=col>compared<th scope=col>agreed<th scope=col>weight");
    for (known, record) in people.groups().people() {
        let who = if *known == person { "you".to_string() } else { format!("{known:08x}") };
        let _ = write!(
            body,
            "<tr><th class=left scope=row>{who}<td>{}<td>{}<td>{}<td>{:.2}",
            record.answers,
            record.compared,
            record.agreed,
            float(record.weight())
        );
    }
    body.push_str("</table></div><h2>Counters</h2><div class=wide tabindex=0 role=region aria-label=\"Counters\"><table><tr><th class=left scope=col>counter<th scope=col>value");
    for (name, count) in people.counters().named() {
        let _ = write!(body, "<tr><th class=left scope=row>{name}<td>{count}");
    }
    body.push_str("</table></div><h2>Control</h2>");
    if role == Role::Admin {
        control_form(&mut body, people.control());
    } else {
        control_table(&mut body, people.control());
    }
    body
}

/// The control as a form of the admin's.
fn control_form(body: &mut String, control: &Control) {
    body.push_str("<form data-control class=control>");
    let checked = if control.enable_online { " checked" } else { "" };
    let _ = write!(
        body,
        "<p><label><input type=checkbox name=enable_online{checked}> the machine asks by itself (enable_online)</label></p>"
    );
    let counts = [
        ("max_online_step_rate", "questions for every 10,000 steps", control.max_online_step_rate, 10_000),
        (
            "max_online_episode_rate",
            "questions for every 10,000 episodes",
            control.max_online_episode_rate,
            10_000,
        ),
        ("max_pending_tasks", "questions open at once", control.max_pending_tasks, 256),
    ];
    for (name, words, value, most) in counts {
        let _ = write!(
            body,
            "<p><label>{words} ({name}) <input type=number name={name} min=0 max={most} value={value}></label></p>"
        );
    }
    body.push_str(
        "<p><label>changes of the policy (safety_override_mode) <select name=safety_override_mode>",
    );
    for mode in Mode::ALL {
        let chosen = if *mode == control.safety_override_mode { " selected" } else { "" };
        let _ = write!(body, "<option{chosen}>{}</option>", mode.name());
    }
    body.push_str("</select></label></p>");
    for (name, value) in control.fixed() {
        let _ = write!(
            body,
            "<p><label>{name} <input type=number name={name} min=0 max=4 step=0.01 value={:.2}></label></p>",
            float(value)
        );
    }
    body.push_str("<p><button>Put into force</button> <span class=muted>Loosening safety needs two approvers: ask a configuration question.</span></p></form>");
}

fn said_words(answer: &Answer) -> String {
    match answer {
        Answer::Step(said) => match (said.accept, said.best) {
            (true, _) => "it was right".to_string(),
            (false, None) => "it was wrong".to_string(),
            (false, Some(best)) => format!("action {best} would have been best"),
        },
        Answer::Episode(said) => {
            let keep = ["not to be learned from", "learned from", "for the curriculum"]
                [usize::from(said.keep.min(2))];
            format!("score {:.2}, {keep}", float(said.score))
        }
        Answer::Patch(said) => said.decision.name().to_string(),
        Answer::Templates(said) => format!("order {:?}", said.order),
        Answer::Config(said) => match (said.safety_override_mode, said.enable_online) {
            (Some(mode), _) => format!("mode {}", mode.name()),
            (None, Some(online)) => format!("online {online}"),
            (None, None) => "other weights, or no change".to_string(),
        },
    }
}
