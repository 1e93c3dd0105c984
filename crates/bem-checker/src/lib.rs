//! The small proof checker that users must trust; it cannot see the solver.
