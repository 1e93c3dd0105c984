//! Putting an accepted patch into force: what it is about, what it was made against, and the edit that it permits.
//!
//! A [`Live`] machine takes [`AcceptedPatch`]es and nothing else ([`bem_machine::machine::Permit`]); only the checker
//! together with the improvement gate can build one. The machine owns the families; the teacher's templates and the serials
//! that were used are kept here. Must not know files or clocks. Clauses: SCC-9, SCC-1; decision D-41.

use crate::patch::{Body, Change, Patch, Subject};
use crate::verify::AcceptedPatch;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_machine::config::GenesisConfig;
use bem_machine::expert::ExpertParts;
use bem_machine::family::Family;
use bem_machine::guard::Guard;
use bem_machine::machine::{Edit, Machine, MachineError, Permit};
use bem_machine::memory::context::FamilyIndex;
use std::collections::BTreeSet;

/// The machine whose structure only accepted patches change.
pub type Live = Machine<AcceptedPatch>;

/// Why everything was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The patch was made against something else.
    #[error("patch {serial} was made against a structure that no longer is")]
    Obsolete {
        /// The patch.
        serial: u64,
    },
    /// The patch, or a later one, was applied before.
    #[error("patch {serial} is not new: {last} was applied")]
    Replayed {
        /// The patch.
        serial: u64,
        /// The highest serial applied.
        last: u64,
    },
    /// A patch about a family without one.
    #[error("patch {serial} is about a family, and there is none")]
    NoFamily {
        /// The patch.
        serial: u64,
    },
    /// The machine refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Every template number is used.
    #[error("all {maximum} templates are taken (S_templates_max)")]
    Templates {
        /// How many there may be.
        maximum: u32,
    },
}

/// What patches change besides families: templates, and which serials were used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    templates: Vec<String>,
    /// The highest serial applied to pools and templates, and the highest one applied to routing.
    last_applied: [Option<u64>; 2],
}

impl Tables {
    /// The same with these templates known already, as text.
    #[must_use]
    pub fn with_templates(self, templates: Vec<String>) -> Tables {
        Tables { templates, ..self }
    }

    /// The trees of the templates that patches have added, as text.
    pub fn templates(&self) -> &[String] {
        &self.templates
    }

    /// The highest serial that was applied to this subject. Buckets change while other patches wait, so that they count
    /// for themselves.
    pub fn last_applied(&self, subject: Subject) -> Option<u64> {
        self.last_applied[usize::from(subject == Subject::Routing)]
    }

    /// The digest that a patch about this subject must name: what it was made against.
    pub fn parent(&self, subject: Subject, family: Option<&Family>) -> Option<Digest> {
        Some(match subject {
            Subject::Pool => pool_digest(family?),
            Subject::Routing => routing_digest(family?),
            Subject::Templates => {
                let texts: Vec<&[u8]> = self.templates.iter().map(|text| text.as_bytes()).collect();
                digest::hash_parts("bem/structure/templates", &texts)
            }
        })
    }

    /// Checks that a patch is new and about what there is.
    pub fn check_current(&self, patch: &Patch, family: Option<&Family>) -> Result<(), TablesError> {
        let serial = patch.serial;
        let subject = patch.change.subject();
        if let Some(last) = self.last_applied(subject).filter(|last| serial <= *last) {
            return Err(TablesError::Replayed { serial, last });
        }
        let parent = self.parent(subject, family).ok_or(TablesError::NoFamily { serial })?;
        if parent != patch.parent {
            return Err(TablesError::Obsolete { serial });
        }
        Ok(())
    }

    /// A template is known from now on.
    pub(crate) fn add_template(&mut self, config: &GenesisConfig, tree: &str) -> Result<(), TablesError> {
        if config.templates_max as usize <= self.templates.len() {
            return Err(TablesError::Templates { maximum: config.templates_max });
        }
        self.templates.push(tree.to_string());
        Ok(())
    }

    /// The serial of a patch was used.
    pub(crate) fn note_applied(&mut self, patch: &Patch) {
        self.last_applied[usize::from(patch.change.subject() == Subject::Routing)] = Some(patch.serial);
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.templates.len());
        self.templates.iter().for_each(|text| writer.text(text));
        for last in self.last_applied {
            writer.bool(last.is_some());
            writer.u64(last.unwrap_or(0));
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Tables, DecodeError> {
        let start = reader.clone();
        let templates = (0..reader.length(4)?)
            .map(|_| Ok(reader.text()?.to_string()))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let mut last_applied = [None; 2];
        let mut is_stray = false;
        for last in &mut last_applied {
            let (any, serial) = (reader.bool()?, reader.u64()?);
            is_stray |= !any && serial != 0;
            *last = any.then_some(serial);
        }
        if config.templates_max < templates.len() as u32 || is_stray {
            return Err(start.error("tables beyond the bounds of the configuration"));
        }
        Ok(Tables { templates, last_applied })
    }
}

/// The digest of a family's experts and of which one is held.
pub fn pool_digest(family: &Family) -> Digest {
    let mut writer = Writer::new();
    for (slot, expert) in family.occupied() {
        writer.length(slot);
        expert.encode(&mut writer);
    }
    writer.u8(family.held().member.unwrap_or(u8::MAX));
    digest::hash_parts("bem/structure/pool", &[writer.as_bytes()])
}

/// The digest of a family's buckets, plain actions and guard.
pub fn routing_digest(family: &Family) -> Digest {
    let mut writer = Writer::new();
    family.directory().encode(&mut writer);
    family.since().iter().for_each(|step| writer.u64(*step));
    family.held().rule.encode(&mut writer);
    family.held().actions.iter().for_each(|action| writer.u16(*action));
    family.guard().encode(&mut writer);
    digest::hash_parts("bem/structure/routing", &[writer.as_bytes()])
}

/// The digest of everything about a family that patches change.
pub fn structure_digest(family: &Family) -> Digest {
    let parts = [pool_digest(family), routing_digest(family)];
    digest::hash_parts("bem/structure", &[parts[0].as_bytes(), parts[1].as_bytes()])
}

impl Permit for AcceptedPatch {
    fn family(&self) -> FamilyIndex {
        FamilyIndex(self.patch().family)
    }

    fn edit(&self, family: &Family) -> Option<Edit> {
        edit_of(&self.patch().change, family)
    }
}

/// What a change does to a family; nothing where it does not apply to it, or is about no family.
pub(crate) fn edit_of(change: &Change, family: &Family) -> Option<Edit> {
    Some(match change {
        Change::Retire { slot } => Edit::Retire { slot: *slot },
        Change::Reset { bucket, before } => Edit::Forget { bucket: *bucket, moment: *before },
        Change::Split { cuts, .. } => Edit::Split { cuts: cuts.clone() },
        Change::Join { pairs, .. } => Edit::Join { pairs: pairs.clone() },
        Change::Hold { actions, rule } => Edit::Hold { actions: actions.clone(), rule: *rule },
        Change::Guard { rules } => Edit::Guard(Guard::new(rules.clone(), family.shape().actions)?),
        Change::Merge { members, body } => {
            let slots: BTreeSet<u8> = members.iter().map(|member| member.slot).collect();
            Edit::Merge { slots: slots.into_iter().collect(), parts: Box::new(body.to_parts(0)) }
        }
        Change::Superoptimize { slot, circuit } => {
            let expert = family.expert(usize::from(*slot))?;
            let mut routing = expert.routing();
            routing.version += 1;
            let parts = ExpertParts {
                read: expert.read().clone(),
                write: expert.write().clone(),
                circuit: circuit.clone(),
                profile: expert.profile(),
                routing,
            };
            Edit::Replace { slot: *slot, parts: Box::new(parts) }
        }
        Change::Play { .. } | Change::Synthesize { .. } => Edit::Install(Box::new(parts_of(change, family)?)),
        Change::TeachEdit { .. } => return None,
    })
}

/// The expert that a change brings, if it brings one.
pub fn parts_of(change: &Change, family: &Family) -> Option<ExpertParts> {
    match change {
        Change::Synthesize { policy, .. } => Some(Body::from_policy(policy, family.layout()).to_parts(0)),
        Change::Play { policy, .. } => {
            // Macros are numbered by the slot's generations, which never repeat within a family.
            let tag = ObjectId::new(ObjectClass::Macro, family.pool_generation() as u32 & 0xf_ffff).to_word();
            Some(Body::from_policy(policy, family.layout()).to_parts(tag))
        }
        Change::Merge { body, .. } => Some(body.to_parts(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
