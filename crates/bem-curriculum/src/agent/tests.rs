//! What ends a hold, shown on views made by hand.

use super::*;
use crate::fraction::FORCED_LOW;

fn seen(event: Event) -> View {
    View { direction: (1, 0), event, ..View::default() }
}

#[test]
fn a_hold_outlasts_half_done_and_ends_when_complete_with_all_five_parts() {
    let config = AgentConfig { interference: Interference::Pinned(FORCED_LOW), ..AgentConfig::default() };
    let mut agent = Agent::new(config, 5);
    agent.set_learning(false);
    agent.begin();
    let nothing = seen(Event::None);
    for _ in 0..12 {
        let action = agent.act(&nothing);
        agent.observe(&nothing, action, &seen(Event::Waypoint), 200);
        assert_eq!(agent.latch().held(), Some(Choice::SeekWaypoint as u8));
    }
    let action = agent.act(&nothing);
    agent.observe(&nothing, action, &seen(Event::SequenceComplete), 800);
    assert_eq!(agent.inside().released, Some(Release::Completion));
    let token = agent.inside().closure.expect("a completion closes once a rule is set");
    assert!(token.explicit && token.released && token.baseline_reset);
    assert_eq!(
        (token.option, token.mode, token.nogo_pushed, token.refractory),
        (0, Mode::ExternalTask, 3, 0)
    );
    assert_eq!((agent.latch().held(), agent.mode), (None, Mode::InternalPlanning));
}

#[test]
fn a_lost_target_and_great_harm_end_a_hold_too() {
    let config = AgentConfig { interference: Interference::Pinned(FORCED_LOW), ..AgentConfig::default() };
    let resource = View { planes: [0, 1 << 13, 0, 0, 0, 0, 0], ..View::default() };
    let mut agent = Agent::new(config, 5);
    agent.set_learning(false);
    agent.begin();
    agent.latch.elevate(Choice::SeekFirst as u8);
    let action = agent.act(&resource);
    agent.observe(&resource, action, &View::default(), 0);
    assert_eq!(agent.inside().released, Some(Release::TargetLost));
    let nothing = seen(Event::None);
    for _ in 0..100 {
        let action = agent.act(&nothing);
        agent.observe(&nothing, action, &seen(Event::Hazard), -1_000);
    }
    assert!(0 < agent.latch().released(Release::Urgency));
}
