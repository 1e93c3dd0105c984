//! Algorithm D: which activity pays most in this situation, by one linear model for each with a confidence bonus.
//!
//! `score = theta . x + c * sqrt(x . A^-1 x)` with `A theta = b`; both systems are solved by a fixed number of
//! Gauss-Seidel sweeps, which converge because `A` is symmetric and positive definite. Sums are halved before
//! they outgrow their range. Clauses: SCC-11, D-26.

use crate::loss::Loss;
use crate::schedule::Activity;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// Features at most.
#[doc(alias = "d_ctx")]
pub const FEATURES_MAX: usize = 8;
/// The weight at which a model's sums are halved.
const WEIGHT_MAX: Fixed = Fixed::from_int(1 << 16);
/// Solutions are held within plus or minus this while a system is far from solved.
const SOLUTION_MAX: i128 = 1 << (32 + 12);

/// Settings of Algorithm D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearParameters {
    /// How many features a situation has, from 1 to [`FEATURES_MAX`].
    pub features: usize,
    /// Weight of the confidence bonus.
    #[doc(alias = "c_sched")]
    pub exploration: Fixed,
    /// What the diagonal starts from; must be positive.
    pub regularization: Fixed,
    /// Gauss-Seidel sweeps for each system.
    pub sweeps: u32,
}

impl LinearParameters {
    /// Two features, half a standard deviation of bonus, eight sweeps.
    pub const DEFAULT: LinearParameters =
        LinearParameters { features: 2, exploration: Fixed::HALF, regularization: Fixed::ONE, sweeps: 8 };
}

type Vector = [Fixed; FEATURES_MAX];

/// The model of one activity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    matrix: [Vector; FEATURES_MAX],
    target: Vector,
    /// The last solution, from which the next solve starts.
    theta: Vector,
}

/// One linear model an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearScheduler {
    parameters: LinearParameters,
    models: [Model; 3],
}

impl LinearScheduler {
    /// Models that know nothing.
    pub fn new(parameters: LinearParameters) -> LinearScheduler {
        assert!(1 <= parameters.features && parameters.features <= FEATURES_MAX);
        assert!(Fixed::ZERO < parameters.regularization && parameters.regularization < WEIGHT_MAX);
        let zero = [Fixed::ZERO; FEATURES_MAX];
        let mut matrix = [zero; FEATURES_MAX];
        for (place, row) in matrix.iter_mut().enumerate() {
            row[place] = parameters.regularization;
        }
        let model = Model { matrix, target: zero, theta: zero };
        LinearScheduler { parameters, models: [model.clone(), model.clone(), model] }
    }

    /// The activity with the highest score; ties go to the first.
    pub fn choose(&mut self, features: &[Loss]) -> Activity {
        self.choose_among(features, [true; 3])
    }

    /// The same among those that are possible; acting always is.
    pub fn choose_among(&mut self, features: &[Loss], possible: [bool; 3]) -> Activity {
        let x = self.vector(features);
        let parameters = self.parameters;
        let mut best = (Fixed::MIN, Activity::Act);
        for (activity, model) in Activity::ALL.into_iter().zip(&mut self.models) {
            model.theta = solve(&parameters, &model.matrix, &model.target, model.theta);
            let spread = solve(&parameters, &model.matrix, &x, [Fixed::ZERO; FEATURES_MAX]);
            let bonus = parameters.exploration.mul_floor(dot(&x, &spread).max(Fixed::ZERO).sqrt_floor());
            let score = dot(&x, &model.theta).plus(bonus);
            if best.0 < score && (possible[activity as usize] || activity == Activity::Act) {
                best = (score, activity);
            }
        }
        best.1
    }

    /// Books the reward that an activity brought in a situation.
    pub fn learn(&mut self, features: &[Loss], activity: Activity, reward: Loss) {
        let x = self.vector(features);
        let reward = Fixed::from_raw(reward.to_raw() as i64);
        let model = &mut self.models[activity as usize];
        for row in 0..self.parameters.features {
            for column in 0..self.parameters.features {
                model.matrix[row][column] = model.matrix[row][column].plus(x[row].mul_floor(x[column]));
            }
            model.target[row] = model.target[row].plus(x[row].mul_floor(reward));
        }
        let heaviest = (0..self.parameters.features).map(|place| model.matrix[place][place]).max();
        if heaviest.is_some_and(|weight| WEIGHT_MAX <= weight) {
            model.halve(self.parameters.regularization);
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        for model in &self.models {
            let rows = model.matrix.iter().chain([&model.target, &model.theta]);
            rows.flatten().for_each(|value| writer.i64(value.to_raw()));
        }
    }

    /// Reads the models back; sums out of range or a diagonal below its start are refused.
    pub(crate) fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut models = self.models.clone();
        for model in &mut models {
            let start = reader.clone();
            for value in model.matrix.iter_mut().chain([&mut model.target, &mut model.theta]).flatten() {
                *value = Fixed::from_raw(reader.i64()?);
            }
            let within = |value: &Fixed, most: i128| i128::from(value.to_raw()).abs() <= most;
            let weight_max = i128::from(WEIGHT_MAX.to_raw());
            let sums_hold =
                model.matrix.iter().chain([&model.target]).flatten().all(|value| within(value, weight_max));
            let solution_holds = model.theta.iter().all(|value| within(value, SOLUTION_MAX));
            let start_value = self.parameters.regularization;
            let diagonal_holds = (0..FEATURES_MAX).all(|place| start_value <= model.matrix[place][place]);
            if !(sums_hold && solution_holds && diagonal_holds) {
                return Err(start.error("a linear model that breaks its invariants"));
            }
        }
        self.models = models;
        Ok(())
    }

    fn vector(&self, features: &[Loss]) -> Vector {
        assert_eq!(features.len(), self.parameters.features, "features as the parameters say");
        let mut x = [Fixed::ZERO; FEATURES_MAX];
        for (value, feature) in x.iter_mut().zip(features) {
            *value = Fixed::from_raw(feature.to_raw() as i64);
        }
        x
    }
}

impl Model {
    /// Halves what was learned and leaves the regularization as it is.
    fn halve(&mut self, regularization: Fixed) {
        let half = |value: Fixed| Fixed::from_raw(value.to_raw() >> 1);
        for (place, row) in self.matrix.iter_mut().enumerate() {
            row[place] = row[place].minus(regularization);
            *row = row.map(half);
            row[place] = row[place].plus(regularization);
        }
        self.target = self.target.map(half);
    }
}

/// A fixed number of Gauss-Seidel sweeps for `matrix * solution = target`, starting from `solution`.
fn solve(parameters: &LinearParameters, matrix: &[Vector], target: &Vector, mut solution: Vector) -> Vector {
    for _ in 0..parameters.sweeps {
        for row in 0..parameters.features {
            let mut rest = i128::from(target[row].to_raw()) << 32;
            for column in (0..parameters.features).filter(|column| *column != row) {
                rest -= i128::from(matrix[row][column].to_raw()) * i128::from(solution[column].to_raw());
            }
            let value = rest.div_euclid(i128::from(matrix[row][row].to_raw()));
            solution[row] = Fixed::from_raw(value.clamp(-SOLUTION_MAX, SOLUTION_MAX) as i64);
        }
    }
    solution
}

fn dot(left: &Vector, right: &Vector) -> Fixed {
    left.iter().zip(right).fold(Fixed::ZERO, |sum, (a, b)| sum.plus(a.mul_floor(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn it_learns_which_activity_pays_in_which_situation() {
        let mut scheduler = LinearScheduler::new(LinearParameters::DEFAULT);
        let mut prng = Prng::quick(3);
        let mut right = 0;
        for unit in 0..4_000 {
            let backlog = prng.bit();
            let features = [Loss::ONE, Loss::from_bit(backlog)];
            let activity = scheduler.choose(&features);
            let best = if backlog { Activity::Verify } else { Activity::Act };
            right += u32::from(1_000 <= unit && activity == best);
            scheduler.learn(&features, activity, Loss::from_bit(activity == best && prng.below(10) < 8));
        }
        assert!(2_900 < right, "{right} of 3000");
    }

    #[test]
    fn sweeps_solve_a_system_with_a_known_solution() {
        let parameters = LinearParameters { features: 3, sweeps: 40, ..LinearParameters::DEFAULT };
        let number = |value: i32| Fixed::from_int(value);
        let mut matrix = [[Fixed::ZERO; FEATURES_MAX]; FEATURES_MAX];
        for (row, values) in [[4, 1, 0], [1, 3, 1], [0, 1, 5]].into_iter().enumerate() {
            matrix[row][..3].copy_from_slice(&values.map(number));
        }
        let mut target = [Fixed::ZERO; FEATURES_MAX];
        target[..3].copy_from_slice(&[6, 10, 17].map(number));
        let solution = solve(&parameters, &matrix, &target, [Fixed::ZERO; FEATURES_MAX]);
        for (got, want) in solution.iter().zip([1, 2, 3]) {
            assert!((got.to_raw() - number(want).to_raw()).abs() < 16, "{got} {want}");
        }
    }

    #[test]
    fn sums_stay_in_range_for_ever() {
        let parameters = LinearParameters { features: FEATURES_MAX, ..LinearParameters::DEFAULT };
        let mut scheduler = LinearScheduler::new(parameters);
        let features = [Loss::ONE; FEATURES_MAX];
        for _ in 0..300_000 {
            scheduler.learn(&features, Activity::Act, Loss::ONE);
        }
        assert!(scheduler.models[0].matrix[0][0] <= WEIGHT_MAX);
        scheduler.choose(&features);
    }
}
