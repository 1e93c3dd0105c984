//! The plain reading of a statement: one row of truth values at a time, with whole numbers, and no circuit.
//!
//! The encoders that a condition trusts are held against it, row by row. It is written for the reader, not for speed. A
//! statement that speaks of bits that are not there has no reading. Must not know circuits or clauses. Clause: SCC-3.

use super::formula::made_bits;
use super::{
    Atom, Branch, Choice, Fact, Formula, Index, Join, Literal, Making, Memory, Number, Pair, Plan, Read,
    Relation, Statement, Table, Word, World,
};
use bem_base::environment::Field;

/// What is done and kept: the bits of the action's code, and the next memory.
pub type Step = (Vec<bool>, Vec<bool>);

impl Statement {
    /// What it says about one observation and one content of memory.
    pub fn step(&self, world: &World, observation: &[bool], memory: &[bool]) -> Option<Step> {
        match self {
            Statement::Acts { memory: structure, choice } => {
                let (shown, next) = match structure {
                    Some(structure) => structure.step(observation, memory)?,
                    None => (Vec::new(), Vec::new()),
                };
                let row = [observation, &shown].concat();
                Some((in_range(world, choice.act(world, &row)?), next))
            }
            Statement::Machine { state_bits, seen, rows } => {
                let state = memory.get(..usize::from(*state_bits))?;
                let key = [state, &gather(observation, seen)?].concat();
                let value = look_up(rows, &key, world.code_bits() + usize::from(*state_bits))?;
                let (code, next) = value.split_at(world.code_bits());
                Some((in_range(world, code.to_vec()), next.to_vec()))
            }
            Statement::Plan(plan) => plan.step(world, observation, memory),
            Statement::Gates(wiring) => {
                let (code, next) = wiring.step(world, observation, memory)?;
                Some((in_range(world, code), next))
            }
            Statement::Through { bits, echo, inner } => {
                let shown = world.through(bits.len(), *echo);
                let (own, last) = memory.split_at_checked(inner.memory_bits(&shown))?;
                let bit =
                    |(bit, inverted): &(Index, bool)| Some(observation.get(usize::from(*bit))? ^ inverted);
                let mut seen: Vec<bool> = bits.iter().map(bit).collect::<Option<_>>()?;
                if *echo {
                    seen.extend_from_slice(last);
                }
                let (code, mut next) = inner.step(&shown, &seen, own)?;
                if *echo {
                    next.extend_from_slice(&code);
                }
                Some((code, next))
            }
        }
    }
}

/// Codes past the last action become zero.
fn in_range(world: &World, code: Vec<bool>) -> Vec<bool> {
    if number(&code) < u64::from(world.actions) { code } else { vec![false; code.len()] }
}

/// The number that bits spell, the first the lowest; bits past the sixty-fourth must be clear.
fn number(bits: &[bool]) -> u64 {
    bits.iter().take(64).zip(0..).fold(0, |number, (bit, place)| number | u64::from(*bit) << place)
}

fn digits(number: u64, count: usize) -> Vec<bool> {
    (0..count).map(|place| place < 64 && number >> place & 1 == 1).collect()
}

fn gather(row: &[bool], bits: &[Index]) -> Option<Vec<bool>> {
    bits.iter().map(|bit| row.get(usize::from(*bit)).copied()).collect()
}

fn field<'r>(row: &'r [bool], field: &Field) -> Option<&'r [bool]> {
    row.get(usize::from(field.low)..usize::from(field.low) + usize::from(field.width))
}

fn holds(row: &[bool], literals: &[Literal]) -> Option<bool> {
    let each = literals.iter().map(|(bit, value)| Some(row.get(usize::from(*bit))? == value));
    each.collect::<Option<Vec<bool>>>().map(|each| each.into_iter().all(|holds| holds))
}

/// The lowest bits of what a table says about a key.
pub(super) fn look_up(table: &Table, key: &[bool], bits: usize) -> Option<Vec<bool>> {
    if 64 < key.len() {
        return None;
    }
    Some((0..bits).map(|bit| look_up_bit(table, key, bit)).collect())
}

fn look_up_bit(table: &Table, key: &[bool], bit: usize) -> bool {
    let value = |value: &u64| value >> bit & 1 == 1;
    let mut rows: Vec<(u64, bool)> = table.iter().map(|(key, word)| (*key, value(word))).collect();
    for place in (0..key.len()).rev() {
        let is_set = |(key, _): &(u64, bool)| key >> place & 1 == 1;
        let without = |(key, value): &(u64, bool)| (key & !(1 << place), *value);
        let (set, clear): (Vec<_>, Vec<_>) = rows.iter().copied().partition(is_set);
        let set: Table = set.iter().map(without).map(|(key, value)| (key, u64::from(value))).collect();
        let agrees = |(key, value): &(u64, bool)| set.get(key).is_none_or(|other| (*other == 1) == *value);
        let counts = !clear.iter().all(agrees);
        rows.retain(|row| !counts || is_set(row) == key[place]);
        rows = rows.iter().map(without).collect();
        rows.sort_unstable();
        rows.dedup();
    }
    rows.first().is_some_and(|(_, value)| *value)
}

impl Choice {
    /// The bits of the action's code, which may be past the last action.
    fn act(&self, world: &World, row: &[bool]) -> Option<Vec<bool>> {
        let code = |action: u16| digits(u64::from(action), world.code_bits());
        Some(match self {
            Choice::Bits(formulas) if formulas.len() == world.code_bits() => {
                formulas.iter().map(|formula| formula.holds(row)).collect::<Option<_>>()?
            }
            Choice::Bits(_) => return None,
            Choice::FirstOf { models, otherwise } => {
                for (action, model) in models {
                    if model.holds(row)? {
                        return Some(code(*action));
                    }
                }
                code(*otherwise)
            }
            Choice::FirstThatPays { model, order } => {
                let (last, asked) = order.split_last()?;
                for action in asked {
                    if model.holds(&[row, &code(*action)].concat())? {
                        return Some(code(*action));
                    }
                }
                code(*last)
            }
            Choice::Highest(numbers) => {
                let numbers: Vec<u64> =
                    numbers.iter().map(|number| number.value(row)).collect::<Option<_>>()?;
                let best = numbers.iter().enumerate().rev().max_by_key(|(_, number)| **number);
                digits(best?.0 as u64, world.code_bits())
            }
            Choice::Rows { bits, rows } => look_up(rows, &gather(row, bits)?, world.code_bits())?,
            Choice::Tree(tree) => code(descend(tree, row)?),
        })
    }
}

impl Number {
    fn value(&self, row: &[bool]) -> Option<u64> {
        Some(match self {
            Number::Digits(formulas) if formulas.len() <= 64 => {
                let each: Option<Vec<bool>> = formulas.iter().map(|formula| formula.holds(row)).collect();
                number(&each?)
            }
            Number::Digits(_) => return None,
            Number::Weighted { base, weights } => {
                let mut sum = *base;
                for (bit, value, weight) in weights {
                    if row.get(usize::from(*bit))? == value {
                        sum = sum.checked_add(*weight)?;
                    }
                }
                sum
            }
        })
    }
}

/// The leaf that a row comes to.
fn descend(tree: &[Branch], row: &[bool]) -> Option<u16> {
    let mut place = 0;
    loop {
        match *tree.get(place)? {
            Branch::Leaf(answer) => return Some(answer),
            Branch::Test(bit) => {
                place += 1;
                if *row.get(usize::from(bit))? {
                    place = end_of_tree(tree, place)?;
                }
            }
        }
    }
}

/// Where the tree that begins here has ended.
fn end_of_tree(tree: &[Branch], mut place: usize) -> Option<usize> {
    let mut open = 1;
    while 0 < open {
        open = match tree.get(place)? {
            Branch::Leaf(_) => open - 1,
            Branch::Test(_) => open + 1,
        };
        place += 1;
    }
    Some(place)
}

impl Formula {
    /// Whether it holds for a row.
    pub fn holds(&self, row: &[bool]) -> Option<bool> {
        let bit = |index: &Index| row.get(usize::from(*index)).copied();
        Some(match self {
            Formula::Sum { bits, inverted } => {
                gather(row, bits)?.iter().filter(|set| **set).count() % 2 == usize::from(!inverted)
            }
            Formula::Threshold { weights, bound } => {
                let mut sum = 0;
                for (index, weight) in weights {
                    sum += if bit(index)? { i64::from(*weight) } else { 0 };
                }
                *bound < sum
            }
            Formula::Count { atoms, table } => {
                let each: Option<Vec<bool>> = atoms
                    .iter()
                    .map(|atom| match atom {
                        Atom::Bit(index, inverted) => Some(bit(index)? ^ inverted),
                        Atom::Pair(Join::Xor, one, other) => Some(bit(one)? ^ bit(other)?),
                        Atom::Pair(Join::And, one, other) => Some(bit(one)? & bit(other)?),
                    })
                    .collect();
                *table.get(each?.iter().filter(|holds| **holds).count())?
            }
            Formula::Rows { bits, rows } => look_up(rows, &gather(row, bits)?, 1)?[0],
            Formula::Rules { rules, otherwise } => {
                for rule in rules {
                    if holds(row, &rule.literals)? {
                        return Some(rule.label);
                    }
                }
                *otherwise
            }
            Formula::Tree(tree) => descend(tree, row)? & 1 == 1,
            Formula::Pairs { pairs, otherwise } => {
                for Pair { first, second, differ, inverted } in pairs {
                    if (bit(first)? != bit(second)?) == *differ {
                        return Some(bit(first)? ^ inverted);
                    }
                }
                *otherwise
            }
            Formula::Polynomial(terms) => {
                let products: Option<Vec<bool>> =
                    terms.iter().map(|term| Some(gather(row, term)?.into_iter().all(|set| set))).collect();
                products?.iter().filter(|holds| **holds).count() % 2 == 1
            }
            Formula::Scan { places, machine, answers, read } => scan(row, places, *machine, answers, read)?,
            Formula::Select { selector, parts } => {
                let place = number(&selector.bits(row)?);
                match usize::try_from(place).ok().and_then(|place| parts.get(place)) {
                    Some(part) => part.holds(row)?,
                    None => false,
                }
            }
            Formula::About { facts, inner } => {
                let shown: Option<Vec<Vec<bool>>> = facts.iter().map(|fact| fact.bits(row)).collect();
                inner.holds(&shown?.concat())?
            }
        })
    }
}

fn scan(row: &[bool], places: &[Vec<Index>], machine: u32, answers: &Table, read: &Read) -> Option<bool> {
    let mut state = false;
    let mut all = Vec::new();
    for bits in places {
        let mut key = vec![state];
        key.extend(gather(row, bits)?);
        all.push(look_up(answers, &key, 1)?[0]);
        state = machine.checked_shr(u32::try_from(number(&key)).ok()?)? & 1 == 1;
    }
    match read {
        Read::At(place) => all.get(usize::from(*place)).copied(),
        Read::Named { field: named, from_end } => {
            let place = number(field(row, named)?) as usize;
            let place = if *from_end { places.len().checked_sub(1 + place) } else { Some(place) };
            Some(place.and_then(|place| all.get(place)).copied().unwrap_or(false))
        }
    }
}

impl Word {
    /// Its bits, the lowest first.
    pub fn bits(&self, row: &[bool]) -> Option<Vec<bool>> {
        match self {
            Word::Plain(plain) if 64 < plain.width => None,
            Word::Plain(plain) => Some(field(row, plain)?.to_vec()),
            Word::Ones(counted) => {
                let bits = field(row, counted)?;
                let ones = bits.iter().filter(|bit| **bit).count();
                Some(digits(ones as u64, crate::function::choice_bits(bits.len() + 1) as usize))
            }
            Word::Made(making, fields) => {
                let fits = fields.iter().all(|field| field.width == fields[0].width)
                    && if making.takes_two() { fields.len() == 2 } else { 2 <= fields.len() };
                let width = made_bits(*making, fields.len(), usize::from(fields.first()?.width));
                if !fits || 64 < width {
                    return None;
                }
                let numbers: Option<Vec<u64>> =
                    fields.iter().map(|made| Some(number(field(row, made)?))).collect();
                let numbers = numbers?;
                let (first, second) = (numbers[0], numbers[1]);
                let value = match making {
                    Making::Sum => numbers.iter().sum(),
                    Making::Difference => first.wrapping_sub(second),
                    Making::Reverse => second.wrapping_sub(first),
                    Making::Distance => first.abs_diff(second),
                    Making::Smaller => *numbers.iter().min()?,
                    Making::Larger => *numbers.iter().max()?,
                    Making::Product => first * second,
                };
                Some(digits(value, width))
            }
        }
    }
}

impl Fact {
    fn bits(&self, row: &[bool]) -> Option<Vec<bool>> {
        let ones = |counted: &Field| Some(field(row, counted)?.iter().filter(|bit| **bit).count());
        Some(vec![match self {
            Fact::Bit(index) => *row.get(usize::from(*index))?,
            Fact::Ones(field, least) => usize::from(*least) <= ones(field)?,
            Fact::Odd(field) => ones(field)? % 2 == 1,
            Fact::Fewer(first, second) => ones(first)? < ones(second)?,
            Fact::Related(relation, first, second) => {
                if first.width != second.width || 64 < first.width {
                    return None;
                }
                let (first, second) = (number(field(row, first)?), number(field(row, second)?));
                match relation {
                    Relation::Meets => first & second != 0,
                    Relation::Exceeds => first & !second != 0,
                    Relation::Lacks => second & !first != 0,
                    Relation::Below => first < second,
                    Relation::Above => second < first,
                }
            }
            Fact::Below(first, second) => number(&first.bits(row)?) < number(&second.bits(row)?),
            Fact::Bits(word) => return word.bits(row),
        }])
    }
}

impl Memory {
    /// What is shown, and the next memory.
    pub fn step(&self, seen: &[bool], memory: &[bool]) -> Option<Step> {
        if memory.len() != self.bits(seen.len()) {
            return None;
        }
        let when = |condition: &Option<Vec<Literal>>| match condition {
            Some(literals) => holds(seen, literals),
            None => Some(false),
        };
        Some(match self {
            Memory::Toggle(condition) => {
                let after = memory[0] ^ holds(seen, condition)?;
                (vec![memory[0], after], vec![after])
            }
            Memory::Latch { set, clear } => {
                let (set, clear) = (holds(seen, set)?, when(clear)?);
                (vec![memory[0]], vec![set || memory[0] && !clear])
            }
            Memory::Counter { up, down, bits, digits: shows_digits } => {
                let (now, last) = (number(memory), (1u64 << bits) - 1);
                let (up, down) = (holds(seen, up)?, when(down)?);
                let next = match (up, down) {
                    (true, _) => (now + 1).min(last),
                    (false, true) => now.saturating_sub(1),
                    (false, false) => now,
                };
                let mut shown = vec![now == 0];
                if *shows_digits {
                    shown.extend_from_slice(memory);
                }
                (shown, digits(next, usize::from(*bits)))
            }
            Memory::Delay(_) => {
                let kept = &memory[..memory.len().checked_sub(seen.len())?];
                (memory.to_vec(), [seen, kept].concat())
            }
            Memory::Echo(echoed, _) => {
                let value = field(seen, echoed)?;
                let (kept, oldest) = memory.split_at(memory.len().checked_sub(value.len())?);
                (oldest.to_vec(), [value, kept].concat())
            }
            Memory::Stack { push, pop, field: pushed, .. } => {
                let mut cell = vec![true];
                if let Some(pushed) = pushed {
                    cell.extend_from_slice(field(seen, pushed)?);
                }
                let mut cells: Vec<Vec<bool>> = memory.chunks(cell.len()).map(<[bool]>::to_vec).collect();
                let shown = cells.first()?.clone();
                if holds(seen, push)? {
                    cells.insert(0, cell);
                    cells.pop();
                } else if holds(seen, pop)? {
                    cells.remove(0);
                    cells.push(vec![false; cell.len()]);
                }
                (shown, cells.concat())
            }
            Memory::Queue { push, pop, field: pushed, .. } => {
                let cell = [&[true], field(seen, pushed)?].concat();
                let mut cells: Vec<Vec<bool>> = memory.chunks(cell.len()).map(<[bool]>::to_vec).collect();
                let shown = cells.first()?.clone();
                if holds(seen, pop)? {
                    cells.remove(0);
                    cells.push(vec![false; cell.len()]);
                }
                if holds(seen, push)? {
                    fill_free(&mut cells, &cell);
                }
                (shown, cells.concat())
            }
            Memory::Registers { write, address, data, delayed } => {
                let (now, data) = (field(seen, address)?, field(seen, data)?);
                let (cells, last) = memory.split_at(data.len() << address.width);
                let mut next: Vec<Vec<bool>> =
                    cells.chunks(data.len().max(1)).map(<[bool]>::to_vec).collect();
                let shown = next.get(number(now) as usize)?.clone();
                if holds(seen, write)? {
                    let place = number(if *delayed { last } else { now }) as usize;
                    *next.get_mut(place)? = data.to_vec();
                }
                let mut next = next.concat();
                if *delayed {
                    next.extend_from_slice(now);
                }
                (shown, next)
            }
            Memory::Tape { write, read, field: written, cell_bits } => {
                let (value, cells) = (field(seen, written)?, 1usize << cell_bits);
                let (used, rest) = memory.split_at(cells);
                let (values, counter) = rest.split_at(cells * value.len());
                let (mut marks, mut next) = (used.to_vec(), values.to_vec());
                if holds(seen, write)? {
                    // Every cell without a mark that follows one with a mark, or is the first; one of them unless marks
                    // have gaps.
                    let is_free = |place: &usize| !used[*place] && (*place == 0 || used[place - 1]);
                    for place in (0..cells).filter(is_free) {
                        marks[place] = true;
                        value.iter().enumerate().for_each(|(bit, value)| next[bit * cells + place] = *value);
                    }
                }
                let count = number(counter) + u64::from(holds(seen, read)?);
                let shown = [counter, values].concat();
                (shown, [marks, next, digits(count, counter.len())].concat())
            }
            Memory::Sticky { inner, raises } => {
                let (flag, below) = memory.split_last()?;
                let (mut shown, mut next) = inner.step(seen, below)?;
                let raised = look_up(raises, &[seen, &shown].concat(), 1)?[0];
                shown.push(*flag || raised);
                next.push(*flag || raised);
                (shown, next)
            }
            Memory::Both(first, second) => {
                let (own, other) = memory.split_at(first.bits(seen.len()));
                let (one, two) = (first.step(seen, own)?, second.step(seen, other)?);
                ([one.0, two.0].concat(), [one.1, two.1].concat())
            }
            Memory::After(inner) => {
                let (_, next) = inner.step(seen, memory)?;
                (inner.step(seen, &next)?.0, next)
            }
        })
    }
}

/// Puts a value into every free cell that follows a taken one, or is the first: one cell unless there are gaps.
fn fill_free(cells: &mut [Vec<bool>], value: &[bool]) {
    let marks: Vec<bool> = cells.iter().map(|cell| cell[0]).collect();
    for place in 0..cells.len() {
        if !marks[place] && (place == 0 || marks[place - 1]) {
            cells[place] = value.to_vec();
        }
    }
}

impl Plan {
    fn step(&self, world: &World, observation: &[bool], memory: &[bool]) -> Option<Step> {
        if memory.len() != self.memory_bits(world) {
            return None;
        }
        let seen = gather(observation, &self.seen)?;
        let code = look_up(&self.rows, &[memory, &seen].concat(), world.code_bits())?;
        let (clock, rest) = memory.split_at(usize::from(self.clock_bits));
        let (recalled, past) = rest.split_at(usize::from(self.recall_bits));
        let mut next = digits(number(clock) + 1, clock.len());
        if !recalled.is_empty() {
            let key = [recalled, &code, &seen].concat();
            next.extend(look_up(&self.recalls, &key, recalled.len())?);
        }
        if !past.is_empty() {
            next.push(true);
            next.extend_from_slice(&code);
            next.extend_from_slice(&seen);
            next.extend_from_slice(&past[..past.len() - self.step_bits(world)]);
        }
        Some((in_range(world, code), next))
    }
}
