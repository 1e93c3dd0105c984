//! The tables that patches change, and the one function that changes them.
//!
//! [`Tables::apply`] builds the changed family beside the old one and puts it in place only when everything has
//! succeeded: there is no state in between. It takes an [`AcceptedPatch`], which only the checker together with
//! the improvement gate can build. What was there before is handed back with the receipt, so that a patch whose
//! promise does not come true can be taken back. Must not know files or clocks. Clauses: SCC-9, SCC-1.

use crate::contexts::Choice;
use crate::patch::{Body, Change, Patch, PatchKind, Subject};
use crate::verify::AcceptedPatch;
use crate::watch::Contradiction;
use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
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
    /// The contexts afterwards do not follow from those before.
    #[error("the contexts after the patch are not those before it, divided, joined or forgetting")]
    OtherContexts,
    /// Every expert number is used.
    #[error("all {maximum} experts of the machine have been made (S)")]
    Experts {
        /// How many there may be.
        maximum: u32,
    },
    /// Statistics of a family that is built differently.
    #[error("family {family} has other experts or routes than the statistics were gathered with")]
    OtherStructure {
        /// The family.
        family: u16,
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
    /// The contexts of each family's choice.
    choices: Vec<Choice>,
    templates: Vec<String>,
    experts_made: u32,
    /// The highest serial applied to pools and templates, and the highest one applied to choices.
    last_applied: [Option<u64>; 2],
}

impl Tables {
    /// Tables with these families, which may hold experts already, and no templates.
    pub fn new(families: Vec<Family>) -> Tables {
        let numbers = families.iter().flat_map(|family| {
            family.occupied().map(|(_, expert)| expert.id().payload() + 1).collect::<Vec<_>>()
        });
        let experts_made = numbers.max().unwrap_or(0);
        let choices = vec![Choice::new(); families.len()];
        Tables { families, choices, templates: Vec::new(), experts_made, last_applied: [None; 2] }
    }

    /// The same tables with these templates known already, as text.
    #[must_use]
    pub fn with_templates(self, templates: Vec<String>) -> Tables {
        Tables { templates, ..self }
    }

    /// One family.
    pub fn family(&self, family: u16) -> Result<&Family, TablesError> {
        let count = self.families.len();
        self.families.get(usize::from(family)).ok_or(TablesError::UnknownFamily { family, count })
    }

    /// The contexts of a family's choice.
    pub fn choice(&self, family: u16) -> Result<&Choice, TablesError> {
        let count = self.choices.len();
        self.choices.get(usize::from(family)).ok_or(TablesError::UnknownFamily { family, count })
    }

    /// How many families there are.
    pub fn family_count(&self) -> usize {
        self.families.len()
    }

    /// Takes over the statistics that were gathered elsewhere since; the structure must be the same.
    pub fn renew(&mut self, family: u16, current: &Family) -> Result<(), TablesError> {
        if structure_digest(self.family(family)?) != structure_digest(current) {
            return Err(TablesError::OtherStructure { family });
        }
        self.families[usize::from(family)] = current.clone();
        Ok(())
    }

    /// A family, to book outcomes in. Structure is changed by [`Tables::apply`] alone.
    pub(crate) fn statistics_mut(&mut self, family: u16) -> Option<&mut Family> {
        self.families.get_mut(usize::from(family))
    }

    /// The trees of the templates that patches have added, as text.
    pub fn templates(&self) -> &[String] {
        &self.templates
    }

    /// The highest serial that was applied to this subject. Contexts change while other patches wait, so that they count
    /// for themselves.
    pub fn last_applied(&self, subject: Subject) -> Option<u64> {
        self.last_applied[usize::from(subject == Subject::Choice)]
    }

    /// The digest that a patch about this subject of a family must name: the structure it was made against.
    ///
    /// Statistics are not part of it, or every step would make every patch obsolete.
    pub fn parent(&self, subject: Subject, family: u16) -> Result<Digest, TablesError> {
        Ok(match subject {
            Subject::Pool => structure_digest(self.family(family)?),
            Subject::Choice => self.choice(family)?.digest(),
            Subject::Templates => {
                let texts: Vec<&[u8]> = self.templates.iter().map(|text| text.as_bytes()).collect();
                digest::hash_parts("bem/structure/templates", &texts)
            }
        })
    }

    /// Checks that a patch is new and about what there is.
    pub fn check_current(&self, patch: &Patch) -> Result<(), TablesError> {
        let serial = patch.serial;
        let subject = patch.change.subject();
        if let Some(last) = self.last_applied(subject).filter(|last| serial <= *last) {
            return Err(TablesError::Replayed { serial, last });
        }
        if self.parent(subject, patch.family)? != patch.parent {
            return Err(TablesError::Obsolete { serial });
        }
        Ok(())
    }

    /// Applies an accepted patch: all of it, or nothing and a reason.
    pub fn apply(&mut self, config: &GenesisConfig, accepted: AcceptedPatch) -> Result<Applied, TablesError> {
        let receipt = self.follow(config, accepted.patch())?;
        Ok(Applied { accepted, receipt })
    }

    /// Makes the change of a patch: all of it, or nothing and a reason. For [`Tables::apply`], and for whoever follows what
    /// a history says was applied; nothing is judged here.
    pub(crate) fn follow(&mut self, config: &GenesisConfig, patch: &Patch) -> Result<Receipt, TablesError> {
        self.check_current(patch)?;
        let subject = patch.change.subject();
        let before = match (subject, &patch.change) {
            (_, Change::TeachEdit { tree, .. }) => {
                if config.templates_max as usize <= self.templates.len() {
                    return Err(TablesError::Templates { maximum: config.templates_max });
                }
                self.templates.push(tree.clone());
                Before::Templates(self.templates.len() - 1)
            }
            (Subject::Choice, change) => {
                let new = rechosen(self.choice(patch.family)?, change).ok_or(TablesError::OtherContexts)?;
                let place = &mut self.choices[usize::from(patch.family)];
                Before::Choice(std::mem::replace(place, new))
            }
            (_, change) => {
                let old = self.family(patch.family)?;
                let mut experts_made = self.experts_made;
                let new = changed(config, old, change, &mut experts_made)?;
                self.experts_made = experts_made;
                let place = &mut self.families[usize::from(patch.family)];
                Before::Family(Box::new(std::mem::replace(place, new)))
            }
        };
        let (serial, kind, family) = (patch.serial, patch.kind(), patch.family);
        self.last_applied[usize::from(subject == Subject::Choice)] = Some(serial);
        let after = self.parent(subject, family)?;
        Ok(Receipt { serial, kind, family, before, after })
    }

    /// The family as a patch would leave it; nothing is changed, and nothing is judged.
    pub(crate) fn preview(&self, config: &GenesisConfig, patch: &Patch) -> Result<Family, TablesError> {
        changed(config, self.family(patch.family)?, &patch.change, &mut self.experts_made.clone())
    }

    /// Takes a patch back: structure and statistics become what they were before it. The serial stays used.
    ///
    /// Only the latest change of a family can be taken back; what was learned in the family since is lost.
    pub fn roll_back(&mut self, receipt: Receipt, reason: Contradiction) -> Result<RolledBack, TablesError> {
        let (serial, kind) = (receipt.serial, receipt.kind);
        self.take_back(receipt)?;
        Ok(RolledBack { serial, kind, reason })
    }

    /// The same without a reason, for whoever follows what a history says.
    pub(crate) fn take_back(&mut self, receipt: Receipt) -> Result<(), TablesError> {
        let Receipt { serial, family, before, after, .. } = receipt;
        if self.parent(before.subject(), family)? != after {
            return Err(TablesError::Obsolete { serial });
        }
        match before {
            Before::Choice(old) => self.choices[usize::from(family)] = old,
            Before::Family(old) => self.families[usize::from(family)] = *old,
            Before::Templates(count) => self.templates.truncate(count),
        }
        Ok(())
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.families.len());
        self.families.iter().for_each(|family| family.encode(writer));
        self.choices.iter().for_each(|choice| choice.encode(writer));
        writer.length(self.templates.len());
        self.templates.iter().for_each(|text| writer.text(text));
        writer.u32(self.experts_made);
        for last in self.last_applied {
            writer.bool(last.is_some());
            writer.u64(last.unwrap_or(0));
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Tables, DecodeError> {
        let start = reader.clone();
        let families = (0..reader.length(64)?)
            .map(|_| Family::decode(config, reader))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let choices = families.iter().map(|_| Choice::decode(reader)).collect::<Result<Vec<_>, _>>()?;
        let templates = (0..reader.length(4)?)
            .map(|_| Ok(reader.text()?.to_string()))
            .collect::<Result<Vec<_>, DecodeError>>()?;
        let experts_made = reader.u32()?;
        let mut last_applied = [None; 2];
        let mut is_stray = false;
        for last in &mut last_applied {
            let (any, serial) = (reader.bool()?, reader.u64()?);
            is_stray |= !any && serial != 0;
            *last = any.then_some(serial);
        }
        let full = config.families_max < families.len() as u32
            || config.templates_max < templates.len() as u32
            || config.experts_max < experts_made;
        if full || is_stray {
            return Err(start.error("tables beyond the bounds of the configuration"));
        }
        Ok(Tables { families, choices, templates, experts_made, last_applied })
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
        Change::Play { policy, safe, .. } => {
            let (id, body) = (next_id()?, Body::from_policy(policy, family.layout(), *safe));
            let tag = ObjectId::new(ObjectClass::Macro, id.payload()).to_word();
            family.install(config, id, body.to_parts(tag))?;
        }
        Change::Synthesize { policy, safe, .. } => {
            let body = Body::from_policy(policy, family.layout(), *safe);
            family.install(config, next_id()?, body.to_parts(0))?;
        }
        Change::TeachEdit { .. } | Change::Divide { .. } | Change::Join { .. } | Change::Forget { .. } => {
            unreachable!("templates and contexts are no part of a family's pool")
        }
    }
    Ok(family)
}

/// The contexts after the change; nothing if they are not what the change says.
pub(crate) fn rechosen(choice: &Choice, change: &Change) -> Option<Choice> {
    match change {
        Change::Divide { after } => choice.divided(after),
        Change::Join { after, .. } => choice.joined(after),
        Change::Forget { context, before } => choice.forgetting(*context, *before),
        _ => None,
    }
}

/// What was there before a patch.
#[derive(Clone, Debug)]
enum Before {
    Family(Box<Family>),
    Choice(Choice),
    /// How many templates there were.
    Templates(usize),
}

impl Before {
    fn subject(&self) -> Subject {
        match self {
            Before::Family(_) => Subject::Pool,
            Before::Choice(_) => Subject::Choice,
            Before::Templates(_) => Subject::Templates,
        }
    }
}

/// What it takes to take a patch back.
#[derive(Clone, Debug)]
pub struct Receipt {
    serial: u64,
    kind: PatchKind,
    family: u16,
    before: Before,
    after: Digest,
}

impl Receipt {
    /// Which patch.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its kind.
    pub fn kind(&self) -> PatchKind {
        self.kind
    }

    /// The family it was about.
    pub fn family(&self) -> u16 {
        self.family
    }

    /// From now on taking this patch back also takes back what led to this structure since: the same behaviour.
    pub(crate) fn carry_over(&mut self, after: Digest) {
        self.after = after;
    }

    /// The family as it was before, if the patch was about one: the incumbent for watching.
    pub fn family_before(&self) -> Option<&Family> {
        match &self.before {
            Before::Family(family) => Some(family),
            Before::Templates(_) | Before::Choice(_) => None,
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.serial);
        writer.u8(self.kind as u8);
        writer.u16(self.family);
        writer.raw(self.after.as_bytes());
        writer.u8(self.before.subject() as u8);
        match &self.before {
            Before::Family(family) => family.encode(writer),
            Before::Choice(choice) => choice.encode(writer),
            Before::Templates(count) => writer.u32(*count as u32),
        }
    }

    /// Reads canonical bytes back.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Receipt, DecodeError> {
        let unknown = reader.error("a receipt of no known kind");
        let serial = reader.u64()?;
        let kind = *PatchKind::ALL.get(usize::from(reader.u8()?)).ok_or(unknown.clone())?;
        let family = reader.u16()?;
        let after = Digest::decode(reader)?;
        let before = match Subject::ALL.get(usize::from(reader.u8()?)) {
            Some(Subject::Templates) => Before::Templates(reader.u32()? as usize),
            Some(Subject::Choice) => Before::Choice(Choice::decode(reader)?),
            Some(Subject::Pool) => Before::Family(Box::new(Family::decode(config, reader)?)),
            None => return Err(unknown),
        };
        Ok(Receipt { serial, kind, family, before, after })
    }
}

/// What was applied, and how to take it back.
#[derive(Clone, Debug)]
pub struct Applied {
    accepted: AcceptedPatch,
    receipt: Receipt,
}

impl Applied {
    /// What was applied.
    pub fn accepted(&self) -> &AcceptedPatch {
        &self.accepted
    }

    /// The digest of the structure before and after.
    pub fn digests(&self) -> (Digest, Digest) {
        (self.accepted.patch().parent, self.receipt.after)
    }

    /// What it takes to take it back.
    pub fn into_receipt(self) -> Receipt {
        self.receipt
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
