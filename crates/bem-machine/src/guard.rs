//! The guard: actions that must not be taken for what is seen, masked at the output of every turn.
//!
//! A rule names what is seen, by the bits that it looks at, the action that is forbidden there and the one that is taken in its
//! place. Rules enter by patches, on evidence or because the user says so; that the guard's own circuit never lets a forbidden
//! action pass is proven once per patch. Must not know why a rule is there. Clauses: SCC-5, VM-17; decisions D-45, D-275.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Forbidden, Pattern};
use bem_base::forbidden::others;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};

/// Rules that a guard may hold.
pub const RULES_MAX: usize = 4_096;

/// One rule of a guard, which puts an action in the place of a forbidden one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// What is seen.
    pub seen: Pattern,
    /// What must not be done then.
    pub forbidden: u16,
    /// What is done in its place.
    pub instead: u16,
}

/// All rules of a family. Invariants: sorted by what is seen and forbidden action, no pair twice; what is done instead is
/// forbidden nowhere where the rule holds; at most [`RULES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    rules: Vec<Rule>,
}

impl Guard {
    /// The guard with these rules; nothing if they contradict each other, are too many or name actions that are none.
    pub fn new(mut rules: Vec<Rule>, actions: u16) -> Option<Guard> {
        rules.sort_unstable();
        let guard = Guard { rules };
        let is_allowed = |rule: &Rule| match rule.seen.only() {
            Some(observation) => guard.rules_for(&observation).all(|other| other.forbidden != rule.instead),
            None => {
                let forbids = |other: &Rule| other.forbidden == rule.instead && other.seen.meets(&rule.seen);
                !guard.rules.iter().any(forbids)
            }
        };
        let is_sound = |rule: &Rule| rule.forbidden < actions && rule.instead < actions && is_allowed(rule);
        let is_once = |pair: &[Rule]| (pair[0].seen, pair[0].forbidden) != (pair[1].seen, pair[1].forbidden);
        let is_valid = guard.rules.len() <= RULES_MAX
            && guard.rules.windows(2).all(is_once)
            && guard.rules.iter().all(is_sound);
        is_valid.then_some(guard)
    }

    /// The rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether everything may be done.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn rules_for(&self, observation: &Bits) -> impl Iterator<Item = &Rule> {
        Pattern::covering(&self.rules, *observation, |rule| rule.seen)
    }

    /// The action that is taken where this one is wanted: of several rules that forbid it the last says which. Cost: two binary
    /// searches for every set of bits that some rule looks at.
    #[inline]
    pub fn pass(&self, observation: &Bits, wanted: u16) -> u16 {
        if self.rules.is_empty() {
            return wanted;
        }
        let of = self.rules_for(observation).filter(|rule| rule.forbidden == wanted);
        of.last().map_or(wanted, |rule| rule.instead)
    }

    /// An action drawn with equal chance from those that are not forbidden, and how many these are.
    pub fn draw(&self, observation: &Bits, actions: u16, prng: &mut Prng) -> (u16, u16) {
        if self.rules_for(observation).next().is_none() {
            return (prng.below(u64::from(actions)) as u16, actions);
        }
        let mut allowed = others(actions, self.rules_for(observation).map(|rule| rule.forbidden));
        let count = allowed.clone().count() as u16;
        let place = prng.below(u64::from(count)) as usize;
        (allowed.nth(place).expect("what is done instead of a forbidden action is allowed"), count)
    }

    /// The bits of an action's number.
    fn code(value: u16, width: usize) -> impl Iterator<Item = (usize, bool)> {
        (0..width).map(move |bit| (bit, value >> bit & 1 == 1))
    }

    /// Puts the guard behind a wanted action: the code that passes. `observation` has one signal for every bit that can be
    /// seen, and those that no rule looks at may be any; `concerns` says which rules are needed, where it is known that others never fire.
    pub fn build(
        &self,
        builder: &mut Builder,
        observation: &[Signal],
        wanted: &[Signal],
        concerns: impl Fn(&Rule) -> bool,
    ) -> Vec<Signal> {
        let mut passed = wanted.to_vec();
        for rule in self.rules.iter().filter(|rule| concerns(rule)) {
            let mut terms = Vec::with_capacity(observation.len() + wanted.len());
            for (place, signal) in observation.iter().enumerate() {
                if let Some(seen) = rule.seen.bit(place) {
                    terms.push(if seen { *signal } else { builder.not(*signal) });
                }
            }
            for (bit, set) in Guard::code(rule.forbidden, wanted.len()) {
                terms.push(if set { wanted[bit] } else { builder.not(wanted[bit]) });
            }
            let fires = builder.and_all(&terms);
            for (bit, set) in Guard::code(rule.instead, wanted.len()) {
                passed[bit] =
                    if set { builder.or(passed[bit], fires) } else { builder.and_not(passed[bit], fires) };
            }
        }
        passed
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.rules.len());
        for rule in &self.rules {
            rule.encode(writer);
        }
    }

    /// Reads the canonical bytes of a guard over this many actions.
    pub fn decode(actions: u16, reader: &mut Reader<'_>) -> Result<Guard, DecodeError> {
        let unsound = reader.error("rules that contradict each other");
        let count = reader.length(Rule::BYTES)?;
        if RULES_MAX < count {
            return Err(unsound);
        }
        let rules = (0..count).map(|_| Rule::decode(reader)).collect::<Result<Vec<_>, DecodeError>>()?;
        let is_sorted = rules.windows(2).all(|pair| pair[0] < pair[1]);
        Guard::new(rules, actions).filter(|_| is_sorted).ok_or(unsound)
    }
}

impl Rule {
    /// The fewest bytes of a rule.
    pub const BYTES: usize = Forbidden::BYTES + 2;

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        Forbidden { seen: self.seen, action: self.forbidden }.encode(writer);
        writer.u16(self.instead);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Rule, DecodeError> {
        let Forbidden { seen, action } = Forbidden::decode(reader)?;
        Ok(Rule { seen, forbidden: action, instead: reader.u16()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(number: u64) -> Bits {
        Bits([number, 0, 0, 0])
    }

    fn rule(number: u64, forbidden: u16, instead: u16) -> Rule {
        Rule { seen: Pattern::whole(seen(number)), forbidden, instead }
    }

    /// A rule about three bits, of which a dash leaves one free.
    fn partly(text: &str, forbidden: u16, instead: u16) -> Rule {
        Rule { seen: Pattern::from_text(text).unwrap(), forbidden, instead }
    }

    /// Whole observations alone, as all guards were once; and rules that meet.
    fn guards() -> [Guard; 2] {
        let whole = vec![rule(1, 0, 1), rule(1, 2, 1), rule(6, 0, 2)];
        let meeting = vec![
            partly("1--", 0, 1),
            partly("--1", 2, 1),
            partly("0-0", 1, 2),
            partly("-11", 0, 1),
            rule(1, 0, 2),
        ];
        [whole, meeting].map(|rules| Guard::new(rules, 3).unwrap())
    }

    #[test]
    fn rules_that_contradict_each_other_are_refused() {
        assert!(Guard::new(vec![rule(1, 0, 1), rule(1, 2, 1), rule(0, 0, 2)], 3).is_some());
        assert!(Guard::new(vec![partly("1--", 0, 1), partly("0--", 1, 0), rule(5, 2, 1)], 3).is_some());
        for unsound in [
            vec![rule(1, 0, 1), rule(1, 1, 0)],
            vec![rule(1, 0, 1), rule(1, 0, 2)],
            vec![rule(1, 0, 0)],
            vec![rule(1, 3, 0)],
            vec![rule(1, 0, 3)],
            vec![partly("1--", 0, 1), partly("--1", 1, 2)],
            vec![partly("1--", 0, 1), rule(5, 1, 2)],
            vec![partly("1--", 0, 1), partly("1--", 0, 2)],
        ] {
            assert_eq!(Guard::new(unsound.clone(), 3), None, "{unsound:?}");
        }
    }

    #[test]
    fn circuit_draw_and_table_say_the_same() {
        for guard in guards() {
            let mut builder = Builder::new(5);
            let inputs: Vec<Signal> = (0..5).map(Signal::input).collect();
            let passed = guard.build(&mut builder, &inputs[..3], &inputs[3..], |_| true);
            let circuit = builder.finish(&passed).unwrap();
            let mut prng = Prng::stream(1, "guard");
            for (number, wanted) in (0..8u64).flat_map(|number| (0..3u16).map(move |wanted| (number, wanted)))
            {
                let bits =
                    (0..3).map(|bit| number >> bit & 1 == 1).chain((0..2).map(|bit| wanted >> bit & 1 == 1));
                let outputs = circuit.evaluate(&bits.collect::<Vec<bool>>());
                let action = u16::from(outputs[0]) + 2 * u16::from(outputs[1]);
                assert_eq!(action, guard.pass(&seen(number), wanted));
                let forbids =
                    |rule: &Rule, action: u16| rule.seen.covers(&seen(number)) && rule.forbidden == action;
                let is_forbidden = |action: u16| guard.rules().iter().any(|rule| forbids(rule, action));
                assert!((action == wanted) != is_forbidden(wanted) && !is_forbidden(action));
                let (drawn, count) = guard.draw(&seen(number), 3, &mut prng);
                assert_eq!(guard.pass(&seen(number), drawn), drawn);
                assert_eq!(usize::from(count), (0..3).filter(|action| !is_forbidden(*action)).count());
            }
        }
    }

    #[test]
    fn bytes_come_back_and_damage_is_refused_or_sound() {
        for guard in guards() {
            let mut writer = Writer::new();
            guard.encode(&mut writer);
            let bytes = writer.into_bytes();
            assert_eq!(Guard::decode(3, &mut Reader::new(&bytes)), Ok(guard));
            for place in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[place / 8] ^= 1 << (place % 8);
                if let Ok(guard) = Guard::decode(3, &mut Reader::new(&damaged)) {
                    assert_eq!(Guard::new(guard.rules().to_vec(), 3).as_ref(), Some(&guard));
                }
            }
        }
    }

    #[test]
    fn bytes_of_rules_about_whole_observations_are_read_as_they_were_written_before_there_were_others() {
        let [whole, _] = guards();
        let mut old = Writer::new();
        old.length(3);
        for (number, forbidden, instead) in [(1u64, 0, 1), (1, 2, 1), (6, 0, 2)] {
            [number, 0, 0, 0].iter().for_each(|word| old.u64(*word));
            old.u16(forbidden);
            old.u16(instead);
        }
        let old = old.into_bytes();
        assert_eq!(Guard::decode(3, &mut Reader::new(&old)).as_ref(), Ok(&whole));
        let mut writer = Writer::new();
        whole.encode(&mut writer);
        assert_eq!(writer.into_bytes(), old);
    }
}
