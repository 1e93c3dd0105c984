//! The policy machine: memory, configuration, experts, routing and the step.
