//! The world-forward model: for every plane, move and foveal cell, seven tiny Boolean predictors compete.
//!
//! A predictor is "nothing", "as now", "as the northern (southern, western, eastern) neighbour now", or "always".
//! Each has a loss count; the lowest wins, ties to the first, so that an untrained model predicts nothing at all.
//! Must not see anything but views and moves. Clauses: CUR-1, CUR-9.

use crate::fraction::share;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_games::rulegrid::view::{PLANES, View};

/// Cells of the fovea, the middle three by three of the view.
const FOVEA: [usize; 9] = [6, 7, 8, 11, 12, 13, 16, 17, 18];
const ACTIONS: usize = 5;
const PREDICTORS: usize = 7;
/// Losses are halved past this, so that old evidence fades.
const LOSS_MAX: u16 = 4_000;

/// The fovea's bits of a plane.
pub const FOVEA_MASK: u32 = {
    let mut mask = 0;
    let mut index = 0;
    while index < FOVEA.len() {
        mask |= 1 << FOVEA[index];
        index += 1;
    }
    mask
};

/// Loss counts of all predictors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldModel {
    losses: Vec<[u16; PREDICTORS]>,
}

/// A prediction beside what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surprise {
    /// The unexplained share of what is there, from 0 to one.
    pub error: i64,
    /// Whether there was something to predict: something is there, and something changed.
    pub informative: bool,
}

impl Default for WorldModel {
    fn default() -> WorldModel {
        WorldModel { losses: vec![[0; PREDICTORS]; PLANES * ACTIONS * FOVEA.len()] }
    }
}

/// What each predictor says of a cell, as bits.
fn proposals(plane: u32, cell: usize) -> u32 {
    let bit = |index: usize| plane >> index & 1;
    let sources = [cell, cell - 5, cell + 5, cell - 1, cell + 1];
    let seen = sources.iter().enumerate().fold(0, |bits, (place, source)| bits | bit(*source) << (place + 1));
    seen | 1 << (PREDICTORS - 1)
}

impl WorldModel {
    fn place(plane: usize, action: u16, cell: usize) -> usize {
        (plane * ACTIONS + usize::from(action).min(ACTIONS - 1)) * FOVEA.len() + cell
    }

    /// The predicted fovea after a move.
    pub fn predict(&self, view: &View, action: u16) -> [u32; PLANES] {
        let mut predicted = [0; PLANES];
        for (plane, bits) in predicted.iter_mut().enumerate() {
            for (number, cell) in FOVEA.into_iter().enumerate() {
                let losses = &self.losses[Self::place(plane, action, number)];
                let best = (0..PREDICTORS).min_by_key(|predictor| losses[*predictor]).unwrap_or(0);
                *bits |= (proposals(view.planes[plane], cell) >> best & 1) << cell;
            }
        }
        predicted
    }

    /// How wrong a prediction was.
    pub fn surprise(predicted: &[u32; PLANES], before: &View, after: &View) -> Surprise {
        let (mut wrong, mut there, mut changed) = (0, 0, 0);
        for ((plane, old), new) in predicted.iter().zip(before.planes).zip(after.planes) {
            let new = new & FOVEA_MASK;
            wrong += (plane ^ new).count_ones();
            there += new.count_ones();
            changed += ((old & FOVEA_MASK) ^ new).count_ones();
        }
        let error = if there == 0 { 0 } else { share(i64::from(wrong), i64::from(there)) };
        Surprise { error, informative: 0 < there && 0 < changed }
    }

    /// Counts a loss for every predictor that was wrong.
    pub fn learn(&mut self, before: &View, action: u16, after: &View) {
        for plane in 0..PLANES {
            for (number, cell) in FOVEA.into_iter().enumerate() {
                let proposed = proposals(before.planes[plane], cell);
                let came = after.planes[plane] >> cell & 1;
                let losses = &mut self.losses[Self::place(plane, action, number)];
                for (predictor, loss) in losses.iter_mut().enumerate() {
                    *loss += u16::from(proposed >> predictor & 1 != came);
                }
                if losses.iter().any(|loss| LOSS_MAX < *loss) {
                    losses.iter_mut().for_each(|loss| *loss /= 2);
                }
            }
        }
    }

    /// Writes all counts.
    pub fn encode(&self, writer: &mut Writer) {
        self.losses.iter().flatten().for_each(|loss| writer.u16(*loss));
    }

    /// Reads all counts.
    pub fn decode(reader: &mut Reader<'_>) -> Result<WorldModel, DecodeError> {
        let mut model = WorldModel::default();
        for loss in model.losses.iter_mut().flatten() {
            *loss = reader.u16()?;
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::ONE;

    fn view(plane: usize, bits: u32) -> View {
        let mut view = View::default();
        view.planes[plane] = bits;
        view
    }

    #[test]
    fn an_untrained_model_explains_nothing() {
        let (before, after) = (view(3, 1 << 12), view(3, 1 << 13));
        let surprise = WorldModel::surprise(&WorldModel::default().predict(&before, 2), &before, &after);
        assert_eq!(surprise, Surprise { error: ONE, informative: true });
    }

    #[test]
    fn a_world_that_moves_as_a_whole_is_learned_to_the_last_bit() {
        let mut model = WorldModel::default();
        let shifted = |bits: u32| view(0, bits >> 1 & 0x00F7_BDEF);
        for bits in (0..400u32).map(|seed| seed.wrapping_mul(0x9E37_79B1) >> 7) {
            model.learn(&view(0, bits), 3, &shifted(bits));
        }
        let before = view(0, 0b01100_10110_01101_11011_00110);
        let predicted = model.predict(&before, 3);
        assert_eq!(WorldModel::surprise(&predicted, &before, &shifted(before.planes[0])).error, 0);
    }

    #[test]
    fn standing_still_and_empty_views_are_not_informative() {
        let model = WorldModel::default();
        let still = view(0, 1 << 12);
        assert!(!WorldModel::surprise(&model.predict(&still, 4), &still, &still).informative);
        let empty = View::default();
        assert!(!WorldModel::surprise(&model.predict(&still, 4), &still, &empty).informative);
    }

    #[test]
    fn counts_are_halved_and_never_overflow() {
        let mut model = WorldModel::default();
        for _ in 0..70_000 {
            model.learn(&view(0, 0), 0, &view(0, FOVEA_MASK));
        }
        assert!(model.losses.iter().flatten().all(|loss| *loss <= LOSS_MAX));
    }
}
