//! Mean rewards per row and action, for worlds of chance: the policy takes the best mean of every row.
//!
//! Rows must be few against the steps seen. Must not know games.

use crate::function::build_word_table;
use crate::hypothesis::{Stated, build};
use crate::memory::Device;
use crate::policy::action_bits;
use crate::samples::Row;
use crate::statement::Choice;
use crate::view::View;
use bem_base::environment::Shape;
use bem_circuit::netlist::Signal;
use std::collections::BTreeMap;

/// Rows at most.
const ROWS_MAX: usize = 512;
/// Steps per row and action that are needed on average.
const VISITS_MIN: usize = 20;

/// Counts and sums of rewards per action.
type Cells = Vec<(i64, i64)>;

/// The table of best means; none when there are too few steps for as many rows.
pub fn fit(shape: &Shape, view: &View, device: Option<&dyn Device>) -> Option<(Stated, u32, String)> {
    let mut table: BTreeMap<Row, Cells> = BTreeMap::new();
    let (mut count, mut sum) = (0i64, 0i64);
    for record in view.told().filter(|record| !record.screen) {
        let cells = table.entry(record.row).or_insert_with(|| vec![(0, 0); usize::from(shape.actions)]);
        let cell = &mut cells[usize::from(record.action)];
        cell.0 += 1;
        cell.1 += i64::from(record.reward);
        count += 1;
        sum += i64::from(record.reward);
        if ROWS_MAX < table.len() {
            return None;
        }
    }
    if (count as usize) < VISITS_MIN * table.len() * usize::from(shape.actions) || table.len() < 2 {
        return None;
    }
    let mean = sum / count.max(1);
    let telling: Vec<usize> = (0..view.width)
        .filter(|bit| {
            let ones = table.keys().filter(|row| row.get(*bit)).count();
            0 < ones && ones < table.len()
        })
        .collect();
    if 40 < telling.len() {
        return None;
    }
    let least = view.told().map(|record| i64::from(record.reward)).min().unwrap_or(0);
    let best = |cells: &Cells| {
        // Two imagined visits, at the overall mean and at the least reward, keep single lucky draws in check, also where what
        // acts has made the overall mean as high as what is best.
        let means = cells.iter().map(|(count, sum)| (sum + mean + least) * 1_024 / (count + 2)).enumerate();
        means
            .max_by_key(|(action, mean)| (*mean, core::cmp::Reverse(*action)))
            .map_or(0, |(action, _)| action as u64)
    };
    let choices: BTreeMap<u64, u64> =
        table.iter().map(|(row, cells)| (row.gather(&telling), best(cells))).collect();
    let code_bits = action_bits(shape.actions);
    let bits = telling.iter().map(|bit| *bit as u16).collect();
    let choice = Choice::Rows { bits, rows: choices.clone() };
    let stated = build(shape, device, choice, |builder, row| {
        let bits: Vec<Signal> = telling.iter().map(|bit| row[*bit]).collect();
        build_word_table(builder, &bits, &choices, code_bits)
    })?;
    let length = (choices.len() * code_bits) as u32;
    Some((stated, length, format!("best mean reward in each of {} rows", choices.len())))
}
