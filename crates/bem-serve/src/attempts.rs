//! How many wrong tokens one address may show: a bucket for every peer, refilled by a monotonic clock, in memory only.
//!
//! A wrong token takes one from the bucket of its peer; where nothing is left, tokens from there are refused without being looked
//! at, so that guessing cannot go on behind the refusals. Two things keep others from being locked out: buckets are kept by
//! address, and a token that was right from an address stays good there, whatever else comes from it (a server on the loopback
//! address has one peer). A request without a token is no attempt, nor is a session that is over. The table is bounded; who has
//! most left gives way, so that a peer cannot buy back its bucket by coming from many addresses. Must not know routes or tokens,
//! only digests of them. Clause: HUM-12; decision D-208; threat T9.

use bem_base::digest::Digest;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong tokens that a peer may show at once.
pub const WRONG_MAX: u32 = 20;
/// How long it takes until one more may be shown.
pub const REGAINED_EVERY: Duration = Duration::from_secs(3);
/// Peers that are remembered.
pub const PEERS_MAX: usize = 4_096;
/// Tokens of one peer that are remembered to be right.
pub const KNOWN_MAX: usize = 32;

/// Where a request comes from: an address of IPv4, or the half of an address of IPv6 that a network is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer(IpAddr);

impl Peer {
    /// The peer with this address.
    pub fn new(address: IpAddr) -> Peer {
        match address.to_canonical() {
            IpAddr::V6(long) => {
                let network = long.to_bits() >> 64 << 64;
                Peer(IpAddr::V6(Ipv6Addr::from_bits(network)))
            }
            short @ IpAddr::V4(_) => Peer(short),
        }
    }
}

/// What one peer did.
#[derive(Debug)]
struct Account {
    /// When all of its bucket will be there again; in the past if it is.
    full_at: Instant,
    /// Tokens that were right from there, the latest last.
    known: Vec<Digest>,
}

/// Everybody's attempts.
#[derive(Debug, Default)]
pub struct Attempts {
    accounts: BTreeMap<Peer, Account>,
}

impl Attempts {
    /// Whether a token may be looked at; else how long to wait until one may.
    pub fn may_try(&self, peer: Peer, token: &Digest, now: Instant) -> Result<(), Duration> {
        let Some(account) = self.accounts.get(&peer) else { return Ok(()) };
        // One of the bucket is missing for every such time until it is full.
        let missing = account.full_at.saturating_duration_since(now);
        let most = REGAINED_EVERY * (WRONG_MAX - 1);
        if missing <= most || account.known.contains(token) { Ok(()) } else { Err(missing - most) }
    }

    /// A token was looked at.
    pub fn tried(&mut self, peer: Peer, token: Digest, is_right: bool, now: Instant) {
        if !self.accounts.contains_key(&peer) {
            self.make_room();
        }
        let account = self.accounts.entry(peer).or_insert(Account { full_at: now, known: Vec::new() });
        let place = account.known.iter().position(|known| *known == token);
        match (is_right, place) {
            (true, Some(_)) => {}
            (true, None) => {
                if account.known.len() == KNOWN_MAX {
                    account.known.remove(0);
                }
                account.known.push(token);
            }
            (false, place) => {
                // What was right and is revoked is an attempt like others.
                place.map(|place| account.known.remove(place));
                account.full_at = account.full_at.max(now) + REGAINED_EVERY;
            }
        }
    }

    /// Lets the peer go that has most left.
    fn make_room(&mut self) {
        if self.accounts.len() < PEERS_MAX {
            return;
        }
        let fullest = self.accounts.iter().min_by_key(|(_, account)| account.full_at).map(|(peer, _)| *peer);
        fullest.iter().for_each(|peer| drop(self.accounts.remove(peer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::hash_of;
    use std::net::Ipv4Addr;

    fn peer(number: u32) -> Peer {
        Peer::new(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    /// Wrong tokens until one is refused.
    fn exhaust(attempts: &mut Attempts, peer: Peer, now: Instant) -> u32 {
        (0..)
            .find(|_| {
                let wrong = hash_of("wrong");
                let refused = attempts.may_try(peer, &wrong, now).is_err();
                if !refused {
                    attempts.tried(peer, wrong, false, now);
                }
                refused
            })
            .unwrap()
    }

    #[test]
    fn wrong_tokens_of_one_address_are_counted_and_regained_with_time() {
        let (mut attempts, now, right) = (Attempts::default(), Instant::now(), hash_of("right"));
        assert_eq!(exhaust(&mut attempts, peer(1), now), WRONG_MAX);
        assert_eq!(attempts.may_try(peer(1), &right, now), Err(REGAINED_EVERY));
        let later = now + REGAINED_EVERY;
        assert_eq!(exhaust(&mut attempts, peer(1), later), 1);
        // After a long time there is one bucket and no more.
        assert_eq!(exhaust(&mut attempts, peer(1), later + REGAINED_EVERY * 10 * WRONG_MAX), WRONG_MAX);
    }

    #[test]
    fn others_are_not_locked_out_nor_is_whoever_was_let_in_from_there() {
        let (mut attempts, now, right) = (Attempts::default(), Instant::now(), hash_of("right"));
        attempts.tried(peer(1), right, true, now);
        exhaust(&mut attempts, peer(1), now);
        assert_eq!(attempts.may_try(peer(1), &right, now), Ok(()));
        assert!(attempts.may_try(peer(1), &hash_of("never shown here"), now).is_err());
        assert_eq!(attempts.may_try(peer(2), &hash_of("never shown here"), now), Ok(()));
        // A token that is revoked is not good any more: it is looked at once, and refused from then on.
        attempts.tried(peer(1), right, false, now);
        assert!(attempts.may_try(peer(1), &right, now).is_err());
    }

    #[test]
    fn the_table_is_bounded_and_who_has_least_left_stays_in_it() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        exhaust(&mut attempts, peer(1), now);
        for number in 2..2 + 2 * PEERS_MAX as u32 {
            attempts.tried(peer(number), hash_of("wrong"), false, now);
        }
        assert_eq!(attempts.accounts.len(), PEERS_MAX);
        assert!(attempts.may_try(peer(1), &hash_of("wrong"), now).is_err());
        for number in 0..2 * KNOWN_MAX {
            attempts.tried(peer(1), hash_of(&number.to_string()), true, now);
        }
        assert_eq!(attempts.accounts[&peer(1)].known.len(), KNOWN_MAX);
    }

    #[test]
    fn a_network_of_the_long_addresses_is_one_peer_and_a_short_one_in_a_long_one_is_itself() {
        let long = |text: &str| Peer::new(text.parse().unwrap());
        assert_eq!(long("2001:db8::1"), long("2001:db8::ffff:1"));
        assert_ne!(long("2001:db8::1"), long("2001:db8:0:1::1"));
        assert_eq!(long("::ffff:10.0.0.1"), Peer::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
    }
}
