//! The comparison of a sliced game with its scalar twin, lane by lane, from the same random bits.

use crate::draw::{Chance, Draw};
use crate::rules::Rules;
use crate::sliced::planes::{PlaneDice, Planes};
use crate::sliced::{Sliced, SlicedRules};
use bem_base::lanes::{LaneEnvironment, LaneOutcome, LaneWord, planes_for};
use bem_base::limits::LANES;

/// All planes of one draw.
type Frame = Vec<LaneWord>;

/// The draws of one step: those of playing on, and those of new episodes.
#[derive(Clone, Debug, Default)]
struct StepFrames {
    play: Vec<Frame>,
    begin: Vec<Frame>,
}

/// A source that keeps everything it gave.
#[derive(Clone, Debug)]
pub struct Recorder {
    inner: PlaneDice,
    steps: Vec<StepFrames>,
    beginning: bool,
}

impl Recorder {
    fn new(seed: u64) -> Recorder {
        Recorder { inner: PlaneDice::new(seed), steps: Vec::new(), beginning: false }
    }

    fn frames(&mut self) -> &mut Vec<Frame> {
        let step = self.steps.last_mut().unwrap();
        if self.beginning { &mut step.begin } else { &mut step.play }
    }
}

impl Planes for Recorder {
    fn begin_step(&mut self) {
        self.steps.push(StepFrames::default());
        self.beginning = false;
    }

    fn begin_episodes(&mut self) {
        self.beginning = true;
    }

    fn begin_draw(&mut self) {
        self.frames().push(Frame::new());
    }

    fn plane(&mut self) -> LaneWord {
        let plane = self.inner.plane();
        self.frames().last_mut().unwrap().push(plane);
        plane
    }
}

/// One lane's column of the recorded planes, as a source for scalar rules.
struct Column<'a> {
    frames: &'a [Frame],
    next: usize,
    lane: usize,
}

impl<'a> Column<'a> {
    fn frame(&mut self) -> impl FnMut() -> bool + use<'a> {
        let frame = &self.frames[self.next];
        let lane = self.lane;
        self.next += 1;
        let mut place = 0;
        move || {
            place += 1;
            frame[place - 1].get(lane)
        }
    }
}

impl Draw for Column<'_> {
    fn bits(&mut self, count: u32) -> u64 {
        let mut bit = self.frame();
        (0..count).fold(0, |value, place| value | u64::from(bit()) << place)
    }

    fn pick(&mut self, bound: u32, accept: impl Fn(u32) -> bool) -> u32 {
        let mut bit = self.frame();
        loop {
            let number =
                (0..planes_for(bound as usize)).fold(0, |value, place| value | u32::from(bit()) << place);
            if number < bound && accept(number) {
                return number;
            }
        }
    }

    fn chance(&mut self, chance: Chance) -> bool {
        let mut bit = self.frame();
        for place in (0..=Chance::BITS).rev() {
            let limit = chance.units() >> place & 1 == 1;
            let random = place < Chance::BITS && bit();
            if limit != random {
                return limit;
            }
        }
        false
    }
}

/// What one step looked like in all lanes.
struct Seen {
    action: Vec<LaneWord>,
    mask: LaneWord,
    outcome: LaneOutcome,
    observation: Vec<LaneWord>,
}

/// Plays the sliced game for some steps with random actions and masks, then every lane again with the scalar rules.
pub fn check_lanes<R: Rules, S: SlicedRules>(scalar: &R, sliced: S, seed: u64, steps: usize) {
    assert_eq!(scalar.shape(), sliced.shape());
    let shape = scalar.shape();
    let mut world = Sliced::with_source(sliced, Recorder::new);
    let mut observation = vec![LaneWord::ZERO; usize::from(shape.observation_bits)];
    world.reset(seed, &mut observation);
    let first = observation.clone();
    let mut chooser = PlaneDice::new(!seed);
    let mut history = Vec::new();
    for step in 0..steps {
        let action = chooser.below(u32::from(shape.actions), LaneWord::ONES);
        let action = action[..planes_for(usize::from(shape.actions))].to_vec();
        let mask = if step % 4 == 3 { chooser.plane() } else { LaneWord::ONES };
        let outcome = world.step(&action, mask, &mut observation);
        history.push(Seen { action, mask, outcome, observation: observation.clone() });
    }
    let tape = &world.planes().steps;
    for lane in 0..LANES {
        let begin = |step: usize| scalar.begin(&mut Column { frames: &tape[step].begin, next: 0, lane });
        let mut state = begin(0);
        assert_observation(scalar, &state, &first, lane, 0);
        for (step, seen) in history.iter().enumerate().map(|(step, seen)| (step + 1, seen)) {
            let mut want = (false, false, false);
            if seen.mask.get(lane) {
                let action = crate::sliced::arithmetic::read(&seen.action, lane) as u16;
                let mut column = Column { frames: &tape[step].play, next: 0, lane };
                let outcome = scalar.play(&mut state, action, &mut column);
                want = (outcome.reward == shape.reward_max, outcome.done, outcome.bad);
                if outcome.done {
                    state = begin(step);
                }
            }
            let LaneOutcome { reward, done, bad } = seen.outcome;
            let got = (reward.get(lane), done.get(lane), bad.get(lane));
            assert_eq!(got, want, "reward, done and BAD of lane {lane} at step {step}, seed {seed}");
            assert_observation(scalar, &state, &seen.observation, lane, step);
        }
    }
}

fn assert_observation<R: Rules>(scalar: &R, state: &R::State, planes: &[LaneWord], lane: usize, step: usize) {
    let want = scalar.observe(state);
    for (bit, plane) in planes.iter().enumerate() {
        assert_eq!(plane.get(lane), want.get(bit), "observation bit {bit} of lane {lane} at step {step}");
    }
}
