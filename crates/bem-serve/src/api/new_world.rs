//! What a new world is, read from the body of a request: widths, bounds, features and the rules over them.
//!
//! Rules over features become patterns of bits with an action, like those that are named one by one, so that the machine proves
//! the same of both; the rules themselves stay with the world as they were written. Must not know what is served or how.
//! Clauses: VM-13, VM-17, GLE-9; decisions D-226, D-275.

use super::Fields;
use crate::http::Failure;
use bem_base::environment::{Field, Forbidden, Pattern};
use bem_base::fixed::Fixed;
use bem_base::limits::ACTIONS_MAX;
use bem_data::{DataError, Declared, Encoder, Feature, Rule};
use bem_runtime::input::{FloorSpec, WorldSpec};
use bem_runtime::limits::EXPIRE_AFTER_DEFAULT;
use serde_json::{Map, Value};

/// Reads what a world is.
pub fn read_world(body: &[u8]) -> Result<WorldSpec, Failure> {
    read_over(body, None)
}

/// What a world is, beside one of its name that is served: that one's spelling of it where both say the same. Numbers of a served
/// world stay cut where the version that opened it cut them, so that the same request is the same world after an upgrade.
pub fn read_beside(body: &[u8], known: &WorldSpec) -> Result<WorldSpec, Failure> {
    let spec = read_world(body)?;
    let kept = match spec == *known {
        true => None,
        false => Declared::from_json(&known.note, known.shape.actions).ok(),
    };
    let again = kept.and_then(|kept| read_over(body, Some(&kept.encoder)).ok());
    Ok(again.filter(|again| again == known).unwrap_or(spec))
}

/// The same with numbers cut as this encoder cuts them, where its features are the world's; refused where it lacks a threshold
/// of the rules.
fn read_over(body: &[u8], kept: Option<&Encoder>) -> Result<WorldSpec, Failure> {
    let mut fields = Fields::read(body)?;
    let name = Fields::must("name", fields.text("name")?)?;
    let features = fields.list("features")?;
    let bits: Option<u16> = fields.number("obs_bits")?;
    let actions = Fields::must("actions", fields.number("actions")?)?;
    let range = Fields::must("reward_range", fields.list("reward_range")?)?;
    let bounds: Vec<Option<i32>> =
        range.iter().map(|bound| bound.as_i64().and_then(|bound| i32::try_from(bound).ok())).collect();
    let [Some(low), Some(high)] = bounds[..] else {
        return Err(Failure::bad(
            "reward_range",
            "reward_range must be two whole numbers, the smaller first",
        ));
    };
    let returns = fields.list("return_range")?.map(|range| read_returns(&range)).transpose()?;
    let horizon = fields.number("horizon")?.unwrap_or(1);
    let groups = read_groups(fields.list("fields")?)?;
    let min_propensity = match fields.take("min_propensity") {
        None => Fixed::ZERO,
        Some(value) => {
            let share = value.as_f64().filter(|share| (0.0..=0.5).contains(share));
            let share = share.ok_or_else(|| {
                Failure::bad("min_propensity", "min_propensity must be a number from 0 to 0.5")
            })?;
            Fixed::from_raw((share * (1u64 << 32) as f64) as i64)
        }
    };
    let expire_after = fields.number("expire_after")?.unwrap_or(EXPIRE_AFTER_DEFAULT);
    let pairs = fields.list("forbidden")?.unwrap_or_default();
    let (bad_if, forbid) = (fields.list("bad_if")?, fields.list("forbid")?);
    let floor = fields.take("floor").map(|floor| read_floor(&floor)).transpose()?;
    fields.finish(
        "name, obs_bits, features, actions, reward_range, return_range, fields, horizon, min_propensity, expire_after, forbidden, bad_if, forbid and floor are",
    )?;
    let (bits, groups, declared) = match (features, bits) {
        (None, bits) => {
            let ruled =
                [("bad_if", &bad_if), ("forbid", &forbid)].into_iter().find(|(_, rules)| rules.is_some());
            if let Some((name, _)) = ruled {
                return Err(Failure::bad(name, format!("{name} needs features that it speaks of")));
            }
            let missing = || Failure::bad("obs_bits", "obs_bits is missing, and so is features");
            (bits.ok_or_else(missing)?, groups, None)
        }
        (Some(_), Some(_)) => {
            return Err(Failure::bad("obs_bits", "obs_bits and features exclude each other"));
        }
        (Some(features), None) => {
            let declared = read_declared(features, (bad_if, forbid), (actions, horizon), kept)?;
            (declared.encoder.bits() as u16, declared.encoder.fields(), Some(declared))
        }
    };
    let encoder = declared.as_ref().map(|declared| &declared.encoder);
    let mut forbidden =
        pairs.iter().map(|pair| read_pair(pair, bits, encoder)).collect::<Result<Vec<_>, _>>()?;
    forbidden.sort_unstable();
    // A pair may be named and follow from a rule as well; one that is named twice is refused.
    let ruled = declared.iter().flat_map(|declared| &declared.forbidden);
    let ruled: Vec<Forbidden> =
        ruled.filter(|pair| forbidden.binary_search(pair).is_err()).copied().collect();
    forbidden.extend(ruled);
    forbidden.sort_unstable();
    let mut shape = WorldSpec::shape_of(bits, actions, horizon, (low, high), groups);
    (shape.return_min, shape.return_max) = returns.unwrap_or((shape.return_min, shape.return_max));
    let note = declared.map_or_else(String::new, |declared| declared.to_json());
    Ok(WorldSpec { name, shape, min_propensity, expire_after, forbidden, note, floor })
}

/// Features and the rules over them.
fn read_declared(
    features: Vec<Value>,
    (bad_if, forbid): (Option<Vec<Value>>, Option<Vec<Value>>),
    (actions, horizon): (u16, u32),
    kept: Option<&Encoder>,
) -> Result<Declared, Failure> {
    if !(1..=ACTIONS_MAX).contains(&usize::from(actions)) {
        let message = format!("actions {actions} is out of range: 1 to {ACTIONS_MAX}");
        return Err(Failure::bad("actions", message));
    }
    let about =
        |field: &'static str| move |error: DataError| Failure::bad(field, format!("{field}: {error}"));
    let features = Feature::list(&Value::Array(features).to_string()).map_err(about("features"))?;
    let rules = |field: &'static str, list: Option<Vec<Value>>| {
        let text = Value::Array(list.unwrap_or_default()).to_string();
        Rule::list(field, &text, &features, actions).map_err(about(field))
    };
    let (bad, forbid) = (rules("bad_if", bad_if)?, rules("forbid", forbid)?);
    let field = match (bad.is_empty(), forbid.is_empty()) {
        (true, true) => "features",
        (false, true) => "bad_if",
        _ => "forbid",
    };
    let is_cut = |kept: &&Encoder| kept.columns().iter().map(|column| &column.feature).eq(&features);
    match kept.filter(is_cut) {
        Some(kept) => Declared::over(kept.clone(), bad, forbid, actions).map_err(about(field)),
        None => Declared::of_world(&features, (&bad, &forbid), actions, horizon).map_err(about(field)),
    }
}

fn read_returns(range: &[Value]) -> Result<(i64, i64), Failure> {
    match range.iter().map(Value::as_i64).collect::<Vec<_>>()[..] {
        [Some(low), Some(high)] => Ok((low, high)),
        _ => Err(Failure::bad("return_range", "return_range must be two whole numbers, the smaller first")),
    }
}

fn read_floor(floor: &Value) -> Result<FloorSpec, Failure> {
    let wrong =
        || Failure::bad("floor", "floor must be {\"action\": ..., \"risk\": ...} with a risk from 0 to 1");
    let is_known = |object: &Map<String, Value>| object.keys().all(|key| key == "action" || key == "risk");
    floor.as_object().filter(|object| is_known(object)).ok_or_else(wrong)?;
    let action = floor["action"].as_u64().and_then(|action| u16::try_from(action).ok()).ok_or_else(wrong)?;
    let risk = floor["risk"].as_f64().filter(|risk| (0.0..=1.0).contains(risk)).ok_or_else(wrong)?;
    Ok(FloorSpec { action, risk: (risk * 1_000.0) as u16 })
}

fn read_groups(list: Option<Vec<Value>>) -> Result<Vec<Field>, Failure> {
    let wrong = || Failure::bad("fields", "fields must be a list of pairs: first bit and width");
    let read = |value: Value| {
        let pair: Vec<u16> =
            value.as_array()?.iter().map(|part| u16::try_from(part.as_u64()?).ok()).collect::<Option<_>>()?;
        let [low, width] = pair[..] else { return None };
        Some(Field { low, width })
    };
    list.unwrap_or_default().into_iter().map(|value| read(value).ok_or_else(wrong)).collect()
}

fn read_pair(pair: &Value, bits: u16, encoder: Option<&Encoder>) -> Result<Forbidden, Failure> {
    let wrong = || {
        let form = "forbidden must be a list of {\"obs\": ..., \"action\": ...}";
        let seen =
            format!("obs is {bits} zeros, ones and dashes (a dash: any), or an object of all named values");
        Failure::bad("forbidden", format!("{form}: {seen}"))
    };
    let action = pair["action"].as_u64().and_then(|action| u16::try_from(action).ok()).ok_or_else(wrong)?;
    let seen = match (&pair["obs"], encoder) {
        (Value::String(text), _) if text.len() == usize::from(bits) => Pattern::from_text(text),
        (values @ Value::Object(_), Some(encoder)) => {
            encoder.encode_json(&values.to_string()).ok().map(Pattern::whole)
        }
        _ => None,
    };
    Ok(Forbidden { seen: seen.ok_or_else(wrong)?, action })
}
