//! The forms of a proposal, each bounded before anything is built of it.

use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Op, Signal};
use bem_engine::offer::{Atom, Formula, Offer, Policy, Rule, action_bits};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Parts of a tree or of an expression at most.
const PARTS_MAX: usize = 2_048;
/// Parts inside each other at most.
const DEPTH_MAX: usize = 40;
/// Gates of a circuit at most.
const GATES_MAX: usize = 1_024;
/// Bits that a circuit keeps at most.
const MEMORY_MAX: usize = 8;
/// Bits that a template reads, and rules and rows of it, at most.
const TEMPLATE_MAX: usize = 256;
/// Bits of a key of rows.
const KEY_BITS_MAX: usize = 12;

/// What was read of a proposal, or why it is refused.
type Said<T> = Result<T, String>;

/// What is said in this form.
pub(super) fn offer(form: &str, said: &Value, shape: &Shape) -> Said<Offer> {
    match form {
        "action" => Ok(Offer::Circuit(Policy::constant(shape.actions, action(said, shape)?))),
        "circuit" => circuit(said, shape),
        "templates" => {
            let formulas = list(said, "templates", shape)?.iter().map(|said| template(said, shape));
            Ok(Offer::Formulas(formulas.collect::<Said<_>>()?))
        }
        "tree" => {
            let mut reader = Expressions::new(shape);
            let action = reader.tree(said, 0)?;
            reader.close(&action)
        }
        _ => {
            let mut reader = Expressions::new(shape);
            let each = list(said, "bits", shape)?.iter().map(|said| reader.expression(said, 0));
            let action = each.collect::<Said<Vec<Signal>>>()?;
            reader.close(&action)
        }
    }
}

/// One entry for each bit of the action's code.
fn list<'v>(said: &'v Value, name: &str, shape: &Shape) -> Said<&'v [Value]> {
    let wanted = action_bits(shape.actions);
    match said.as_array() {
        Some(list) if list.len() == wanted => Ok(list),
        _ => Err(format!("{name} must be a list of {wanted}")),
    }
}

fn action(said: &Value, shape: &Shape) -> Said<u16> {
    let known = said.as_u64().filter(|action| *action < u64::from(shape.actions));
    known.map(|action| action as u16).ok_or_else(|| format!("an action must be 0 to {}", shape.actions - 1))
}

fn bit(said: &Value, shape: &Shape) -> Said<u16> {
    let known = said.as_u64().filter(|bit| *bit < u64::from(shape.observation_bits));
    known.map(|bit| bit as u16).ok_or_else(|| format!("a bit must be below {}", shape.observation_bits))
}

/// Trees and expressions on the way to a circuit.
struct Expressions<'s> {
    shape: &'s Shape,
    builder: Builder,
    parts: usize,
}

impl<'s> Expressions<'s> {
    fn new(shape: &'s Shape) -> Expressions<'s> {
        Expressions { shape, builder: Builder::new(usize::from(shape.observation_bits)), parts: 0 }
    }

    fn count(&mut self, depth: usize) -> Said<()> {
        self.parts += 1;
        match self.parts <= PARTS_MAX && depth <= DEPTH_MAX && self.builder.gate_count() <= 4 * GATES_MAX {
            true => Ok(()),
            false => Err(format!("more than {PARTS_MAX} parts, or deeper than {DEPTH_MAX}")),
        }
    }

    fn tree(&mut self, said: &Value, depth: usize) -> Said<Vec<Signal>> {
        self.count(depth)?;
        let code = action_bits(self.shape.actions);
        let Value::Object(fields) = said else {
            let action = action(said, self.shape)?;
            return Ok((0..code).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect());
        };
        let part = |name: &str| fields.get(name).ok_or_else(|| "a test needs bit, set and clear".to_string());
        let test = Signal::input(usize::from(bit(part("bit")?, self.shape)?));
        let (set, clear) = (self.tree(part("set")?, depth + 1)?, self.tree(part("clear")?, depth + 1)?);
        Ok(set.iter().zip(&clear).map(|(set, clear)| self.builder.mux(test, *set, *clear)).collect())
    }

    fn expression(&mut self, said: &Value, depth: usize) -> Said<Signal> {
        self.count(depth)?;
        let parts = match said {
            Value::Bool(value) => return Ok(Signal::constant(*value)),
            Value::Number(_) => return Ok(Signal::input(usize::from(bit(said, self.shape)?))),
            Value::Array(parts) => parts,
            _ => return Err("an expression is a bit, a truth value or a list".to_string()),
        };
        let Some((Value::String(op), operands)) = parts.split_first() else {
            return Err("a list begins with its operation".to_string());
        };
        let mut signals = Vec::new();
        for operand in operands {
            signals.push(self.expression(operand, depth + 1)?);
        }
        match (op.as_str(), &signals[..]) {
            ("not", [one]) => Ok(self.builder.not(*one)),
            ("and", [_, ..]) => Ok(self.builder.and_all(&signals)),
            ("or", [_, ..]) => Ok(self.builder.or_all(&signals)),
            ("xor", [_, ..]) => Ok(self.builder.xor_all(&signals)),
            ("if", [test, then, otherwise]) => Ok(self.builder.mux(*test, *then, *otherwise)),
            _ => Err("operations are not (1), and, or, xor (1 or more) and if (3)".to_string()),
        }
    }

    fn close(self, action: &[Signal]) -> Said<Offer> {
        let bits = usize::from(self.shape.observation_bits);
        let policy = Policy::close(self.builder, bits, self.shape.actions, action, &[]);
        policy.map(Offer::Circuit).map_err(|error| format!("the circuit does not fit: {error}"))
    }
}

fn circuit(said: &Value, shape: &Shape) -> Said<Offer> {
    let Value::Object(fields) = said else { return Err("circuit must be an object".to_string()) };
    let count = |name: &str| fields.get(name).map_or(Some(0), Value::as_u64);
    let memory = count("memory").filter(|bits| *bits <= MEMORY_MAX as u64);
    let memory = memory.ok_or_else(|| format!("memory must be 0 to {MEMORY_MAX}"))? as usize;
    let empty = Vec::new();
    let listed = |name: &str| match fields.get(name) {
        None => Ok(&empty),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("{name} must be a list")),
    };
    let (gates, action, next) = (listed("gates")?, listed("action")?, listed("next")?);
    if GATES_MAX < gates.len() || action.len() != action_bits(shape.actions) || next.len() != memory {
        let wanted = action_bits(shape.actions);
        return Err(format!("at most {GATES_MAX} gates, {wanted} of action and {memory} of next"));
    }
    let bits = usize::from(shape.observation_bits);
    let mut builder = Builder::new(bits + memory);
    let mut signals: Vec<Signal> = (0..bits + memory).map(Signal::input).collect();
    let find = |signals: &[Signal], said: &Value| {
        let found = match said.as_i64() {
            Some(-1) => Some(Signal::FALSE),
            Some(-2) => Some(Signal::constant(true)),
            Some(place) => usize::try_from(place).ok().and_then(|place| signals.get(place).copied()),
            None => None,
        };
        found.ok_or_else(|| "a signal is a number of something before it, -1 or -2".to_string())
    };
    for gate in gates {
        let Some([Value::String(op), one, two]) = gate.as_array().map(Vec::as_slice) else {
            return Err("a gate is a list of an operation and two signals".to_string());
        };
        let known = [
            ("and", Op::And),
            ("or", Op::Or),
            ("xor", Op::Xor),
            ("nand", Op::Nand),
            ("nor", Op::Nor),
            ("xnor", Op::Xnor),
        ];
        let op = known.iter().find(|(name, _)| name == op).map(|(_, op)| *op);
        let op = op.ok_or("gates are and, or, xor, nand, nor and xnor")?;
        let (one, two) = (find(&signals, one)?, find(&signals, two)?);
        signals.push(builder.gate(op, one, two));
    }
    let all = |list: &[Value]| list.iter().map(|said| find(&signals, said)).collect::<Said<Vec<Signal>>>();
    let (action, next) = (all(action)?, all(next)?);
    let policy = Policy::close(builder, bits, shape.actions, &action, &next);
    policy.map(Offer::Circuit).map_err(|error| format!("the circuit does not fit: {error}"))
}

/// Different bits, in rising order where that is asked for.
fn bits_of(said: &Value, shape: &Shape, most: usize) -> Said<Vec<u16>> {
    let list = said.as_array().filter(|list| (1..=most).contains(&list.len()));
    let list = list.ok_or_else(|| format!("a list of 1 to {most} bits is needed"))?;
    let bits = list.iter().map(|said| bit(said, shape)).collect::<Said<Vec<u16>>>()?;
    match bits.iter().collect::<BTreeSet<_>>().len() == bits.len() {
        true => Ok(bits),
        false => Err("a bit is named twice".to_string()),
    }
}

fn template(said: &Value, shape: &Shape) -> Said<Formula> {
    let Value::Object(fields) = said else { return Err("a template must be an object".to_string()) };
    if let Some(said) = fields.get("parity") {
        let mut bits = bits_of(said, shape, TEMPLATE_MAX)?;
        bits.sort_unstable();
        let inverted = fields.get("inverted").and_then(Value::as_bool).unwrap_or(false);
        return Ok(Formula::Sum { bits, inverted });
    }
    if let Some(said) = fields.get("count") {
        let bits = bits_of(said, shape, TEMPLATE_MAX)?;
        let numbers = numbers(fields, "numbers", bits.len() as u64)?;
        let table = (0..=bits.len() as u64).map(|count| numbers.contains(&count)).collect();
        let atoms = bits.into_iter().map(|bit| Atom::Bit(bit, false)).collect();
        return Ok(Formula::Count { atoms, table });
    }
    if let Some(said) = fields.get("rules") {
        return rules(said, fields, shape);
    }
    if let Some(said) = fields.get("rows") {
        let bits = bits_of(said, shape, KEY_BITS_MAX)?;
        let ones = numbers(fields, "ones", (1 << bits.len()) - 1)?;
        let rows: BTreeMap<u64, u64> =
            (0..1u64 << bits.len()).map(|key| (key, u64::from(ones.contains(&key)))).collect();
        return Ok(Formula::Rows { bits, rows });
    }
    Err("templates are parity, count, rules and rows".to_string())
}

fn numbers(fields: &Map<String, Value>, name: &str, most: u64) -> Said<BTreeSet<u64>> {
    let refused = || format!("{name} must be a list of numbers from 0 to {most}");
    let list = fields.get(name).and_then(Value::as_array).ok_or_else(refused)?;
    if 1 << KEY_BITS_MAX < list.len() {
        return Err(refused());
    }
    let number = |said: &Value| said.as_u64().filter(|number| *number <= most).ok_or_else(refused);
    list.iter().map(number).collect()
}

fn truth(said: Option<&Value>) -> Said<bool> {
    match said {
        Some(Value::Bool(value)) => Ok(*value),
        Some(value) if value.as_u64().is_some_and(|value| value < 2) => Ok(value.as_u64() == Some(1)),
        _ => Err("a label must be 0 or 1".to_string()),
    }
}

fn rules(said: &Value, fields: &Map<String, Value>, shape: &Shape) -> Said<Formula> {
    let list = said.as_array().filter(|list| list.len() <= TEMPLATE_MAX);
    let list = list.ok_or_else(|| format!("rules must be a list of at most {TEMPLATE_MAX}"))?;
    let mut rules = Vec::new();
    for rule in list {
        let tests = rule.get("if").and_then(Value::as_object);
        let tests = tests.ok_or("a rule needs if, an object of bits and values")?;
        let mut literals = BTreeMap::new();
        for (name, value) in tests {
            let place = name.parse::<u64>().map_err(|_| format!("{name:.20} is no bit"))?;
            literals.insert(bit(&Value::from(place), shape)?, truth(Some(value))?);
        }
        rules.push(Rule { literals: literals.into_iter().collect(), label: truth(rule.get("then"))? });
    }
    Ok(Formula::Rules { rules, otherwise: truth(fields.get("otherwise"))? })
}
