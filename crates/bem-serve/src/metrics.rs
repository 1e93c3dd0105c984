//! What is counted, as OpenMetrics text. Clause: GLE-9.

use crate::core::{Gauges, Handle};
use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    path: &'static str,
    status: u16,
}

/// The registry with what is in it.
pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Labels, Counter>,
    latency: Histogram,
    gauges: Vec<(Gauge, Read)>,
    waiting: Gauge,
}

/// Reads one of the counts.
type Read = fn(&Gauges) -> u64;

const GAUGES: [(&str, &str, Read); 20] = [
    ("bem_inputs", "Inputs that took effect", |gauges| gauges.inputs.load(Ordering::Relaxed)),
    ("bem_inputs_covered", "Inputs under a signed checkpoint", |gauges| {
        gauges.covered.load(Ordering::Relaxed)
    }),
    ("bem_decisions", "Decisions answered since the start", |gauges| {
        gauges.decisions.load(Ordering::Relaxed)
    }),
    ("bem_rewards", "Rewards booked since the start", |gauges| gauges.rewards.load(Ordering::Relaxed)),
    ("bem_rounds", "Rounds of learning since the start", |gauges| gauges.rounds.load(Ordering::Relaxed)),
    ("bem_groups", "Groups of inputs that were synced", |gauges| gauges.groups.load(Ordering::Relaxed)),
    ("bem_sync_micros", "Microseconds spent in syncs", |gauges| gauges.sync_micros.load(Ordering::Relaxed)),
    ("bem_tool_requests_ended", "Requests to tools that ended since the start", |gauges| {
        gauges.tools_ended.load(Ordering::Relaxed)
    }),
    ("bem_tool_back_pressure", "Requests to tools that found no free slot since the start", |gauges| {
        gauges.tools_refused.load(Ordering::Relaxed)
    }),
    ("bem_models_asked", "Questions to a model for candidates since the start", |gauges| {
        gauges.models_asked.load(Ordering::Relaxed)
    }),
    ("bem_machines_proposed", "Machines that a model proposed since the start", |gauges| {
        gauges.machines_proposed.load(Ordering::Relaxed)
    }),
    ("bem_proposals_refused", "Proposals of a model that could not be read since the start", |gauges| {
        gauges.proposals_refused.load(Ordering::Relaxed)
    }),
    ("bem_webhooks_sent", "Messages that webhooks have taken since the start", |gauges| {
        gauges.webhooks_sent.load(Ordering::Relaxed)
    }),
    ("bem_webhooks_retried", "Attempts at webhooks that failed and are made again", |gauges| {
        gauges.webhooks_retried.load(Ordering::Relaxed)
    }),
    ("bem_webhooks_dropped", "Messages to webhooks that were given up since the start", |gauges| {
        gauges.webhooks_dropped.load(Ordering::Relaxed)
    }),
    ("bem_rungs_reached", "Rungs of the ladder that were reached since the start", |gauges| {
        gauges.rungs_reached.load(Ordering::Relaxed)
    }),
    ("bem_pipeline_units", "Units of the pipeline that were worked on since the start", |gauges| {
        gauges.pipeline_units.load(Ordering::Relaxed)
    }),
    ("bem_pipeline_steps", "Steps of these units", |gauges| gauges.pipeline_steps.load(Ordering::Relaxed)),
    ("bem_domains_learned", "Domains that the pipeline has learned since the start", |gauges| {
        gauges.domains_learned.load(Ordering::Relaxed)
    }),
    ("bem_ledger_entries", "Entries of the ledger", |gauges| gauges.entries.load(Ordering::Relaxed)),
];

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::default();
        let requests = Family::<Labels, Counter>::default();
        let latency = Histogram::new([0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0]);
        let waiting = Gauge::default();
        registry.register("bem_requests", "Requests by path and status", requests.clone());
        registry.register("bem_request_seconds", "Time to answer", latency.clone());
        registry.register("bem_requests_waiting", "Requests that wait to be decided", waiting.clone());
        let gauges = GAUGES
            .iter()
            .map(|(name, meaning, read)| {
                let gauge = Gauge::default();
                registry.register(*name, *meaning, gauge.clone());
                (gauge, *read)
            })
            .collect();
        Metrics { registry: Mutex::new(registry), requests, latency, gauges, waiting }
    }
}

impl Metrics {
    /// Counts an answer.
    pub fn count(&self, method: &Method, path: &'static str, status: StatusCode, took: Duration) {
        // Methods that nobody registered would make a label each.
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        self.requests.get_or_create(&Labels { method, path, status: status.as_u16() }).inc();
        self.latency.observe(took.as_secs_f64());
    }

    /// Everything as text.
    pub fn text(&self, handle: &Handle) -> String {
        for (gauge, read) in &self.gauges {
            gauge.set(read(&handle.gauges) as i64);
        }
        self.waiting.set(handle.waiting() as i64);
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = encode(&mut text, &registry);
        text
    }
}
