//! Is this change safe: conditions as clauses, solving with certificates, exact synthesis.
