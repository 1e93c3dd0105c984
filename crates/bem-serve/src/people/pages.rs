//! The pages of people: the queue with one question at a time, the history of answers, and the patches.
//!
//! A question is drawn here, whole: what was seen and done, what may be answered, and under every answer what it would
//! change. Every text from outside is escaped; the script is a file of its own, so that the policy for content stays strict.
//! Must not know how anything is learned. Clause: HUM-12.

use super::difference::{differences, evidence, proofs_of};
use super::keys;
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
use bem_base::words::noun;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode};
use bem_people::payload::context::{
    ConfigContext, Context, EpisodeContext, PatchContext, StepContext, TemplatesContext,
};
use bem_people::payload::{
    Answer, ConfigAnswer, EpisodeAnswer, PatchAnswer, StepAnswer, TAG_SAFETY, TemplatesAnswer,
};
use bem_people::table::{ADJUDICATES, Question};
use bem_runtime::input::WorldIndex;
use bem_runtime::people::oversight::{
    RISK_BAD, RISK_EVERY, RISK_EXPLORATION, RISK_FORBIDDEN, RISK_THRESHOLD,
};
use bem_runtime::people::templates::is_template;
use bem_runtime::service::Service;
use std::fmt::Write as _;

const SCRIPT: &str = include_str!("queue.js");

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
    let consequence = match service.preview(question.serial, &answer.to_bytes(), question.owner) {
        Ok(_) if question.group != 0 => "Counts together with the answers of the others.".to_string(),
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
        "<li><button type=button data-key=\"{0}\" data-answer=\"{1}\" aria-keyshortcuts=\"{4}\"><kbd>{0}</kbd> <span>{2}</span><small>{3}</small></button></li>",
        escaped(key),
        escaped(&said),
        escaped(words),
        escaped(&consequence),
        escaped(keys::spelled(key))
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
    if question.group != 0 {
        marks.push("others are asked the same, and nobody sees what the others say".to_string());
    }
    if !question.first_answer.is_empty() {
        marks.push("a first approver proposes to loosen safety: the same answer confirms it".to_string());
    }
    let marks = escaped(&marks.join(" · "));
    match &context {
        Context::Step(shown) => draw_step(&mut page, service, question, shown, &marks),
        Context::Episode(shown) => draw_episode(&mut page, service, question, shown, &marks),
        Context::Patch(shown) => draw_patch(&mut page, service, question, shown, &marks),
        Context::Templates(shown) => draw_templates(&mut page, service, question, shown, &marks),
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
    let [is_right, is_wrong, is_other @ ..] = &keys::STEP;
    button(
        page,
        service,
        question,
        is_right,
        &format!("Action {} was right", shown.chosen),
        &Answer::Step(right),
    );
    let wrong = StepAnswer { accept: false, best: None, score: Fixed::ZERO, comment: 0 };
    button(
        page,
        service,
        question,
        is_wrong,
        "It was wrong, and I do not know which is best",
        &Answer::Step(wrong),
    );
    let others = shown.candidates.iter().map(|one| one.action).filter(|action| *action != shown.chosen);
    let mut others: Vec<u16> = others.collect();
    others.sort_unstable();
    for (key, action) in is_other.iter().zip(others) {
        let better = StepAnswer { accept: false, best: Some(action), score: Fixed::ZERO, comment: 0 };
        let words = format!("Action {action} would have been best");
        button(page, service, question, key, &words, &Answer::Step(better));
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
    let [to_grade @ .., to_discard, to_curriculum, to_warn] = &keys::EPISODE;
    for (key, (grade, words)) in to_grade.iter().zip(grades) {
        let score = Fixed::from_ratio(grade, 4);
        let answer = Answer::Episode(EpisodeAnswer { score, keep: 1, tags: 0 });
        button(page, service, question, key, words, &answer);
    }
    let discard = Answer::Episode(EpisodeAnswer { score: Fixed::ZERO, keep: 0, tags: 0 });
    button(page, service, question, to_discard, "Do not learn from it", &discard);
    let curriculum = Answer::Episode(EpisodeAnswer { score: Fixed::HALF, keep: 2, tags: 0 });
    button(page, service, question, to_curriculum, "For the curriculum only", &curriculum);
    let warning = Answer::Episode(EpisodeAnswer { score: Fixed::ZERO, keep: 1, tags: TAG_SAFETY });
    button(
        page,
        service,
        question,
        to_warn,
        "Unsafe: changes in this world are critical from now on",
        &warning,
    );
    page.push_str("</ul>");
}

fn draw_patch(page: &mut String, service: &Service, question: &Question, shown: &PatchContext, marks: &str) {
    let world = world_name(service, shown.task);
    if is_template(shown) {
        return draw_template(page, service, question, shown, marks);
    }
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
    differences(page, service, question, shown);
    let _ = write!(
        page,
        "<p class=muted>{}</p><h3>Your answer</h3><ul class=answers aria-label=\"Answers\">",
        evidence(shown)
    );
    let decisions = match shown.in_force {
        false => [
            ("Approve: it takes effect", Decision::Approve),
            ("Reject: this policy is not proposed again", Decision::Reject),
            ("Defer: not now", Decision::Defer),
        ],
        true => [
            ("Right: it stays", Decision::Approve),
            ("Wrong: take it back", Decision::Reject),
            ("Leave it for now", Decision::Defer),
        ],
    };
    for (key, (words, decision)) in keys::PATCH.iter().zip(decisions) {
        let answer = Answer::Patch(PatchAnswer { decision, risks: shown.risks, weight: Fixed::ONE });
        button(page, service, question, key, words, &answer);
    }
    page.push_str("</ul>");
}

/// A template that the machine would take up by itself.
fn draw_template(
    page: &mut String,
    service: &Service,
    question: &Question,
    shown: &PatchContext,
    marks: &str,
) {
    let world = world_name(service, shown.task);
    heading(page, question, &format!("May the machine learn {world} by itself?"), marks);
    let played = service.world(WorldIndex(shown.task)).map_or(0, |world| world.statistics().decisions);
    let _ = write!(
        page,
        "<p>{}</p><ul class=facts><li><b>{played}</b>{} so far</li></ul><p>Asked because only templates that somebody has \
         approved are learned. Every change of its policy is asked about by itself.</p><h3>Your answer</h3><ul class=answers aria-label=\"Answers\">",
        escaped(&shown.words),
        noun(played, "decision")
    );
    let decisions = [
        ("Approve: it is learned", Decision::Approve),
        ("Reject: it is not learned, and not asked about again", Decision::Reject),
        ("Defer: asked again when more was played", Decision::Defer),
    ];
    for (key, (words, decision)) in keys::PATCH.iter().zip(decisions) {
        let answer = Answer::Patch(PatchAnswer { decision, risks: shown.risks, weight: Fixed::ONE });
        button(page, service, question, key, words, &answer);
    }
    page.push_str("</ul>");
}

fn draw_templates(
    page: &mut String,
    service: &Service,
    question: &Question,
    shown: &TemplatesContext,
    marks: &str,
) {
    heading(page, question, "What should be learned first?", marks);
    page.push_str(
        "<p>Press the numbers in the order in which you want them, the most wanted first; with the last one the answer is \
         given. Where several worlds have something to learn, the more wanted one is worked on first.</p><ul class=answers aria-label=\"Worlds\">",
    );
    for (place, (key, one)) in keys::RANKING.iter().zip(&shown.templates).enumerate() {
        let first = wanted_first(service, question, shown, place);
        let _ = write!(
            page,
            "<li><button type=button data-key=\"{key}\" data-rank={place} aria-keyshortcuts=\"{key}\" aria-pressed=false><kbd>{key}</kbd> <span>{}</span> <span class=place></span>\
             <small>{} decisions, mean return {:.0} % of the range, {} bits seen. Pressed first: {}.</small></button></li>",
            escaped(&one.name),
            one.usage,
            100.0 * float(one.pass_rate),
            one.difficulty,
            escaped(&first)
        );
    }
    page.push_str("</ul>");
}

/// What becomes of a world that is wanted first, the others in the order in which they are shown.
fn wanted_first(service: &Service, question: &Question, shown: &TemplatesContext, place: usize) -> String {
    let others = (0..shown.templates.len()).filter(|other| *other != place);
    let order: Vec<u8> = [place].into_iter().chain(others).map(|place| place as u8).collect();
    let answer = Answer::Templates(TemplatesAnswer { order, scores: Vec::new() });
    match service.preview(question.serial, &answer.to_bytes(), question.owner) {
        Ok(changes) => {
            let own = changes.iter().find(|change| change.world == shown.templates[place].template);
            own.map_or_else(|| "it is wanted as before".to_string(), |change| sentence(service, change))
        }
        Err(refusal) => format!("it is wanted as before, because {refusal}"),
    }
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
    let [as_it_is, modes @ .., by_itself, more, less] = &keys::CONFIG;
    button(page, service, question, as_it_is, "Leave everything as it is", &config(ConfigAnswer::default()));
    for (key, mode) in modes.iter().zip(Mode::ALL) {
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
        by_itself,
        words,
        &config(ConfigAnswer { enable_online: Some(online), ..ConfigAnswer::default() }),
    );
    for (key, words, by) in [
        (more, "Labels count for a quarter visit more", 1),
        (less, "Labels count for a quarter visit less", -1),
    ] {
        let mut answer = ConfigAnswer::default();
        answer.deltas[1] = Fixed::from_ratio(by, 4);
        button(page, service, question, key, words, &config(answer));
    }
    page.push_str("</ul>");
}

pub(super) fn control_table(page: &mut String, control: &Control) {
    page.push_str("<div class=wide tabindex=0 role=region aria-label=\"The control\"><table><tr><th class=left scope=col>field<th scope=col>value<th class=left scope=col>unit");
    let seen = view::control(control);
    for (name, value) in seen.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let _ = write!(
            page,
            "<tr><th class=left scope=row>{}<td>{}<td class=\"left long\">{}",
            escaped(name),
            escaped(&text),
            unit(name)
        );
    }
    page.push_str("</table></div>");
}

/// What a field of the control counts.
fn unit(name: &str) -> &'static str {
    match name {
        "enable_online" => "whether the machine asks by itself",
        "max_online_step_rate" => "questions for every 10,000 steps",
        "max_online_episode_rate" => "questions for every 10,000 episodes",
        "max_pending_tasks" => "questions open at once",
        "safety_override_mode" => "which changes of the policy wait",
        "min_confidence_for_auto" => "lead below which a step is asked about, of the range of losses",
        "human_weight_bandit" => "visits that a label counts for",
        "human_weight_grpo" => "part of a score in what an episode counts for",
        "human_weight_teacher" => "how far a ranking moves what is wanted",
        "human_weight_pox" => "added to a patch's score by an approval",
        _ => "",
    }
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
            format!(
                "<h1>Questions</h1><p id=progress class=muted></p><p id=status role=status aria-live=polite></p>\
                 <section id=question aria-label=\"The question\"></section>\
                 <div id=tools class=tools hidden>\
                 <button type=button id=do-skip><kbd data-cap=skip>s</kbd> Skip</button>\
                 <button type=button id=do-release><kbd data-cap=release>r</kbd> Give back</button></div>\
                 <div class=tools><button type=button id=do-undo disabled><kbd data-cap=undo>u</kbd> Take my last answer back</button>\
                 <button type=button id=do-help><kbd data-cap=help>?</kbd> Keys</button></div>{}",
                keys::dialog()
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
        let waiting = service.worlds().filter_map(|(_, world)| {
            let held = world.standing().held()?;
            Some((world.spec().name.clone(), held.question, proofs_of(&held.round.patches)))
        });
        let waits: Vec<(String, u64, usize)> = waiting.collect();
        (waits, PatchLine::latest(service, u64::MAX, 100))
    });
    let (waits, patches) = seen.await?;
    let mut body = "<h1>Patches</h1>".to_string();
    if waits.is_empty() {
        body.push_str("<p class=muted>No change waits for an approval.</p>");
    }
    for (world, question, proofs) in &waits {
        let _ = write!(
            body,
            "<p><b>{}</b>: a change waits for an approval (accepted proofs: {proofs}): <a href=\"/queue\">question {question}</a></p>",
            escaped(world)
        );
    }
    patches_table(&mut body, &patches, true);
    Ok(document("BEM: patches", &body, Some(&caller.csrf.unwrap_or_default())))
}
