//! The closure operator: when the rule state has settled during a hold, the hold is finished.
//!
//! Five conditions must hold, and the first that fails is the reason for doing nothing. After firing, it re-arms
//! only once the rule has moved again; without that it would fire every third tick. Clause: CUR-2.

use crate::fraction::{GATE_MIN, RULE_SET_NORM, STABLE_DELTA};
use crate::rule_state::{Mode, RuleState, WIDTH};
use bem_base::encode::{DecodeError, Reader, Writer};

/// Ticks of stability before it fires.
pub const STABLE_TICKS: u32 = 3;
/// Ticks without a new hold after an automatic closure.
pub const DECOMMIT_TICKS: u32 = 10;
/// Options remembered by the no-go list, and how often one is pushed.
const NOGO_LENGTH: usize = 8;
const NOGO_PUSHES: usize = 3;

/// Why nothing was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Skip {
    /// The first tick only stores the reference.
    FirstTick = 0,
    /// There is no rule to close.
    RuleUnset = 1,
    /// Not stable for long enough.
    NotStableYet = 2,
    /// It fired and the rule has not moved since.
    NotArmed = 3,
    /// Nothing is held.
    NotElevated = 4,
    /// The mode does not allow it.
    ModeDisallowed = 5,
    /// The write gate is nearly shut.
    GateBelowMin = 6,
    /// A replay closes nothing.
    Replay = 7,
}

/// How many reasons there are.
pub const SKIPS: usize = 8;

/// What a closure did, all parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whether it was asked for by a completion rather than by stability.
    pub explicit: bool,
    /// The option that was held.
    pub option: u8,
    /// The mode it happened in.
    pub mode: Mode,
    /// The write gate then.
    pub gate: i64,
    /// Whether a hold was released.
    pub released: bool,
    /// How often the option was pushed into the no-go list.
    pub nogo_pushed: u32,
    /// Cells whose hazard trace was halved.
    pub cells_discharged: u32,
    /// Whether the error baseline was reset.
    pub baseline_reset: bool,
    /// Ticks without a new hold.
    pub refractory: u32,
}

/// The detector's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closure {
    previous: Option<[i64; WIDTH]>,
    stable: u32,
    armed: bool,
    nogo: Vec<u8>,
    skips: [u64; SKIPS],
}

impl Default for Closure {
    fn default() -> Closure {
        Closure { previous: None, stable: 0, armed: true, nogo: Vec::new(), skips: [0; SKIPS] }
    }
}

impl Closure {
    /// A new episode: the reference is forgotten.
    pub fn reset(&mut self) {
        (self.previous, self.stable, self.armed) = (None, 0, true);
    }

    /// Ticks the rule has been stable.
    pub fn stable(&self) -> u32 {
        self.stable
    }

    /// How often each reason kept it from firing.
    pub fn skips(&self) -> &[u64; SKIPS] {
        &self.skips
    }

    /// Looks at the rule state after its update under this write gate. `Ok` means: close now.
    pub fn watch(&mut self, rule: &RuleState, elevated: bool, mode: Mode, gate: i64) -> Result<(), Skip> {
        let result = self.judge(rule, elevated, mode, gate);
        match result {
            Ok(()) => (self.stable, self.armed) = (0, false),
            Err(skip) => self.skips[skip as usize] += 1,
        }
        result
    }

    fn judge(&mut self, rule: &RuleState, elevated: bool, mode: Mode, gate: i64) -> Result<(), Skip> {
        let Some(previous) = self.previous.replace(*rule.value()) else { return Err(Skip::FirstTick) };
        let delta: i64 =
            rule.value().iter().zip(previous).map(|(now, then)| (now - then) * (now - then)).sum();
        if rule.norm_squared() < RULE_SET_NORM * RULE_SET_NORM {
            self.stable = 0;
            return Err(Skip::RuleUnset);
        }
        if delta < STABLE_DELTA * STABLE_DELTA {
            self.stable += 1;
        } else {
            (self.stable, self.armed) = (0, true);
        }
        if mode == Mode::InternalReplay {
            return Err(Skip::Replay);
        }
        if self.stable < STABLE_TICKS {
            return Err(Skip::NotStableYet);
        }
        if !self.armed {
            return Err(Skip::NotArmed);
        }
        if !elevated {
            return Err(Skip::NotElevated);
        }
        if !mode.allows_closure() {
            return Err(Skip::ModeDisallowed);
        }
        if gate < GATE_MIN {
            return Err(Skip::GateBelowMin);
        }
        Ok(())
    }

    /// Whether a completion may close: a rule is set and the mode allows it; stability is not asked for.
    pub fn may_close_explicitly(&self, rule: &RuleState, mode: Mode) -> bool {
        let set = RULE_SET_NORM * RULE_SET_NORM <= rule.norm_squared();
        set && mode.allows_closure() && GATE_MIN <= mode.write_gate()
    }

    /// Remembers an option as just finished; returns how often it was pushed.
    pub fn push_nogo(&mut self, option: u8) -> u32 {
        for _ in 0..NOGO_PUSHES {
            if self.nogo.len() == NOGO_LENGTH {
                self.nogo.remove(0);
            }
            self.nogo.push(option);
        }
        NOGO_PUSHES as u32
    }

    /// The option's share of the no-go list, in thousandths.
    pub fn nogo_share_milli(&self, option: u8) -> i64 {
        let count = self.nogo.iter().filter(|entry| **entry == option).count();
        (count * 1_000 / NOGO_LENGTH) as i64
    }

    /// Writes the state.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.previous.is_some());
        self.previous.unwrap_or_default().iter().for_each(|entry| writer.i64(*entry));
        writer.u32(self.stable);
        writer.bool(self.armed);
        writer.bytes(&self.nogo);
        self.skips.iter().for_each(|count| writer.u64(*count));
    }

    /// Reads the state.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Closure, DecodeError> {
        let known = reader.bool()?;
        let mut previous = [0; WIDTH];
        for entry in &mut previous {
            *entry = reader.i64()?;
        }
        let mut closure = Closure { previous: known.then_some(previous), ..Closure::default() };
        (closure.stable, closure.armed) = (reader.u32()?, reader.bool()?);
        let error = reader.error("a no-go list that is too long");
        closure.nogo = reader.bytes()?.to_vec();
        if NOGO_LENGTH < closure.nogo.len() {
            return Err(error);
        }
        for count in &mut closure.skips {
            *count = reader.u64()?;
        }
        Ok(closure)
    }
}

/// Traces of hazards met, cell by cell; a closure halves those nearby but never to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residue {
    size: i32,
    weights: Vec<u32>,
}

impl Residue {
    /// No traces on a grid of this size.
    pub fn new(size: u32) -> Residue {
        Residue { size: size as i32, weights: vec![0; (size * size) as usize] }
    }

    fn index(&self, x: i32, y: i32) -> Option<usize> {
        let inside = (0..self.size).contains(&x) && (0..self.size).contains(&y);
        inside.then_some((y * self.size + x) as usize)
    }

    /// A hazard was met here.
    pub fn mark(&mut self, x: i32, y: i32) {
        if let Some(index) = self.index(x, y) {
            self.weights[index] = self.weights[index].saturating_add(1 << 16);
        }
    }

    /// Halves the traces within one and a half cells; returns how many there were.
    pub fn discharge(&mut self, x: i32, y: i32) -> u32 {
        let mut count = 0;
        for (dx, dy) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))) {
            if let Some(index) = self.index(x + dx, y + dy)
                && 0 < self.weights[index]
            {
                self.weights[index] = (self.weights[index] / 2).max(1);
                count += 1;
            }
        }
        count
    }

    /// All weights.
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::ONE;
    use bem_games::rulegrid::view::View;

    /// A rule state that has settled on an option.
    fn settled() -> RuleState {
        let mut rule = RuleState::new(4);
        (0..400).for_each(|_| rule.follow(Some(0), &View::default(), Mode::ExternalTask));
        rule
    }

    fn watched(
        rule: &RuleState,
        ticks: u32,
        elevated: bool,
        mode: Mode,
        gate: i64,
    ) -> (Closure, Result<(), Skip>) {
        let mut closure = Closure::default();
        let mut result = Err(Skip::FirstTick);
        for _ in 0..ticks {
            result = closure.watch(rule, elevated, mode, gate);
        }
        (closure, result)
    }

    #[test]
    fn every_reason_for_doing_nothing_can_be_reached() {
        let rule = settled();
        let skip = |ticks, elevated, mode, gate| watched(&rule, ticks, elevated, mode, gate).1;
        assert_eq!(skip(1, true, Mode::ExternalTask, ONE), Err(Skip::FirstTick));
        assert_eq!(skip(3, true, Mode::ExternalTask, ONE), Err(Skip::NotStableYet));
        assert_eq!(skip(4, true, Mode::ExternalTask, ONE), Ok(()));
        assert_eq!(skip(8, false, Mode::ExternalTask, ONE), Err(Skip::NotElevated));
        assert_eq!(skip(8, true, Mode::OfflineConsolidation, ONE), Err(Skip::ModeDisallowed));
        assert_eq!(skip(8, true, Mode::InternalReplay, ONE), Err(Skip::Replay));
        assert_eq!(skip(8, true, Mode::ExternalTask, ONE / 4), Err(Skip::GateBelowMin));
        let unset = RuleState::new(4);
        assert_eq!(watched(&unset, 4, true, Mode::ExternalTask, ONE).1, Err(Skip::RuleUnset));
    }

    #[test]
    fn it_fires_once_and_again_only_after_the_rule_has_moved() {
        let mut rule = settled();
        let (mut closure, result) = watched(&rule, 4, true, Mode::ExternalTask, ONE);
        assert_eq!(result, Ok(()));
        for _ in 0..20 {
            assert!(closure.watch(&rule, true, Mode::ExternalTask, ONE).is_err());
        }
        assert!(0 < closure.skips()[Skip::NotArmed as usize]);
        (0..5).for_each(|_| {
            rule.follow(Some(1), &View::default(), Mode::ExternalTask);
            let _ = closure.watch(&rule, true, Mode::ExternalTask, ONE);
        });
        let fired = (0..200).any(|_| {
            rule.follow(Some(1), &View::default(), Mode::ExternalTask);
            closure.watch(&rule, true, Mode::ExternalTask, ONE).is_ok()
        });
        assert!(fired);
    }

    #[test]
    fn a_discharge_halves_but_never_erases() {
        let mut residue = Residue::new(10);
        residue.mark(4, 4);
        residue.mark(9, 9);
        for _ in 0..40 {
            assert_eq!(residue.discharge(5, 5), 1);
        }
        assert_eq!((residue.weights()[44], residue.weights()[99]), (1, 1 << 16));
    }

    #[test]
    fn the_no_go_list_forgets_the_oldest() {
        let mut closure = Closure::default();
        (0..3).for_each(|_| {
            closure.push_nogo(1);
        });
        assert_eq!(closure.nogo_share_milli(1), 1_000);
        closure.push_nogo(2);
        assert_eq!((closure.nogo_share_milli(1), closure.nogo_share_milli(2)), (625, 375));
    }
}
