//! Decision lists, few conjunctions, few clauses: rules found one after the other by beam search.
//!
//! A rule is a conjunction of literals under which all rows that are left have one label. Rules grow literal by
//! literal, the few most telling ones side by side, until one is pure; the pure rule with most rows is kept and its
//! rows are done. With rules for one label only this is a disjunction of conjunctions or, inverted, a conjunction of
//! clauses; with rules for both it is a list in which the first rule that holds decides.

use super::{FunctionClass, longest_for};
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::{self, Formula};
use bem_base::fixed::Fixed;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Rules at most.
const RULES_MAX: usize = 64;
/// Literals of a rule at most.
const LITERALS_MAX: usize = 10;
/// Rules that grow side by side.
const BEAM: usize = 12;
/// Rows that a rule must settle; what settles fewer memorises.
const COVER_MIN: u32 = 2;

/// A decision list, a disjunction of conjunctions, or a conjunction of clauses.
pub struct Decision;

/// Bits and the values they must have.
type Literals = Vec<(usize, bool)>;

/// A conjunction that is tried on rows, and the label it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    literals: Literals,
    label: bool,
}

/// Which rules a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Only rules for one label; the other one is what remains.
    Only(bool),
    /// Rules for both labels; the first that holds decides.
    Both,
}

impl FunctionClass for Decision {
    fn name(&self) -> &'static str {
        "decision"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        let logarithms = (0..=samples.len() as u64)
            .map(|count| Fixed::ln_count_floor(count.max(1)).to_raw() >> 16)
            .collect();
        let search = ListGrowth { samples, logarithms };
        let mut best: Option<(u32, Form, Vec<Rule>)> = None;
        for form in [Form::Only(true), Form::Only(false), Form::Both] {
            // A list longer than the best, or than its rows are worth, is not worth finishing.
            let longest = best.as_ref().map_or(longest_for(samples.observations), |held| held.0);
            let Some(rules) = search.rules(form, longest, work) else { continue };
            let length = length(samples, form, &rules);
            if best.as_ref().is_none_or(|held| length < held.0) {
                best = Some((length, form, rules));
            }
        }
        let (length, form, rules) = best?;
        close(samples, form, &rules, length)
    }
}

/// Bits to say a list of this form.
fn length(samples: &Samples, form: Form, rules: &[Rule]) -> u32 {
    let literal = 1 + choice_bits(samples.width);
    let head = 2 + u32::from(form == Form::Both);
    4 + rules.iter().map(|rule| head + rule.literals.len() as u32 * literal).sum::<u32>()
}

fn close(samples: &Samples, form: Form, rules: &[Rule], length: u32) -> Option<Function> {
    let mut builder = Builder::new(samples.width);
    // After the last rule: the label that no rule gives, or the other one than the last rule's.
    let otherwise = match form {
        Form::Only(label) => !label,
        Form::Both => !rules.last()?.label,
    };
    let mut output = Signal::constant(otherwise);
    for rule in rules.iter().rev() {
        let literals: Vec<Signal> = rule
            .literals
            .iter()
            .map(|(index, value)| builder.gate(Op::Xor, Signal::input(*index), Signal::constant(!value)))
            .collect();
        let holds = builder.and_all(&literals);
        output = if rule.label { builder.or(holds, output) } else { builder.and_not(output, holds) };
    }
    let said = |rule: &Rule| statement::Rule {
        literals: rule.literals.iter().map(|(index, value)| (*index as u16, *value)).collect(),
        label: rule.label,
    };
    let statement = Formula::Rules { rules: rules.iter().map(said).collect(), otherwise };
    let form = match form {
        Form::Only(true) => "conjunctions",
        Form::Only(false) => "clauses",
        Form::Both => "rules in order",
    };
    let words = format!("decision by {} {form}", rules.len());
    let function = Function::close(builder, output, statement, length, words)?;
    function.explains(samples).then_some(function)
}

struct ListGrowth<'s> {
    samples: &'s Samples,
    /// Natural logarithms of all counts there are, with 16 fractional bits.
    logarithms: Vec<i64>,
}

/// A conjunction that still grows, with the rows it covers: those of its label and the others.
#[derive(Clone)]
struct Growing {
    literals: Literals,
    wanted: Vec<u64>,
    others: Vec<u64>,
    covered: u32,
}

impl ListGrowth<'_> {
    /// The rules of a list that explains all rows; none when it would be longer than `longest` bits.
    fn rules(&self, form: Form, longest: u32, work: &mut Work) -> Option<Vec<Rule>> {
        let labels = self.samples.label_words();
        let all: Vec<u64> = (0..labels.len()).map(|word| self.samples.mask(word)).collect();
        let mut left: [Vec<u64>; 2] = [
            all.iter().zip(labels).map(|(all, label)| all & !label).collect(),
            all.iter().zip(labels).map(|(all, label)| all & label).collect(),
        ];
        let total = [ones(&left[0]), ones(&left[1])];
        let mut rules: Vec<Rule> = Vec::new();
        loop {
            let open = |label: bool| 0 < ones(&left[usize::from(label)]);
            let done = match form {
                Form::Only(label) => !open(label),
                Form::Both => !open(true) || !open(false),
            };
            if done {
                return (!rules.is_empty() && length(self.samples, form, &rules) <= longest).then_some(rules);
            }
            if RULES_MAX <= rules.len() || longest < length(self.samples, form, &rules) {
                return None;
            }
            let wanted: &[bool] = match form {
                Form::Only(true) => &[true],
                Form::Only(false) => &[false],
                Form::Both => &[false, true],
            };
            let mut best: Option<(u32, Rule, Vec<u64>)> = None;
            for label in wanted {
                let (own, others) = (&left[usize::from(*label)], &left[usize::from(!label)]);
                let Some((covered, literals, cover)) = self.rule(own, others, work) else { continue };
                if best.as_ref().is_none_or(|held| held.0 < covered) {
                    best = Some((covered, Rule { literals, label: *label }, cover));
                }
            }
            let (covered, rule, cover) = best?;
            // A rule for one row is no rule, unless it is the last one that is needed.
            let own = &mut left[usize::from(rule.label)];
            if covered < COVER_MIN && COVER_MIN <= ones(own) {
                return None;
            }
            own.iter_mut().zip(&cover).for_each(|(left, cover)| *left &= !cover);
            rules.push(rule);
            // Later rules cover no more than earlier ones, so that this is a lower bound of the whole list's length.
            let settled: u32 = wanted
                .iter()
                .map(|label| usize::from(*label))
                .map(|label| total[label] - ones(&left[label]))
                .sum();
            let all: u32 = match form {
                Form::Only(label) => total[usize::from(label)],
                Form::Both => total[0].min(total[1]),
            };
            let said = u64::from(length(self.samples, form, &rules));
            if u64::from(settled) * u64::from(longest) < said * u64::from(all) {
                return None;
            }
        }
    }

    /// The pure conjunction that covers most of the wanted rows, with its cover.
    fn rule(&self, wanted: &[u64], others: &[u64], work: &mut Work) -> Option<(u32, Literals, Vec<u64>)> {
        let start = Growing {
            literals: Vec::new(),
            wanted: wanted.to_vec(),
            others: others.to_vec(),
            covered: ones(wanted),
        };
        let mut best: Option<Growing> = None;
        let mut beam = vec![start];
        for _ in 0..LITERALS_MAX {
            let mut next: Vec<(i64, usize, usize, bool)> = Vec::new();
            for (place, growing) in beam.iter().enumerate() {
                if !work.spend((self.samples.width * wanted.len() * 2) as u64) {
                    return None;
                }
                self.extensions(place, growing, best.as_ref().map_or(0, |held| held.covered), &mut next);
            }
            next.sort_unstable_by_key(|(gain, place, index, value)| {
                (core::cmp::Reverse(*gain), *place, *index, *value)
            });
            let mut grown: Vec<Growing> = Vec::new();
            for (_, place, index, value) in next {
                let longer = self.extend(&beam[place], index, value);
                // Two ways to the same rows are one.
                if grown.iter().any(|held| held.wanted == longer.wanted && held.others == longer.others) {
                    continue;
                }
                if ones(&longer.others) == 0 {
                    if best.as_ref().is_none_or(|held| held.covered < longer.covered) {
                        best = Some(longer);
                    }
                    continue;
                }
                grown.push(longer);
                if grown.len() == BEAM {
                    break;
                }
            }
            // What covers no more than the best pure rule cannot become better than it.
            grown.retain(|growing| best.as_ref().is_none_or(|held| held.covered < growing.covered));
            if grown.is_empty() {
                break;
            }
            beam = grown;
        }
        let best = best?;
        let literals = self.prune(&best.literals, others);
        let cover = self.cover(&literals, wanted);
        Some((ones(&cover), literals, cover))
    }

    /// All literals that could be added with some gain; more than `covered` rows must stay.
    fn extensions(
        &self,
        place: usize,
        growing: &Growing,
        covered: u32,
        list: &mut Vec<(i64, usize, usize, bool)>,
    ) {
        let others = ones(&growing.others);
        let logarithm = |count: u32| self.logarithms[count as usize];
        for index in 0..self.samples.width {
            let column = self.samples.column(index);
            let inside = |words: &[u64]| -> u32 {
                words.iter().zip(column).map(|(word, bit)| (word & bit).count_ones()).sum()
            };
            let (wanted_high, others_high) = (inside(&growing.wanted), inside(&growing.others));
            for (value, kept, rest) in [
                (true, wanted_high, others_high),
                (false, growing.covered - wanted_high, others - others_high),
            ] {
                // A literal that takes nothing away adds nothing.
                if kept <= covered || rest == others {
                    continue;
                }
                let purity = logarithm(kept) - logarithm(kept + rest);
                let before = logarithm(growing.covered) - logarithm(growing.covered + others);
                list.push((i64::from(kept) * (purity - before) + i64::from(kept), place, index, value));
            }
        }
    }

    fn extend(&self, growing: &Growing, index: usize, value: bool) -> Growing {
        let column = self.samples.column(index);
        let keep = |words: &[u64]| -> Vec<u64> {
            words.iter().zip(column).map(|(word, bit)| word & if value { *bit } else { !bit }).collect()
        };
        let wanted = keep(&growing.wanted);
        let mut literals = growing.literals.clone();
        literals.push((index, value));
        Growing { literals, others: keep(&growing.others), covered: ones(&wanted), wanted }
    }

    /// The rows among these under which all literals hold.
    fn cover(&self, literals: &[(usize, bool)], rows: &[u64]) -> Vec<u64> {
        let mut cover = rows.to_vec();
        for (index, value) in literals {
            for (word, bit) in cover.iter_mut().zip(self.samples.column(*index)) {
                *word &= if *value { *bit } else { !bit };
            }
        }
        cover
    }

    /// Drops the literals without which no other row is covered either.
    fn prune(&self, literals: &[(usize, bool)], others: &[u64]) -> Literals {
        let mut kept = literals.to_vec();
        let mut place = 0;
        while place < kept.len() {
            let literal = kept.remove(place);
            if 0 < ones(&self.cover(&kept, others)) {
                kept.insert(place, literal);
                place += 1;
            }
        }
        kept.sort_unstable();
        kept
    }
}

fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;

    fn check(widths: &[u16], count: usize, words: &str, wanted: impl Fn(&Row) -> bool + Copy) {
        let function = Decision.fit(&sample(widths, count, 1, wanted), &mut Work::new(1 << 32)).expect(words);
        assert!(function.words.ends_with(words), "{words}: {}", function.words);
        let errors = function.errors(&sample(widths, 1_000, 2, wanted));
        assert!(errors <= 10, "{words}: {errors} errors in 1,000, {}", function.words);
    }

    #[test]
    fn few_conjunctions_and_few_clauses_are_found() {
        check(&[24], 300, "conjunctions", |row| {
            row.get(1) && row.get(7) && !row.get(20) || row.get(3) && !row.get(9) && row.get(11)
        });
        // Six clauses of four, each over two fields: what one assignment makes of a formula.
        check(&[4; 12], 400, "clauses", |row| {
            (0..6).all(|clause| (0..4).any(|bit| row.get(8 * clause + 2 * bit)))
        });
    }

    #[test]
    fn a_formula_under_one_assignment_is_few_clauses() {
        use bem_base::prng::Prng;
        let mut prng = Prng::stream(9, "formula");
        for assignment in [0u64, 5, 15] {
            let mut draw = |count: usize| -> Vec<(Row, bool)> {
                (0..count)
                    .map(|_| {
                        let hidden = prng.below(16);
                        let (mut row, mut holds) = (Row::default(), true);
                        for clause in 0..6 {
                            let chosen = 15 & !(1 << prng.below(4));
                            let negated = loop {
                                let negated = prng.below(16) & chosen;
                                if hidden & chosen != negated {
                                    break negated;
                                }
                            };
                            row.0[0] |= (chosen & !negated | negated << 4) << (8 * clause);
                            holds &= assignment & chosen != negated;
                        }
                        (row, holds)
                    })
                    .collect()
            };
            let groups = sample(&[4; 12], 1, 1, |_| true).groups;
            let train = Samples::new(48, groups.clone(), draw(400), 0);
            let function = Decision.fit(&train, &mut Work::new(1 << 32)).expect("few clauses explain it");
            let errors = function.errors(&Samples::new(48, groups, draw(1_000), 0));
            assert!(errors <= 20, "{errors} errors, {}", function.words);
        }
    }

    #[test]
    fn an_order_of_two_numbers_is_a_list_over_pairs_of_bits_wherever_they_lie() {
        let place = |bit: usize| (bit * 7 + 3) % 16;
        let number = move |row: &Row, low: usize| {
            (0..8).fold(0u32, |sum, bit| sum | u32::from(row.get(place(low + bit))) << bit)
        };
        check(&[1; 16], 1_500, "rules in order", |row| number(row, 0) < number(row, 8));
    }
}
