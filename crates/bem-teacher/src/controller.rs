//! Which domain and band is due at each stage: a frontier that only rises, and replay of what lies below it.
//!
//! Stages go round the domains. In nine of ten rounds a domain asks for its frontier, in the tenth for a lower band,
//! each in turn (D-25). The frontier rises when the moving average of passes in its band is high. Clauses: GLE-5.

use crate::ladder::{BANDS, Domain};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// One round in this many replays a lower band.
pub const REPLAY_EVERY: u64 = 10;
/// Passes must average this much before the frontier rises.
pub const PASS_RATE_TO_RISE: Fixed = Fixed::from_ratio(9, 10);
/// Reports of the frontier's band before it may rise.
pub const REPORTS_TO_RISE: u32 = 8;
/// Weight of a new report in a moving average: one in this many.
pub const AVERAGE_OVER: u64 = 8;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stage, counted from zero.
    pub stage: u64,
    /// Whose turn it is.
    pub domain: Domain,
    /// How hard.
    pub band: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    frontier: u8,
    pass_rate: Fixed,
    reports: u32,
}

/// Moves a moving average toward a new value.
pub(crate) fn average(old: Fixed, new: Fixed) -> Fixed {
    old.plus(new.minus(old).div_count_floor(AVERAGE_OVER))
}

/// The deterministic mapping from stages to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    stage: u64,
    domains: Vec<Domain>,
    progress: Vec<Progress>,
}

impl Controller {
    /// A controller that starts at the lowest band of every one of these domains, of which there is at least one.
    pub fn new(domains: Vec<Domain>) -> Controller {
        assert!(!domains.is_empty());
        let start = Progress { frontier: 0, pass_rate: Fixed::ZERO, reports: 0 };
        Controller { stage: 0, progress: vec![start; domains.len()], domains }
    }

    /// What the next stage asks for.
    pub fn request(&mut self) -> Request {
        let count = self.domains.len() as u64;
        let (place, round) = ((self.stage % count) as usize, self.stage / count);
        let frontier = self.progress[place].frontier;
        let replays = round % REPLAY_EVERY == REPLAY_EVERY - 1 && 0 < frontier;
        let band = if replays { (round / REPLAY_EVERY % u64::from(frontier)) as u8 } else { frontier };
        let request = Request { stage: self.stage, domain: self.domains[place], band };
        self.stage += 1;
        request
    }

    /// What came of a task in this domain and band.
    pub fn report(&mut self, domain: Domain, band: u8, passed: bool) {
        let Some(place) = self.domains.iter().position(|other| *other == domain) else { return };
        let progress = &mut self.progress[place];
        if band != progress.frontier {
            return;
        }
        progress.pass_rate = average(progress.pass_rate, if passed { Fixed::ONE } else { Fixed::ZERO });
        progress.reports += 1;
        let may_rise = usize::from(progress.frontier) + 1 < BANDS;
        if may_rise && REPORTS_TO_RISE <= progress.reports && PASS_RATE_TO_RISE <= progress.pass_rate {
            *progress = Progress { frontier: progress.frontier + 1, pass_rate: Fixed::ZERO, reports: 0 };
        }
    }

    /// Competence shown elsewhere: the frontier is at least this band from now on.
    pub fn raise(&mut self, domain: Domain, band: u8) {
        let Some(place) = self.domains.iter().position(|other| *other == domain) else { return };
        let progress = &mut self.progress[place];
        let band = band.min(BANDS as u8 - 1);
        if progress.frontier < band {
            *progress = Progress { frontier: band, pass_rate: Fixed::ZERO, reports: 0 };
        }
    }

    /// The band that a domain has reached.
    pub fn frontier(&self, domain: Domain) -> Option<u8> {
        let place = self.domains.iter().position(|other| *other == domain)?;
        Some(self.progress[place].frontier)
    }

    /// Writes everything, for a snapshot.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u64(self.stage);
        writer.u32(self.domains.len() as u32);
        for (domain, progress) in self.domains.iter().zip(&self.progress) {
            writer.u8(domain.0);
            writer.u8(progress.frontier);
            writer.i64(progress.pass_rate.to_raw());
            writer.u32(progress.reports);
        }
    }

    /// Reads it back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Controller, DecodeError> {
        let stage = reader.u64()?;
        let count = reader.length(14)?;
        if count == 0 {
            return Err(reader.error("a controller without domains"));
        }
        let known = Domain::all().count();
        let (mut domains, mut progress) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let domain = Domain(reader.u8()?);
            if known <= usize::from(domain.0) || domains.contains(&domain) {
                return Err(reader.error("a domain that does not exist or comes twice"));
            }
            let frontier = reader.u8()?;
            if BANDS <= usize::from(frontier) {
                return Err(reader.error("a band that does not exist"));
            }
            let pass_rate = Fixed::from_raw(reader.i64()?);
            if pass_rate < Fixed::ZERO || Fixed::ONE < pass_rate {
                return Err(reader.error("a pass rate outside zero to one"));
            }
            domains.push(domain);
            progress.push(Progress { frontier, pass_rate, reports: reader.u32()? });
        }
        Ok(Controller { stage, domains, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_elsewhere_raises_the_frontier_and_never_lowers_it() {
        let mut controller = Controller::new(vec![Domain(0), Domain(1)]);
        controller.raise(Domain(1), 3);
        controller.raise(Domain(1), 2);
        assert_eq!(controller.frontier(Domain(0)), Some(0));
        assert_eq!(controller.frontier(Domain(1)), Some(3));
        controller.raise(Domain(1), u8::MAX);
        assert_eq!(controller.frontier(Domain(1)), Some(BANDS as u8 - 1));
    }

    #[test]
    fn the_frontier_only_rises_and_a_tenth_is_replay() {
        let mut controller = Controller::new(vec![Domain(0), Domain(1)]);
        let mut last = [0, 0];
        let (mut replays, mut asked) = (0, 0);
        for stage in 0..4_000u64 {
            let request = controller.request();
            assert_eq!(request.stage, stage);
            let place = usize::from(request.domain.0);
            let frontier = controller.frontier(request.domain).unwrap();
            assert!(last[place] <= frontier && request.band <= frontier);
            last[place] = frontier;
            asked += u32::from(0 < frontier);
            replays += u32::from(request.band < frontier);
            // The first domain passes everything, the second only its first three bands.
            controller.report(request.domain, request.band, place == 0 || request.band < 3);
        }
        assert_eq!(last, [7, 3]);
        let percent = replays * 100 / asked;
        assert!((9..=11).contains(&percent), "{percent}");
    }

    #[test]
    fn failing_keeps_the_frontier_where_it_is() {
        let mut controller = Controller::new(vec![Domain(4)]);
        for round in 0..1_000 {
            let request = controller.request();
            controller.report(request.domain, request.band, round % 2 == 0);
        }
        assert_eq!(controller.frontier(Domain(4)), Some(0));
    }
}
