//! What a benchmark returns, how short work is timed, and how results are shown.

use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

/// One figure beside the floor it is compared with.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The name in the contract.
    pub name: &'static str,
    /// The figure.
    pub value: f64,
    /// What it is counted in.
    pub unit: &'static str,
    /// What the figure could be at best, measured in the same run; a peak if the figure is a rate.
    pub floor: f64,
    /// What the floor is.
    pub floor_name: String,
    /// Further figures, shown behind the ratio.
    pub extra: Vec<(&'static str, f64)>,
    /// The multiple of the floor that is asked for at most, where one is asked for.
    pub ratio_max: Option<f64>,
}

impl Measurement {
    /// A figure with its floor and nothing else.
    pub fn new(
        name: &'static str,
        value: f64,
        unit: &'static str,
        floor: f64,
        floor_name: &str,
    ) -> Measurement {
        Measurement {
            name,
            value,
            unit,
            floor,
            floor_name: floor_name.into(),
            extra: Vec::new(),
            ratio_max: None,
        }
    }

    /// Adds a further figure.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: f64) -> Measurement {
        self.extra.push((key, value));
        self
    }

    /// Asks for at most this multiple of the floor: more is a miss, and the answer no.
    #[must_use]
    pub fn at_most(self, ratio_max: f64) -> Measurement {
        Measurement { ratio_max: Some(ratio_max), ..self }
    }

    /// What was asked for and was not reached, in words. A ratio that is no number is none that was reached.
    pub fn missed(&self) -> Option<String> {
        let (name, ratio, most) = (self.name, self.ratio(), self.ratio_max?);
        let is_reached = ratio <= most;
        (!is_reached).then(|| {
            let (value, floor, of) = (self.value, self.floor, &self.floor_name);
            format!("{name}: {value:.0} is {ratio:.2} times {floor:.0} ({of}), at most {most} times is asked")
        })
    }

    /// The figure as a multiple of its floor.
    pub fn ratio(&self) -> f64 {
        self.value / self.floor
    }

    /// The object that scripts read.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "name": self.name, "value": self.value, "unit": self.unit,
            "floor": self.floor, "floor_name": self.floor_name, "ratio": self.ratio(),
        });
        for (key, value) in &self.extra {
            object[*key] = json!(value);
        }
        if let Some(most) = self.ratio_max {
            object["ratio_max"] = json!(most);
            object["missed"] = json!(self.missed());
        }
        object
    }
}

/// The least time one call takes, in nanoseconds: the minimum over `trials` of the mean over `calls`.
///
/// The closure should pass inputs and results through `std::hint::black_box`.
pub fn minimum_nanoseconds(trials: u32, calls: u32, mut work: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..trials {
        let start = Instant::now();
        for _ in 0..calls {
            work();
        }
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }
    least
}

/// The processor time of this thread; where the system does not tell, the time on the wall.
pub fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let wall = || START.get_or_init(Instant::now).elapsed().as_secs_f64();
    nanoseconds.map_or_else(wall, |nanoseconds| nanoseconds / 1e9)
}

/// The processor's name and how many of them there are.
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} threads, {}", model.unwrap_or("unknown processor"), std::env::consts::ARCH)
}

/// The results as aligned text, one line each.
pub fn table(measurements: &[Measurement]) -> String {
    let mut text = format!(
        "{:<26} {:>12} {:<14} {:>8}  {:>12} {}\n",
        "name", "value", "unit", "ratio", "floor", "floor is"
    );
    for entry in measurements {
        let (value, floor) = (figure(entry.value), figure(entry.floor));
        let _ = write!(
            text,
            "{:<26} {value:>12} {:<14} {:>8.3}  {floor:>12} {}",
            entry.name,
            entry.unit,
            entry.ratio(),
            entry.floor_name
        );
        for (key, value) in &entry.extra {
            let _ = write!(text, ", {key} {}", figure(*value));
        }
        text.push('\n');
    }
    text
}

/// Four significant digits, with an exponent only for rates.
fn figure(value: f64) -> String {
    match value.abs() {
        size if 1e6 <= size => format!("{value:.3e}"),
        size if 100.0 <= size => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_the_keys_of_the_contract() {
        let entry = Measurement::new("step_single", 88.0, "ns", 22.0, "circuit alone").with("worst", 90.0);
        let want = json!({"name": "step_single", "value": 88.0, "unit": "ns", "floor": 22.0,
            "floor_name": "circuit alone", "ratio": 4.0, "worst": 90.0});
        assert_eq!(entry.to_json(), want);
    }

    #[test]
    fn what_is_more_than_was_asked_for_is_missed_in_words() {
        let entry = |value: f64| Measurement::new("regret", value, "losses", 100.0, "the rule").at_most(2.0);
        assert_eq!(
            (entry(200.0).missed(), Measurement::new("a", 9.0, "ns", 1.0, "b").missed()),
            (None, None)
        );
        let said = entry(201.0).missed().expect("it is missed");
        assert_eq!(said, "regret: 201 is 2.01 times 100 (the rule), at most 2 times is asked");
        assert_eq!(entry(201.0).to_json()["missed"], json!(said));
        assert!(entry(f64::NAN).missed().is_some());
    }

    #[test]
    fn the_table_has_one_line_a_measurement() {
        let entry = Measurement::new("rate", 3.0e9, "steps/s", 6.0e9, "peak");
        let text = table(&[entry]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("3.000e9") && text.contains("0.500"), "{text}");
    }
}
