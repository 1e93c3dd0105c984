//! Every field of the control changes a run: what is asked, how much of it may wait, what answers weigh, what needs an approval.

use super::people::{ALICE, overseen};
use super::*;
use crate::people::change::What;
use bem_people::control::Control;
use bem_people::kinds::{Kind as Asked, Mode};

/// What a run under a control shows.
#[derive(Debug)]
struct Seen {
    steps_asked: u64,
    episodes_asked: u64,
    most_open: usize,
    patches_asked: u64,
    /// Visits that labels count for, and how far scores move priors.
    visits: u64,
    priors: u64,
    /// What a ranking moved, and what approvals added to scores.
    ranking: i64,
    score: i64,
}

fn run(change: impl Fn(&mut Control)) -> Seen {
    let mut driver = overseen(Mode::Off);
    driver.control(|control| {
        control.max_pending_tasks = 128;
        change(control);
    });
    let mut most_open = 0;
    for step in 0..1_600u64 {
        driver.step();
        most_open = most_open.max(driver.player.service.people().table().open().count());
        if step % 20 == 0 {
            driver.answer_all(ALICE);
        }
    }
    driver.settle_rounds();
    driver.answer_all(ALICE);
    driver.ask(Asked::RankTemplates, 0, 0, 1).unwrap();
    driver.answer_all(ALICE);
    let labels = (0..2).flat_map(|world| driver.standing(world).labels().iter().copied());
    let (mut visits, mut priors) = (0, 0);
    for label in labels {
        visits += label.advice.visits >> 16;
        priors += u64::from(label.advice.prior.unsigned_abs());
    }
    let people = driver.player.service.people();
    let scored =
        people.given().values().flat_map(|given| &given.changes).filter(|one| one.what == What::Score);
    let counters = people.counters();
    Seen {
        steps_asked: counters.total_step_feedback_used,
        episodes_asked: counters.total_episode_feedback_used,
        most_open,
        patches_asked: counters.total_patch_feedback_used,
        visits,
        priors,
        ranking: people.prior(0).to_raw() - people.prior(1).to_raw(),
        score: scored.map(|one| one.after - one.before).sum(),
    }
}

#[test]
fn every_field_of_the_control_changes_a_run() {
    let plain = run(|_| {});
    assert!(0 < plain.steps_asked && 0 < plain.episodes_asked && 1 < plain.most_open, "{plain:?}");
    let off = run(|control| control.enable_online = false);
    assert_eq!((off.steps_asked, off.episodes_asked), (0, 0), "{off:?}");
    let rarely = run(|control| control.max_online_step_rate = 20);
    assert!(rarely.steps_asked < plain.steps_asked, "{rarely:?} {plain:?}");
    let rarely = run(|control| control.max_online_episode_rate = 20);
    assert!(rarely.episodes_asked < plain.episodes_asked, "{rarely:?} {plain:?}");
    let one = run(|control| control.max_pending_tasks = 1);
    assert_eq!(one.most_open, 1, "{one:?}");
    let sure = run(|control| control.min_confidence_for_auto = Fixed::ZERO);
    assert!(sure.steps_asked < plain.steps_asked, "{sure:?} {plain:?}");
    let light = run(|control| control.human_weight_bandit = Fixed::from_ratio(1, 8));
    assert!(light.visits < plain.visits, "{light:?} {plain:?}");
    let deaf = run(|control| control.human_weight_grpo = Fixed::ZERO);
    assert!(0 < plain.priors && deaf.priors == 0, "{deaf:?} {plain:?}");
    let twice = run(|control| control.human_weight_teacher = Fixed::HALF);
    assert!(plain.ranking != 0 && twice.ranking.abs() < plain.ranking.abs(), "{twice:?} {plain:?}");
    let overseen = run(|control| control.safety_override_mode = Mode::Whitelist);
    assert!(plain.patches_asked == 0 && 0 < overseen.patches_asked && 0 < overseen.score, "{overseen:?}");
    let weightless = run(|control| {
        control.safety_override_mode = Mode::Whitelist;
        control.human_weight_pox = Fixed::ZERO;
    });
    assert_eq!(weightless.score, 0, "{weightless:?}");
}
