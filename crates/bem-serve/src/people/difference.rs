//! What a question about a change of the policy shows of it: the rules before and after, the circuit, the certificates, and what
//! speaks for it.
//!
//! A change that waits has its new policy in the round that is held; one that took effect has its old policy in what can be taken
//! back. Only what belongs to the change that is asked about is shown and said. Must not know how anything is learned, nor who
//! asks. Clauses: HUM-8, HUM-12.

use super::view::float;
use crate::explain::rules_of;
use crate::page::escaped;
use bem_base::digest::hash;
use bem_base::fixed::Fixed;
use bem_circuit::netlist::{Netlist, Signal};
use bem_engine::chronicle::PatchNote;
use bem_engine::serving::Acting;
use bem_people::payload::context::PatchContext;
use bem_people::table::Question;
use bem_runtime::input::WorldIndex;
use bem_runtime::service::Service;
use bem_runtime::world::World;
use std::fmt::Write as _;

/// Certificates of a change that are named.
const CERTIFICATES_SHOWN: usize = 16;
/// Gates of a policy that is drawn as rules while everybody waits.
const DRAWN_GATES_MAX: usize = 400;

/// Two policies, what they are called, and what was decided about the patches between them.
struct Difference<'w> {
    before: (&'static str, &'w Acting),
    after: (&'static str, &'w Acting),
    circuit: &'static str,
    patches: &'w [PatchNote],
}

impl<'w> Difference<'w> {
    /// Of the change that a question is about; nothing where its policies are no longer kept.
    fn of(world: &'w World, question: &Question, shown: &PatchContext) -> Option<Difference<'w>> {
        let standing = world.standing();
        if shown.in_force {
            let (acting, patches) = standing.replaced_by(shown)?;
            return Some(Difference {
                before: ("Before", acting),
                after: ("In force now", world.acting()),
                circuit: "The circuit in force now and its certificates",
                patches,
            });
        }
        let held = standing.held().filter(|held| held.question == question.serial)?;
        Some(Difference {
            before: ("In force", world.acting()),
            after: ("Proposed", &held.round.acting),
            circuit: "The proposed circuit and its certificates",
            patches: &held.round.patches,
        })
    }
}

/// Rules of the policies before and after a change, the circuit after it, and its certificates.
pub fn differences(page: &mut String, service: &Service, question: &Question, shown: &PatchContext) {
    let Some(world) = service.world(WorldIndex(shown.task)) else { return };
    let Some(difference) = Difference::of(world, question, shown) else {
        page.push_str(
            "<p class=muted>The rules before and after it cannot be shown: the policy has changed again since, or the one \
             before is no longer kept.</p>",
        );
        return;
    };
    let Difference { before, after, circuit, patches } = difference;
    let rules = |acting: &Acting| rules_of(acting.in_force().agent.policy(), world.spec(), DRAWN_GATES_MAX);
    page.push_str("<div class=pair>");
    for (title, acting) in [before, after] {
        let rules = escaped(&rules(acting));
        let _ = write!(page, "<div><h3>{title}</h3><pre class=rules tabindex=0>{rules}</pre></div>");
    }
    let agent = after.1.in_force().agent;
    let policy = agent.policy();
    let _ = write!(
        page,
        "</div><h3>{circuit}</h3><p>{} gates, {} bits of memory, digest <code>{}</code>.</p>",
        policy.gates(),
        policy.memory_bits(),
        policy.digest()
    );
    if policy.gates() <= DRAWN_GATES_MAX {
        let _ = write!(
            page,
            "<details><summary>Gate by gate</summary><pre class=rules tabindex=0>{}</pre></details>",
            escaped(&gates_of(policy.circuit(), policy.reads()))
        );
    }
    certificates(page, patches);
}

fn certificates(page: &mut String, patches: &[PatchNote]) {
    let count = proofs_of(patches);
    if count == 0 {
        page.push_str("<p>No certificate belongs to it.</p>");
        return;
    }
    page.push_str("<ul>");
    let proofs = patches.iter().filter(|note| note.accepted).flat_map(|note| &note.proofs);
    for (clauses, certificate) in proofs.take(CERTIFICATES_SHOWN) {
        let _ = write!(
            page,
            "<li>certificate <code>{}</code>, {} bytes, of {} bytes of clauses: accepted by the checker</li>",
            hash(certificate),
            certificate.len(),
            clauses.len()
        );
    }
    page.push_str("</ul>");
    if CERTIFICATES_SHOWN < count {
        let _ = write!(page, "<p class=muted>{CERTIFICATES_SHOWN} of {count} certificates are named.</p>");
    }
}

/// How many proofs the patches brought that were let in.
pub fn proofs_of(patches: &[PatchNote]) -> usize {
    patches.iter().filter(|note| note.accepted).map(|note| note.proofs.len()).sum()
}

/// What speaks for a change, in one sentence: its proofs and its measured gain, and nothing that it does not have.
pub fn evidence(shown: &PatchContext) -> String {
    let proofs = match shown.proofs {
        0 => "No proof belongs to this change".to_string(),
        1 => "The checker accepted one proof for this change".to_string(),
        count => format!("The checker accepted {count} proofs for this change"),
    };
    let gain = match Fixed::ZERO < shown.pox_score {
        true => format!("its measured gain is at least {:.4} of the range", float(shown.pox_score)),
        false => "no gain above zero was measured".to_string(),
    };
    format!("{proofs}, and {gain}. Your answer replaces neither a proof nor a measurement.")
}

/// A circuit, one gate a line.
fn gates_of(circuit: &Netlist, reads: &[u16]) -> String {
    let mut text = String::new();
    let inputs = circuit.inputs();
    let input = |signal: Signal| (0..inputs).find(|place| Signal::input(*place) == signal);
    let name = |signal: Signal| match (circuit.gate_position(signal), input(signal)) {
        (Some(position), _) => format!("g{position}"),
        (None, Some(place)) => match reads.get(place) {
            Some(bit) => format!("bit{bit}"),
            None => format!("memory{}", place - reads.len()),
        },
        (None, None) => String::from(if signal == Signal::TRUE { "1" } else { "0" }),
    };
    for (position, gate) in circuit.gates().iter().enumerate() {
        let _ = writeln!(text, "g{position} = {:?} {} {}", gate.op, name(gate.a), name(gate.b));
    }
    let outputs: Vec<String> = circuit.outputs().iter().map(|signal| name(*signal)).collect();
    let _ = writeln!(text, "outputs {}", outputs.join(" "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(proofs: u32, pox_score: Fixed) -> PatchContext {
        PatchContext {
            patch: 1,
            kind: 0,
            pox_score,
            deltas: [Fixed::ZERO; 4],
            risks: 0,
            task: 0,
            words: String::new(),
            policies: [1, 2],
            proofs,
            in_force: true,
            missing: Fixed::ZERO,
        }
    }

    #[test]
    fn a_change_is_called_proven_and_gainful_only_where_it_is() {
        let bare = evidence(&shown(0, Fixed::ZERO));
        assert!(bare.starts_with("No proof") && bare.contains("no gain above zero"), "{bare}");
        let one = evidence(&shown(1, Fixed::HALF));
        assert!(one.contains("accepted one proof") && one.contains("at least 0.5000"), "{one}");
        assert!(evidence(&shown(3, Fixed::ZERO)).contains("accepted 3 proofs"));
    }
}
