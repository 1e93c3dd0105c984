//! Which task comes next: templates, mutation, bands and the ladder.
