//! What acts: a machine that can be built for many settings, a rule by which actions adapt within an episode, or an agent for one shape.
//!
//! Must not know where it acts, nor how well. Clauses: PIPE-3; decisions D-278, D-333.

use crate::renaming::{Renaming, is_reordered};
use bem_base::environment::Shape;
use bem_base::limits::ARMS_MAX;
use bem_engine::agent::Agent;
use bem_engine::start::tabled;
use bem_machine::held::Adaptation;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;

/// What acts.
#[derive(Clone, Debug)]
pub(crate) enum Expert {
    /// Built anew for every setting.
    Machine(Machine),
    /// Only as it is, in worlds of this shape.
    Agent(Agent, Shape),
    /// A rule by which plain actions adapt within an episode, whatever they are.
    Rule(Adaptation),
}

impl Expert {
    /// What was learned as experts, the last of which does just what the agent does. A machine that is built to another circuit,
    /// because a guard stands before the agent, may still serve elsewhere.
    pub(crate) fn all_of(agent: &Agent, machine: Option<&Machine>, shape: &Shape) -> Vec<Expert> {
        let exactly = || Expert::Agent(agent.clone(), shape.clone());
        if agent.adapts() {
            return vec![if agent.is_unguarded() { Expert::Rule(agent.rule()) } else { exactly() }];
        }
        let Some(machine) = machine.cloned().or_else(|| tabled(agent.policy(), shape)) else {
            return vec![exactly()];
        };
        let built = machine.instantiate(shape).map(|built| built.policy.digest());
        let is_exact = built == Some(agent.policy().digest());
        let mut all = vec![Expert::Machine(machine)];
        if !is_exact {
            all.push(exactly());
        }
        all
    }

    /// Built for a world, where that is possible; under other names where there are some.
    pub(crate) fn at(&self, shape: &Shape, renaming: Option<&Renaming>) -> Option<Agent> {
        let Some(renaming) = renaming else { return self.as_it_is(shape) };
        let own = self.own_order(shape)?;
        renaming.apply(&self.as_it_is(&own)?, &own.fields, shape)
    }

    fn as_it_is(&self, shape: &Shape) -> Option<Agent> {
        match self {
            Expert::Machine(machine) => Some(Agent::circuit(machine.instantiate(shape)?.policy)),
            Expert::Agent(agent, own) => (own == shape).then(|| agent.clone()),
            Expert::Rule(rule) => (usize::from(shape.actions) <= ARMS_MAX)
                .then(|| Agent::adapting(Policy::constant(shape.actions, 0), *rule, shape)),
        }
    }

    /// The world with its fields in the order in which this expert knows them; none where its fields are not those of the world
    /// in some order, width by width.
    pub(crate) fn own_order(&self, shape: &Shape) -> Option<Shape> {
        let own = match self {
            Expert::Machine(machine) => machine.fields(),
            Expert::Agent(_, own) => &own.fields,
            Expert::Rule(_) => return None,
        };
        is_reordered(own, shape).then(|| Shape { fields: own.to_vec(), ..shape.clone() })
    }

    /// Whether it is the same, said in the same way.
    pub(crate) fn is(&self, other: &Expert) -> bool {
        match (self, other) {
            (Expert::Machine(one), Expert::Machine(other)) => one == other,
            (Expert::Rule(one), Expert::Rule(other)) => one == other,
            (Expert::Agent(one, shape), Expert::Agent(other, own)) => {
                shape == own && one.to_bytes() == other.to_bytes()
            }
            _ => false,
        }
    }
}
