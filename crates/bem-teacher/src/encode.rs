//! The teacher as canonical bytes, for snapshots. Ladders are not written: they follow from the domains.
//! Clauses: GLE-6, LOG-4.

use crate::controller::Controller;
use crate::ladder::Domain;
use crate::teacher::{Cell, TEMPLATES_MAX, TEMPLATES_PER_BAND_MAX, Teacher, TeacherConfig};
use crate::template::{Template, TemplateId, TemplateStatistics, domain_of};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_games::compose::TaskTree;
use bem_learn::bucket::Bucket;
use std::collections::BTreeMap;

/// Bytes of a template besides its text.
const TEMPLATE_BYTES_MIN: usize = 53;

impl Teacher {
    /// Writes everything that influences what comes next.
    pub fn encode(&self, writer: &mut Writer) {
        self.controller.encode(writer);
        writer.u64(self.selections);
        writer.u32(self.cursor);
        self.mutations.encode(writer);
        writer.u32(self.templates.len() as u32);
        for template in &self.templates {
            writer.text(&template.tree.to_string());
            writer.i64(template.difficulty_structural.to_raw());
            writer.i64(template.difficulty.to_raw());
            let statistics = &template.statistics;
            writer.u64(statistics.usage);
            writer.i64(statistics.pass_rate.to_raw());
            writer.i64(statistics.regret.to_raw());
            writer.u64(statistics.last_update);
            writer.bool(statistics.learned.is_some());
            statistics.learned.iter().for_each(|learned| writer.i64(learned.to_raw()));
        }
        writer.u32(self.cells.len() as u32);
        for ((domain, band), cell) in &self.cells {
            writer.u8(domain.0);
            writer.u8(*band);
            writer.u32(cell.members.len() as u32);
            cell.members.iter().for_each(|id| writer.u32(id.0));
            cell.bucket.encode(writer);
        }
    }

    /// Reads a teacher with this configuration back.
    pub fn decode(config: TeacherConfig, reader: &mut Reader<'_>) -> Result<Teacher, DecodeError> {
        let empty = Teacher::empty(config);
        let (bands, config) = (empty.bands(), &empty.config);
        let controller = Controller::decode(bands, config.pace, reader)?;
        let selections = reader.u64()?;
        let cursor = reader.u32()?;
        let mutations = Prng::decode(reader)?;
        let count = reader.length(TEMPLATE_BYTES_MIN)?;
        if TEMPLATES_MAX.min(config.templates_max) < count {
            return Err(reader.error("more templates than a teacher may have"));
        }
        let mut templates = Vec::with_capacity(count);
        for index in 0..count {
            templates.push(decode_template(TemplateId(index as u32), config, reader)?);
        }
        let count = reader.length(10)?;
        let mut cells = BTreeMap::new();
        for _ in 0..count {
            let key = (Domain(reader.u8()?), reader.u8()?);
            let cell = decode_cell(key, bands, &templates, reader)?;
            if cells.last_key_value().is_some_and(|(last, _)| key <= *last) {
                return Err(reader.error("cells out of order"));
            }
            cells.insert(key, cell);
        }
        let teacher = Teacher { controller, selections, cursor, mutations, templates, cells, ..empty };
        for ((_, band), cell) in &teacher.cells {
            if cell.members.iter().any(|id| teacher.band_of(*id) != *band) {
                return Err(reader.error("a template in a band that is not its own"));
            }
        }
        Ok(teacher)
    }
}

fn decode_template(
    id: TemplateId,
    config: &TeacherConfig,
    reader: &mut Reader<'_>,
) -> Result<Template, DecodeError> {
    let text = reader.text()?;
    let tree = TaskTree::parse(text).map_err(|_| reader.error("a template that cannot be read"))?;
    if tree.to_string() != text {
        return Err(reader.error("a template in another spelling"));
    }
    let domain = domain_of(&tree).filter(|domain| config.domains.contains(domain));
    let domain = domain.ok_or_else(|| reader.error("a template of no domain that is taught"))?;
    let mut bounded = |low: Fixed, high: Fixed, reason: &'static str| {
        let value = Fixed::from_raw(reader.i64()?);
        if value < low || high < value { Err(reader.error(reason)) } else { Ok(value) }
    };
    let limit = Fixed::from_int(1 << 20);
    let difficulty_structural = bounded(limit.negated(), limit, "a difficulty out of range")?;
    let difficulty = bounded(limit.negated(), limit, "a difficulty out of range")?;
    let usage = reader.u64()?;
    if u64::MAX / 2 < usage {
        return Err(reader.error("a usage that cannot have been counted"));
    }
    let mut share = |reason: &'static str| {
        let value = Fixed::from_raw(reader.i64()?);
        if value < Fixed::ZERO || Fixed::ONE < value { Err(reader.error(reason)) } else { Ok(value) }
    };
    let pass_rate = share("a pass rate outside zero to one")?;
    let regret = share("a regret outside zero to one")?;
    let last_update = reader.u64()?;
    let malformed = reader.error("steps to learn that nobody can have taken");
    let learned = if reader.bool()? { Some(Fixed::from_raw(reader.i64()?)) } else { None };
    if learned.is_some_and(|learned| learned < Fixed::ZERO || Fixed::from_int(64) < learned) {
        return Err(malformed);
    }
    let statistics = TemplateStatistics { usage, pass_rate, regret, last_update, learned };
    Ok(Template { id, domain, tree, difficulty_structural, difficulty, statistics })
}

fn decode_cell(
    key: (Domain, u8),
    bands: usize,
    templates: &[Template],
    reader: &mut Reader<'_>,
) -> Result<Cell, DecodeError> {
    if bands <= usize::from(key.1) {
        return Err(reader.error("a band that does not exist"));
    }
    let count = reader.length(4)?;
    if count == 0 || TEMPLATES_PER_BAND_MAX < count {
        return Err(reader.error("a cell with too few or too many templates"));
    }
    let mut members: Vec<TemplateId> = Vec::with_capacity(count);
    for _ in 0..count {
        let id = TemplateId(reader.u32()?);
        let fits = templates.get(id.0 as usize).is_some_and(|template| template.domain == key.0);
        if !fits || members.last().is_some_and(|last| id <= *last) {
            return Err(reader.error("a member that does not fit its cell"));
        }
        members.push(id);
    }
    let bucket = Bucket::decode(reader)?;
    if bucket.live() != u16::MAX >> (TEMPLATES_PER_BAND_MAX - count) {
        return Err(reader.error("a bucket whose live arms are not its members"));
    }
    Ok(Cell { members, bucket })
}
