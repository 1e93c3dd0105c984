//! The tables that patches change, and the one function that changes them.
//!
//! [`Tables::apply`] builds the changed family beside the old one and puts it in place only when everything has
//! succeeded: there is no state in between. It takes an [`AcceptedPatch`], which only the checker together with
//! the improvement gate can build. What was there before is handed back with the receipt, so that a patch whose
//! promise does not come true can be taken back. Must not know files or clocks. Clauses: SCC-9, SCC-1.

use crate::patch::{Change, Patch, PatchKind};
use crate::verify::AcceptedPatch;
use crate::watch::Contradiction;
use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_machine::config::GenesisConfig;
use bem_machine::expert::ExpertParts;
use bem_machine::family::{Family, FamilyError};
use std::collections::BTreeSet;

/// Why the tables were left as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// No such family.
    #[error("family {family} is out of range: there are {count}")]
    UnknownFamily {
        /// The family asked for.
        family: u16,
        /// Families there are.
        count: usize,
    },
    /// The patch was made against something else.
    #[error("patch {serial} was made against tables that no longer are")]
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
    /// The family refused.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// The directory after the split is not the one that was proven.
    #[error("the split leads to another directory than the one that was proven")]
    OtherDirectory,
    /// Every expert number is used.
    #[error("all {maximum} experts of the machine have been made (S)")]
    Experts {
        /// How many there may be.
        maximum: u32,
    },
    /// Every template number is used.
    #[error("all {maximum} templates are taken (S_templates_max)")]
    Templates {
        /// How many there may be.
        maximum: u32,
    },
}

/// Everything that patches change. Invariant: families and templates change together with their digests, because
/// these are computed, not kept.
#[derive(Clone, Debug)]
pub struct Tables {
    families: Vec<Family>,
    templates: Vec<String>,
    experts_made: u32,
    last_applied: Option<u64>,
}

impl Tables {
    /// Tables with these families, which may hold experts already, and no templates.
    pub fn new(families: Vec<Family>) -> Tables {
        let numbers = families.iter().flat_map(|family| {
            family.occupied().map(|(_, expert)| expert.id().payload() + 1).collect::<Vec<_>>()
        });
        let experts_made = numbers.max().unwrap_or(0);
        Tables { families, templates: Vec::new(), experts_made, last_applied: None }
    }

    /// One family.
    pub fn family(&self, family: u16) -> Result<&Family, TablesError> {
        let count = self.families.len();
        self.families.get(usize::from(family)).ok_or(TablesError::UnknownFamily { family, count })
    }

    /// The trees of the templates that patches have added, as text.
    pub fn templates(&self) -> &[String] {
        &self.templates
    }

    /// The highest serial that was applied.
    pub fn last_applied(&self) -> Option<u64> {
        self.last_applied
    }

    /// The digest that a patch of this kind about this family must name: the structure it was made against.
    ///
    /// Statistics are not part of it, or every step would make every patch obsolete.
    pub fn parent(&self, kind: PatchKind, family: u16) -> Result<Digest, TablesError> {
        if kind == PatchKind::TeachEdit {
            let texts: Vec<&[u8]> = self.templates.iter().map(|text| text.as_bytes()).collect();
            return Ok(digest::hash_parts("bem/structure/templates", &texts));
        }
        Ok(structure_digest(self.family(family)?))
    }

    /// Checks that a patch is new and about what there is.
    pub fn check_current(&self, patch: &Patch) -> Result<(), TablesError> {
        let serial = patch.serial;
        if let Some(last) = self.last_applied.filter(|last| serial <= *last) {
            return Err(TablesError::Replayed { serial, last });
        }
        if self.parent(patch.kind(), patch.family)? != patch.parent {
            return Err(TablesError::Obsolete { serial });
        }
        Ok(())
    }

    /// Applies an accepted patch: all of it, or nothing and a reason.
    pub fn apply(&mut self, config: &GenesisConfig, accepted: AcceptedPatch) -> Result<Applied, TablesError> {
        let patch = accepted.patch();
        self.check_current(patch)?;
        let before = if let Change::TeachEdit { tree, .. } = &patch.change {
            if config.templates_max as usize <= self.templates.len() {
                return Err(TablesError::Templates { maximum: config.templates_max });
            }
            self.templates.push(tree.clone());
            Before::Templates(self.templates.len() - 1)
        } else {
            let old = self.family(patch.family)?;
            let mut experts_made = self.experts_made;
            let new = changed(config, old, &patch.change, &mut experts_made)?;
            self.experts_made = experts_made;
            let place = &mut self.families[usize::from(patch.family)];
            Before::Family(Box::new(std::mem::replace(place, new)))
        };
        self.last_applied = Some(patch.serial);
        let after = self.parent(patch.kind(), patch.family)?;
        Ok(Applied { accepted, before, after })
    }

    /// Takes a patch back: structure and statistics become what they were before it. The serial stays used.
    ///
    /// Only the latest change of a family can be taken back; what was learned in the family since is lost.
    pub fn roll_back(&mut self, applied: Applied, reason: Contradiction) -> Result<RolledBack, TablesError> {
        let patch = applied.accepted.patch();
        let serial = patch.serial;
        if self.parent(patch.kind(), patch.family)? != applied.after {
            return Err(TablesError::Obsolete { serial });
        }
        let (kind, family) = (patch.kind(), patch.family);
        match applied.before {
            Before::Family(old) => self.families[usize::from(family)] = *old,
            Before::Templates(count) => self.templates.truncate(count),
        }
        Ok(RolledBack { serial, kind, reason })
    }
}

/// The digest of a family's experts and routing.
pub fn structure_digest(family: &Family) -> Digest {
    let mut writer = Writer::new();
    for (slot, expert) in family.occupied() {
        writer.length(slot);
        expert.encode(&mut writer);
    }
    family.directory().encode(&mut writer);
    digest::hash_parts("bem/structure/family", &[writer.as_bytes()])
}

/// The family after the change.
fn changed(
    config: &GenesisConfig,
    old: &Family,
    change: &Change,
    experts_made: &mut u32,
) -> Result<Family, TablesError> {
    let mut family = old.clone();
    let mut next_id = || {
        if config.experts_max <= *experts_made {
            return Err(TablesError::Experts { maximum: config.experts_max });
        }
        *experts_made += 1;
        Ok(ObjectId::new(ObjectClass::Expert, *experts_made - 1))
    };
    match change {
        Change::Retire { slot } => family.retire(usize::from(*slot))?,
        Change::Reset { bucket } => family.reset(*bucket)?,
        Change::Split { bucket, by, after } => {
            family.split(*bucket, by)?;
            if family.directory() != after {
                return Err(TablesError::OtherDirectory);
            }
        }
        Change::Merge { members, body } => {
            let slots: BTreeSet<u8> = members.iter().map(|member| member.slot).collect();
            for slot in slots {
                family.retire(usize::from(slot))?;
            }
            family.install(config, next_id()?, body.to_parts(0))?;
        }
        Change::Superoptimize { slot, circuit } => {
            let slot = usize::from(*slot);
            let expert = family.expert(slot).ok_or(FamilyError::EmptySlot { slot })?;
            let mut routing = expert.routing();
            routing.version += 1;
            let parts = ExpertParts {
                read: expert.read().clone(),
                write: expert.write().clone(),
                circuit: circuit.clone(),
                profile: expert.profile(),
                routing,
            };
            family.replace(config, slot, next_id()?, parts)?;
        }
        Change::Macro { body, .. } => {
            let id = next_id()?;
            family.install(
                config,
                id,
                body.to_parts(ObjectId::new(ObjectClass::Macro, id.payload()).to_word()),
            )?;
        }
        Change::Synthesize { policy, safe, .. } => {
            let body = crate::patch::Body::from_policy(policy, family.layout(), *safe);
            family.install(config, next_id()?, body.to_parts(0))?;
        }
        Change::TeachEdit { .. } => unreachable!("templates belong to no family"),
    }
    Ok(family)
}

/// What was there before a patch.
#[derive(Clone, Debug)]
enum Before {
    Family(Box<Family>),
    /// How many templates there were.
    Templates(usize),
}

/// The receipt of an application.
#[derive(Clone, Debug)]
pub struct Applied {
    accepted: AcceptedPatch,
    before: Before,
    after: Digest,
}

impl Applied {
    /// What was applied.
    pub fn accepted(&self) -> &AcceptedPatch {
        &self.accepted
    }

    /// The digest of the structure before and after.
    pub fn digests(&self) -> (Digest, Digest) {
        (self.accepted.patch().parent, self.after)
    }

    /// The family as it was before, if the patch was about one: the incumbent for watching.
    pub fn family_before(&self) -> Option<&Family> {
        match &self.before {
            Before::Family(family) => Some(family),
            Before::Templates(_) => None,
        }
    }
}

/// A patch that was taken back. It counts against its proposer: see [`crate::score::ProposerRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Which patch.
    pub serial: u64,
    /// Its kind.
    pub kind: PatchKind,
    /// Why.
    pub reason: Contradiction,
}

#[cfg(test)]
mod tests;
