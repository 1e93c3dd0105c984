//! What can go wrong with a request: numbers that workers and programs see, with their words.
//!
//! Codes of a completed request are positive (`err_code` of the specification); what an enqueue refuses is negative.
//! Codes from 256 on belong to users' tools. Numbers are never used twice. Clauses: TOOL-2, TOOL-11.

/// Why a request ended as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode(pub u16);

macro_rules! codes {
    ($($name:ident = $code:literal, $word:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $word] pub const $name: ErrorCode = ErrorCode($code);)*

            /// What the code says, in words.
            pub fn words(self) -> &'static str {
                match self.0 {
                    $($code => $word,)*
                    256.. => "the tool's own error",
                    _ => "an unknown error",
                }
            }

            /// The code's name, for programs.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    256.. => "TOOL_ERROR",
                    _ => "UNKNOWN_ERROR",
                }
            }
        }
    };
}

codes! {
    UNKNOWN_KIND = 1, "there is no tool of this kind";
    UNKNOWN_OPERATION = 2, "the tool has no such operation";
    UNKNOWN_RESOURCE = 3, "the catalog has no such resource";
    WRONG_RESOURCE = 4, "the resource is of another class than the tool works on";
    BAD_PAYLOAD = 5, "the request's payload cannot be read";
    NOT_ALLOWED = 6, "the flags of the resource forbid this";
    NOT_FOUND = 7, "what the resource stands for is not there";
    TOO_LONG = 8, "the answer is longer than its buffer";
    TIMEOUT = 9, "no worker took the request in time";
    OUTCOME_UNKNOWN = 10, "the worker was lost while it worked: whether it had an effect is not known";
    WORKER_LOST = 11, "every worker that tried was lost";
    BAD_RESPONSE = 12, "the worker's answer does not fit its checksum, its length or its form";
    INPUT_OUTPUT = 13, "the operating system refused";
    BAD_QUERY = 14, "the statement was refused by the database";
    TOO_EXPENSIVE = 15, "the statement was stopped: it took more steps than allowed";
    NOT_A_FILE = 16, "what the resource stands for is no regular file";
    NOT_A_DIRECTORY = 17, "what the resource stands for is no directory";
    UNAVAILABLE = 18, "what the tool needs cannot be reached";
    REFUSED_PROOF = 19, "the answer came without a certificate that the checker accepts";
    WRONG_VERSION = 20, "the worker speaks another version of the layer";
    CANCELLED = 21, "the request was withdrawn";
    WRITE_FAILED = 22, "the write failed; what was there is unchanged";
}

/// Why an enqueue was refused, as a program of the control core sees it: a negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(i64)]
pub enum Refused {
    /// Every slot of the kind is taken: a counted event, never a wait.
    #[error("all slots of this kind are taken: come back later")]
    NoSlot = -1,
    /// Every buffer is taken.
    #[error("all buffers of this kind are taken: come back later")]
    NoBuffer = -2,
    /// The kind is not in the catalog.
    #[error("there is no tool of this kind")]
    UnknownKind = -3,
    /// The request is longer than allowed.
    #[error("the request is longer than allowed")]
    TooLong = -4,
    /// The response buffer is longer than allowed, or empty.
    #[error("the buffer for the answer must have between 1 byte and 1 MiB")]
    BadCapacity = -5,
    /// The identifier of the resource is damaged.
    #[error("the identifier of the resource is damaged")]
    BadResource = -6,
    /// Reserved bits are set.
    #[error("reserved bits of the descriptor must be zero")]
    Reserved = -7,
    /// A buffer lies outside the segments that a request may use.
    #[error("a buffer lies outside the memory that a request may use")]
    BadBuffer = -8,
    /// There is no bus.
    #[error("there is no tool bus")]
    NoBus = -9,
    /// The operation does not fit in 16 bits, or the flags.
    #[error("operation and flags are numbers of 16 bits")]
    BadOperation = -10,
    /// A routine of a service may only read.
    #[error("a routine of a service may only ask for what changes nothing")]
    NotARead = -11,
    /// Contents that stay out of the history do not go into a routine's memory.
    #[error("contents of the resource stay out of the history: a routine of a service is not given them")]
    Sensitive = -12,
}

impl Refused {
    /// All of them, by number.
    pub const ALL: [Refused; 12] = [
        Refused::NoSlot,
        Refused::NoBuffer,
        Refused::UnknownKind,
        Refused::TooLong,
        Refused::BadCapacity,
        Refused::BadResource,
        Refused::Reserved,
        Refused::BadBuffer,
        Refused::NoBus,
        Refused::BadOperation,
        Refused::NotARead,
        Refused::Sensitive,
    ];

    /// The number that a program sees.
    pub const fn code(self) -> i64 {
        self as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_and_words_of_its_own() {
        let named: Vec<&str> = (1..=22).map(|code| ErrorCode(code).name()).collect();
        let words: std::collections::BTreeSet<&str> = (1..=22).map(|code| ErrorCode(code).words()).collect();
        assert_eq!(words.len(), 22);
        assert!(named.iter().all(|name| *name != "UNKNOWN_ERROR"));
        assert_eq!((ErrorCode(23).name(), ErrorCode(999).name()), ("UNKNOWN_ERROR", "TOOL_ERROR"));
    }

    #[test]
    fn refusals_are_distinct_negative_numbers() {
        let codes: Vec<i64> = Refused::ALL.iter().map(|refused| refused.code()).collect();
        assert_eq!(codes, (1..=12).map(|code| -code).collect::<Vec<i64>>());
        let words: std::collections::BTreeSet<String> =
            Refused::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), codes.len(), "each says what it is in words of its own");
    }
}
