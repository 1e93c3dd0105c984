//! From experience to circuits: a general grammar of hypotheses, blind to which game is played.
