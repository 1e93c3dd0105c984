//! Worlds that follow one another in one machine: a family for every shape, the latest shapes kept.
//!
//! A run is a sequence of tasks. Where a task has the shape of one before, its family is taken up again: experts, contexts,
//! what is held and the guard go on, and what plain actions brought becomes what is imagined of them
//! ([`Family::begin_task`]). Families are kept in the order of their use, the present one last, so that a
//! machine is bounded however many shapes it meets. Must not know tasks. Clauses: VM-13, MEM-4, D-41.

use super::{Machine, MachineError};
use crate::family::Family;
use crate::memory::context::FamilyIndex;
use crate::step::single::SingleLane;
use bem_base::environment::Shape;

/// Shapes whose families a machine keeps.
pub const WORLDS_KEPT: usize = 2;

impl<P> Machine<P> {
    /// A task in worlds of this shape begins: its family is taken up where it was left, or made. The least recently used
    /// family gives way; an episode that runs is given up.
    pub fn take_up(&mut self, shape: &Shape) -> Result<FamilyIndex, MachineError> {
        let known = self.families.iter().position(|family| family.is_world() && family.shape() == shape);
        let family = match known {
            Some(place) => {
                let mut family = self.families.remove(place);
                family.begin_task();
                family
            }
            None => Family::for_world(&self.config, shape.clone())?,
        };
        let kept = WORLDS_KEPT.min(self.config.families_max as usize);
        while kept <= self.families.len() {
            self.families.remove(0);
        }
        self.families.push(family);
        // Whatever names a family by its number belongs to the task before.
        self.lane = SingleLane::new(self.config.context_window, super::PENDING_MAX);
        self.episodes.clear();
        Ok(FamilyIndex(self.families.len() as u16 - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GenesisConfig;
    use crate::machine::Edit;
    use crate::memory::context::TaskSerial;
    use bem_base::environment::{Bits, Outcome};

    fn shape(bits: u16) -> Shape {
        Shape {
            observation_bits: bits,
            actions: 3,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        }
    }

    #[test]
    fn a_family_is_taken_up_where_it_was_left_and_the_oldest_shape_gives_way() {
        let mut machine = Machine::new(GenesisConfig::default(), 1);
        let first = machine.take_up(&shape(2)).unwrap();
        machine.edit(first, Edit::Hold { actions: vec![2], rule: crate::held::Adaptation::Fixed }).unwrap();
        machine.begin(first, TaskSerial(1)).unwrap();
        machine.act(&Bits::ZERO).unwrap();
        machine.learn(&Outcome { reward: 1_000, done: true, bad: false }).unwrap();
        machine.trace_mut().drain(|_| {});
        let second = machine.take_up(&shape(3)).unwrap();
        assert_eq!((machine.family_count(), second), (2, FamilyIndex(1)));
        // What is held goes on; what was counted is imagined.
        let again = machine.take_up(&shape(2)).unwrap();
        let family = machine.family(again).unwrap();
        assert_eq!((family.held().actions.as_slice(), family.plain()[0].selections_total()), (&[2][..], 0));
        let means: Vec<u64> = family.plain()[0].arms().iter().map(|arm| arm.loss_sum).collect();
        assert!(means[0] < means[1], "the action that earned is imagined to earn: {means:?}");
        // A third shape takes the place of the one that was used longest ago.
        machine.take_up(&shape(4)).unwrap();
        assert_eq!(machine.family(FamilyIndex(0)).unwrap().shape(), &shape(2));
        let anew = machine.take_up(&shape(3)).unwrap();
        assert_eq!(machine.family(anew).unwrap().held().actions, vec![0]);
        let mut writer = bem_base::encode::Writer::new();
        machine.encode(&mut writer);
        let bytes = writer.into_bytes();
        let read: Machine = Machine::decode(&mut bem_base::encode::Reader::new(&bytes)).unwrap();
        let mut again = bem_base::encode::Writer::new();
        read.encode(&mut again);
        assert_eq!(again.into_bytes(), bytes);
    }
}
