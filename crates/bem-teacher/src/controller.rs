//! Which domain and band is due at each stage: a frontier that only rises, and replay of what lies below it.
//!
//! Stages go round the domains. In most rounds a domain asks for its frontier, in the others, one in ten unless a
//! configuration says otherwise, for a lower band, each in turn (D-25). The frontier rises when the moving average of passes in its band is high. Clauses: GLE-5.

use crate::ladder::Domain;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};

/// Passes must average this much before the frontier rises.
pub const PASS_RATE_TO_RISE: Fixed = Fixed::from_ratio(9, 10);
/// Reports of the frontier's band before it may rise.
pub const REPORTS_TO_RISE: u32 = 8;
/// How a controller moves. Frozen at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The share of rounds that replay a lower band.
    pub replay: ReplayShare,
    /// Weight of a new report in a moving average.
    #[doc(alias = "pass_rate EMA")]
    pub newest: Fixed,
}

impl Pace {
    /// A tenth of the rounds replay; a new report weighs an eighth.
    pub const DEFAULT: Pace = Pace { replay: ReplayShare::TENTH, newest: Fixed::from_ratio(1, 8) };

    /// Moves a moving average toward a new value.
    pub fn average(&self, old: Fixed, new: Fixed) -> Fixed {
        old.plus(new.minus(old).mul_floor(self.newest))
    }
}

/// Billionths of all rounds, spread evenly; at most all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayShare(u64);

const BILLION: u64 = 1_000_000_000;

impl ReplayShare {
    /// One round in ten.
    pub const TENTH: ReplayShare = ReplayShare(BILLION / 10);

    /// The decimal of nine digits that was read as this share, from zero to one.
    pub fn from_fixed(share: Fixed) -> ReplayShare {
        let raw = share.clamp(Fixed::ZERO, Fixed::ONE).to_raw() as u128;
        // Reading rounds down, so that the decimal is the smallest that is not below.
        ReplayShare((raw * u128::from(BILLION)).div_ceil(1 << FRACTION_BITS) as u64)
    }

    /// How many of the first rounds replay.
    pub fn before(self, round: u64) -> u64 {
        (u128::from(round) * u128::from(self.0) / u128::from(BILLION)) as u64
    }

    /// Whether this round replays.
    pub fn replays(self, round: u64) -> bool {
        self.before(round) < self.before(round + 1)
    }
}

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

/// How far a domain has come: its frontier, and how tasks there go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    frontier: u8,
    pass_rate: Fixed,
    reports: u32,
}

/// The deterministic mapping from stages to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    pace: Pace,
    /// Bands of each domain.
    bands: usize,
    stage: u64,
    domains: Vec<Domain>,
    progress: Vec<Progress>,
}

impl Controller {
    /// A controller that starts at the lowest band of every one of these domains, of which there is at least one.
    pub fn new(domains: Vec<Domain>, bands: usize, pace: Pace) -> Controller {
        assert!(!domains.is_empty());
        let start = Progress { frontier: 0, pass_rate: Fixed::ZERO, reports: 0 };
        Controller { pace, bands, stage: 0, progress: vec![start; domains.len()], domains }
    }

    /// What the next stage asks for.
    pub fn request(&mut self) -> Request {
        let count = self.domains.len() as u64;
        let (place, round) = ((self.stage % count) as usize, self.stage / count);
        let frontier = self.progress[place].frontier;
        let replays = self.pace.replay.replays(round) && 0 < frontier;
        let turn = self.pace.replay.before(round);
        let band = if replays { (turn % u64::from(frontier)) as u8 } else { frontier };
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
        progress.pass_rate =
            self.pace.average(progress.pass_rate, if passed { Fixed::ONE } else { Fixed::ZERO });
        progress.reports += 1;
        let may_rise = usize::from(progress.frontier) + 1 < self.bands;
        if may_rise && REPORTS_TO_RISE <= progress.reports && PASS_RATE_TO_RISE <= progress.pass_rate {
            *progress = Progress { frontier: progress.frontier + 1, pass_rate: Fixed::ZERO, reports: 0 };
        }
    }

    /// Competence shown elsewhere: the frontier is at least this band from now on.
    pub fn raise(&mut self, domain: Domain, band: u8) {
        let Some(place) = self.domains.iter().position(|other| *other == domain) else { return };
        let progress = &mut self.progress[place];
        let band = band.min(self.bands as u8 - 1);
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
    pub fn decode(bands: usize, pace: Pace, reader: &mut Reader<'_>) -> Result<Controller, DecodeError> {
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
            if bands <= usize::from(frontier) {
                return Err(reader.error("a band that does not exist"));
            }
            let pass_rate = Fixed::from_raw(reader.i64()?);
            if pass_rate < Fixed::ZERO || Fixed::ONE < pass_rate {
                return Err(reader.error("a pass rate outside zero to one"));
            }
            domains.push(domain);
            progress.push(Progress { frontier, pass_rate, reports: reader.u32()? });
        }
        Ok(Controller { pace, bands, stage, domains, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::BANDS;

    #[test]
    fn replays_are_spread_evenly_whatever_their_share() {
        let tenth = ReplayShare::from_fixed(Fixed::parse_decimal("0.1").unwrap());
        assert_eq!(tenth, ReplayShare::TENTH);
        let replayed: Vec<u64> = (0..40).filter(|round| tenth.replays(*round)).collect();
        assert_eq!(replayed, [9, 19, 29, 39]);
        let share = |text| ReplayShare::from_fixed(Fixed::parse_decimal(text).unwrap());
        assert_eq!((0..1_000).filter(|round| share("0.3").replays(*round)).count(), 300);
        assert_eq!((0..100).filter(|round| share("0").replays(*round)).count(), 0);
        assert_eq!((0..100).filter(|round| share("1").replays(*round)).count(), 100);
    }

    #[test]
    fn what_was_shown_elsewhere_raises_the_frontier_and_never_lowers_it() {
        let mut controller = Controller::new(vec![Domain(0), Domain(1)], BANDS, Pace::DEFAULT);
        controller.raise(Domain(1), 3);
        controller.raise(Domain(1), 2);
        assert_eq!(controller.frontier(Domain(0)), Some(0));
        assert_eq!(controller.frontier(Domain(1)), Some(3));
        controller.raise(Domain(1), u8::MAX);
        assert_eq!(controller.frontier(Domain(1)), Some(BANDS as u8 - 1));
    }

    #[test]
    fn the_frontier_only_rises_and_a_tenth_is_replay() {
        let mut controller = Controller::new(vec![Domain(0), Domain(1)], BANDS, Pace::DEFAULT);
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
        let mut controller = Controller::new(vec![Domain(4)], BANDS, Pace::DEFAULT);
        for round in 0..1_000 {
            let request = controller.request();
            controller.report(request.domain, request.band, round % 2 == 0);
        }
        assert_eq!(controller.frontier(Domain(4)), Some(0));
    }
}
