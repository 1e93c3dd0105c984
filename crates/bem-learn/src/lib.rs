//! Choice rules over arms, in integers only.
