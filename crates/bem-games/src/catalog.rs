//! All families by name.

use crate::game::Family;

/// Every family, in the order of the specification.
pub fn families() -> &'static [&'static dyn Family] {
    &[]
}
