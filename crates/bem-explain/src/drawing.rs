//! A state diagram as SVG: states on a line, arrows onwards above it, arrows back below it, and loops beside their state.
//!
//! Whole numbers only, so that it is the same everywhere. Colours come from the page's style by the classes `node`, `arrow`,
//! `head` and `label`; every state and arrow says all of its rules when it is pointed at. Must not know pages. Clauses: GLE-9.

use crate::html::escaped;
use crate::text::state_lines;
use crate::{Explainable, StateDiagram};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The radius of a state, and how far from its middle arrows leave and come in.
const RADIUS: i64 = 18;
const ASIDE: i64 = 6;
/// Where an arrow meets the circle so far aside.
const EDGE: i64 = 17;
/// A line of a label, and about how wide a letter is.
const LINE: i64 = 13;
const LETTER: i64 = 6;
/// Where the first state stands, and room behind the last.
const LEFT: i64 = 64;
/// Where the label of a loop begins, from the middle of its state.
const LOOP: i64 = 44;
/// With more states arrows are labelled by their actions alone.
const LABELLED_MAX: usize = 6;
/// Letters of a line of a label, and lines of it.
const LETTERS_MAX: usize = 36;
const LINES_MAX: usize = 3;

/// One arrow: all rules that lead from one state to another.
struct Arrow {
    from: usize,
    to: usize,
    /// All that is said of it.
    title: Vec<String>,
    /// What is written at it.
    label: Vec<String>,
    /// How far from the line it goes.
    height: i64,
}

impl Arrow {
    fn left(&self) -> usize {
        self.from.min(self.to)
    }

    fn right(&self) -> usize {
        self.from.max(self.to)
    }

    fn label_height(&self) -> i64 {
        LINE * self.label.len() as i64
    }
}

/// The diagram as an SVG element.
pub fn svg(subject: &Explainable<'_>, diagram: &StateDiagram) -> String {
    let mut arrows = arrows(subject, diagram);
    let widest = |is_loop: bool| {
        let own = arrows.iter().filter(|arrow| (arrow.from == arrow.to) == is_loop);
        own.flat_map(|arrow| &arrow.label).map(|line| line.chars().count() as i64).max().unwrap_or(0) * LETTER
    };
    let (beside, over) = (LOOP + widest(true) + 8, widest(false) + 16);
    let distance = 96.max(over).max(beside + RADIUS);
    let loops = arrows.iter().filter(|arrow| arrow.from == arrow.to).map(Arrow::label_height).max();
    let lowest = 44.max(loops.unwrap_or(0) / 2 + 28);
    let above = place(&mut arrows, lowest, |arrow| arrow.from < arrow.to);
    let below = place(&mut arrows, lowest, |arrow| arrow.to < arrow.from);
    let (middle, last) = (above + 8, diagram.states.len() as i64 - 1);
    let (width, height) = (LEFT + distance * last + beside.max(48), middle + below + 8);
    let mut drawn = format!(
        "<svg class=states viewBox='0 0 {width} {height}' width='{width}' height='{height}' role=img \
         aria-label='state diagram with {} states'>",
        diagram.states.len()
    );
    let x = |state: usize| LEFT + distance * state as i64;
    let _ = write!(
        drawn,
        "<circle class=head cx='{0}' cy='{middle}' r='4'/><path class=arrow d='M{0} {middle}H{1}'/>\
         <path class=head d='M{2} {middle}l-8 -4v8z'/>",
        LEFT - 52,
        LEFT - RADIUS - 6,
        LEFT - RADIUS
    );
    arrows.iter().for_each(|arrow| line(&mut drawn, arrow, (x(arrow.from), x(arrow.to)), middle));
    for (number, state) in diagram.states.iter().enumerate() {
        let rules = state_lines(subject, diagram, state).join("\n");
        let _ = write!(
            drawn,
            "<g><title>S{number}, {}\n{}</title><circle class=node cx='{2}' cy='{middle}' r='{RADIUS}'/>\
             <text class=label x='{2}' y='{3}' text-anchor=middle>S{number}</text></g>",
            escaped(&subject.memory(&state.memory)),
            escaped(&rules),
            x(number),
            middle + 4
        );
    }
    arrows.iter().for_each(|arrow| label(&mut drawn, arrow, (x(arrow.from), x(arrow.to)), middle));
    drawn + "</svg>"
}

/// All arrows, in the order of the states they leave.
fn arrows(subject: &Explainable<'_>, diagram: &StateDiagram) -> Vec<Arrow> {
    let words = subject.words();
    let is_labelled = diagram.states.len() <= LABELLED_MAX;
    let mut found: BTreeMap<(usize, usize), Vec<(String, String)>> = BTreeMap::new();
    for (from, state) in diagram.states.iter().enumerate() {
        let otherwise = if state.rules.rules.is_empty() { "always" } else { "otherwise" };
        let rules = state.rules.rules.iter().map(|rule| (words.conditions(&rule.when), &rule.then));
        for (when, then) in rules.chain([(otherwise.to_string(), &state.rules.otherwise)]) {
            let (action, to) = diagram.arrow(then);
            found.entry((from, to)).or_default().push((when, subject.action(action)));
        }
    }
    let arrow = |((from, to), rules): ((usize, usize), Vec<(String, String)>)| {
        let title: Vec<String> = rules.iter().map(|(when, action)| format!("{when} / {action}")).collect();
        let mut label: Vec<String> = match is_labelled {
            true => rules.iter().map(|(when, action)| both(when, action)).collect(),
            false => rules.iter().map(|(_, action)| cut(action, LETTERS_MAX)).collect(),
        };
        if !is_labelled {
            label.sort();
            label.dedup();
        }
        if LINES_MAX < label.len() {
            let more = label.len() + 1 - LINES_MAX;
            label.truncate(LINES_MAX - 1);
            label.push(format!("and {more} more"));
        }
        Arrow { from, to, title, label, height: 0 }
    };
    found.into_iter().map(arrow).collect()
}

/// What is seen and what is done, in a line that is not too long: the action is what everybody looks for.
fn both(when: &str, action: &str) -> String {
    let action = cut(action, LETTERS_MAX / 2);
    let left = LETTERS_MAX - 3 - action.chars().count();
    format!("{} / {action}", cut(when, left))
}

/// A text of at most so many letters.
fn cut(text: &str, letters_max: usize) -> String {
    if text.chars().count() <= letters_max {
        return text.to_string();
    }
    text.chars().take(letters_max - 1).chain(['…']).collect()
}

/// Says how far from the line these arrows go, short ones first, so that no label lies on another; the room that they take.
fn place(arrows: &mut [Arrow], lowest: i64, is_own: impl Fn(&Arrow) -> bool) -> i64 {
    let mut order: Vec<usize> = (0..arrows.len()).filter(|arrow| is_own(&arrows[*arrow])).collect();
    order.sort_by_key(|arrow| (arrows[*arrow].right() - arrows[*arrow].left(), *arrow));
    for (rank, own) in order.iter().enumerate() {
        let over = |other: &&usize| {
            let (own, other) = (&arrows[*own], &arrows[**other]);
            own.left() < other.right() && other.left() < own.right()
        };
        let needed = order[..rank].iter().filter(over).map(|other| {
            let other = &arrows[*other];
            other.height + other.label_height() + 14
        });
        arrows[*own].height = needed.max().unwrap_or(lowest).max(lowest);
    }
    let room = order.iter().map(|arrow| arrows[*arrow].height + arrows[*arrow].label_height() + 8);
    room.max().unwrap_or(lowest)
}

/// The line of an arrow, with its head.
fn line(drawn: &mut String, arrow: &Arrow, (from, to): (i64, i64), middle: i64) {
    let title = escaped(&arrow.title.join("\n"));
    let _ = write!(drawn, "<g><title>S{} to S{}\n{title}</title>", arrow.from, arrow.to);
    if arrow.from == arrow.to {
        let (x, top, bottom) = (from + 16, middle - 8, middle + 8);
        let _ = write!(
            drawn,
            "<path class=arrow d='M{x} {top}C{0} {1} {0} {2} {x} {bottom}'/>\
             <path class=head d='M{x} {bottom}l9 0l-4 7z'/></g>",
            x + 28,
            top - 14,
            bottom + 14
        );
        return;
    }
    // Onwards is above the line, which is where numbers fall.
    let way = if arrow.from < arrow.to { -1 } else { 1 };
    let (from, to) = (from - way * ASIDE, to + way * ASIDE);
    // A curve reaches three quarters of the way to its control points.
    let (start, control) = (middle + way * EDGE, middle + way * (EDGE + (arrow.height - EDGE) * 4 / 3));
    let _ = write!(
        drawn,
        "<path class=arrow d='M{from} {start}C{from} {control} {to} {control} {to} {start}'/>\
         <path class=head d='M{to} {start}l-4 {0}h8z'/></g>",
        way * 8
    );
}

/// What is written at an arrow, above everything else.
fn label(drawn: &mut String, arrow: &Arrow, (from, to): (i64, i64), middle: i64) {
    let count = arrow.label.len() as i64;
    let (x, first, anchor) = match arrow.from.cmp(&arrow.to) {
        std::cmp::Ordering::Equal => (from + LOOP, middle + 4 - (count - 1) * LINE / 2, "start"),
        std::cmp::Ordering::Less => {
            (i64::midpoint(from, to), middle - arrow.height - 5 - (count - 1) * LINE, "middle")
        }
        std::cmp::Ordering::Greater => (i64::midpoint(from, to), middle + arrow.height + LINE, "middle"),
    };
    for (place, text) in arrow.label.iter().enumerate() {
        let y = first + LINE * place as i64;
        let _ =
            write!(drawn, "<text class=label x='{x}' y='{y}' text-anchor={anchor}>{}</text>", escaped(text));
    }
}
