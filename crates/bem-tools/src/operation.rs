//! The kinds of tools and what each can do: numbers, names, fields of payloads, and whether a repetition is harmless.
//!
//! An operation is idempotent if doing it twice is the same as doing it once: it is tried again after a worker was lost. One
//! that is not ends with OUTCOME_UNKNOWN instead. Users' tools declare theirs in the catalog. Numbers are never used twice.
//! Clauses: TOOL-4, TOOL-6, TOOL-8, TOOL-9, TOOL-11, HUM-2.

use bem_base::ids::ObjectClass;

/// What a kind of tool is for: the bit of `role_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// TOOL_FS.
    Files = 0,
    /// TOOL_DB.
    Database = 1,
    /// TOOL_PROVER.
    Prover = 2,
    /// TOOL_LLM.
    Model = 3,
    /// TOOL_ENV.
    Environment = 4,
    /// A user's own.
    Custom = 5,
    /// TOOL_HINL: questions to people.
    #[doc(alias = "TOOL_HINL")]
    People = 6,
}

impl Role {
    /// The roles that every catalog has, in order of their places in TOOL_KIND.
    pub const BUILT_IN: [Role; 6] =
        [Role::Files, Role::Database, Role::Prover, Role::Model, Role::Environment, Role::People];

    /// The bit in `role_flags`.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// The name of the kind; users' kinds have names of their own.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Files => "fs",
            Role::Database => "db",
            Role::Prover => "prover",
            Role::Model => "llm",
            Role::Environment => "env",
            Role::Custom => "custom",
            Role::People => "people",
        }
    }

    /// The class of resources that it works on; none where every resource will do.
    pub const fn resource(self) -> Option<ObjectClass> {
        match self {
            Role::Files => Some(ObjectClass::FsNode),
            Role::Database => Some(ObjectClass::DbConn),
            Role::Environment => Some(ObjectClass::EnvTask),
            Role::Prover | Role::Model | Role::Custom | Role::People => None,
        }
    }
}

/// A field of a payload: its key and its name.
pub type Field = (u64, &'static str);

/// One operation of a built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Whose it is.
    pub role: Role,
    /// Its number.
    pub code: u16,
    /// Its name.
    pub name: &'static str,
    /// Whether a repetition is harmless.
    pub idempotent: bool,
    /// Whether it changes what the resource stands for.
    pub writes: bool,
    /// Fields of the request.
    pub request: &'static [Field],
    /// Fields of the response.
    pub response: &'static [Field],
}

/// Flags of a filesystem request.
pub mod fs_flag {
    /// A read may give fewer bytes than asked for.
    pub const PARTIAL: u16 = 1;
    /// A write goes to the end.
    pub const APPEND: u16 = 2;
}

/// Flags of a database request.
pub mod db_flag {
    /// The statement is one transaction, which the idempotence key makes happen once.
    pub const TRANSACTIONAL: u16 = 1;
    /// The statement must not write.
    pub const READ_ONLY: u16 = 2;
}

/// Every operation of the built-in tools.
pub const OPERATIONS: &[Operation] = &[
    read(Role::Files, 0, "stat", &[], &[(0, "size"), (1, "mtime"), (2, "kind"), (3, "flags")]),
    read(Role::Files, 1, "read", &[(0, "offset"), (1, "length")], &[(0, "data"), (1, "size")]),
    write(Role::Files, 2, "write", true, &[(0, "offset"), (1, "data")], &[(0, "written")]),
    read(
        Role::Files,
        3,
        "list",
        &[(0, "recursive"), (1, "pattern"), (2, "limit")],
        &[(0, "entries"), (1, "truncated")],
    ),
    write(Role::Database, 0, "query", false, QUERY, ROWS),
    read(Role::Database, 1, "prepare", &[(0, "text")], &[(0, "prepared"), (1, "parameters"), (2, "columns")]),
    read(Role::Database, 2, "fetch", &[(0, "result"), (1, "offset"), (2, "limit")], ROWS),
    read(Role::Database, 3, "meta", &[], &[(0, "tables")]),
    read(
        Role::Prover,
        0,
        "unsat",
        &[(0, "dimacs"), (1, "conflicts")],
        &[(0, "verdict"), (1, "proof"), (2, "model")],
    ),
    write(
        Role::Model,
        0,
        "chat",
        true,
        &[(0, "messages"), (1, "tokens"), (2, "seed")],
        &[(0, "text"), (1, "tokens"), (2, "model"), (3, "attempts")],
    ),
    write(Role::Environment, 0, "open", false, &[], &[(0, "line")]),
    write(Role::Environment, 1, "say", false, &[(0, "line")], &[(0, "line")]),
    write(Role::People, 0, "enqueue_task", false, TASK, &[(0, "question"), (1, "id"), (2, "questions")]),
    write(
        Role::People,
        1,
        "notify",
        true,
        &[(0, "question"), (1, "reason")],
        &[(0, "question"), (1, "open")],
    ),
    read(
        Role::People,
        2,
        "query_tasks",
        &[(0, "state"), (1, "after"), (2, "limit")],
        &[(0, "questions"), (1, "open"), (2, "after")],
    ),
];

/// HINL_ENQUEUE_REQ: the context is drawn up by whoever keeps the questions.
const TASK: &[Field] = &[
    (0, "kind"),
    (1, "world"),
    (2, "decision"),
    (3, "worlds"),
    (4, "priority"),
    (5, "deadline"),
    (6, "quorum"),
    (7, "reason"),
];
const QUERY: &[Field] = &[
    (0, "text"),
    (1, "prepared"),
    (2, "operation"),
    (3, "parameters"),
    (4, "limit"),
    (5, "columns"),
    (6, "offset"),
];
const ROWS: &[Field] = &[
    (0, "columns"),
    (1, "rows"),
    (2, "count"),
    (3, "changed"),
    (4, "micros"),
    (5, "steps"),
    (6, "result"),
    (7, "truncated"),
];

const fn read(
    role: Role,
    code: u16,
    name: &'static str,
    request: &'static [Field],
    response: &'static [Field],
) -> Operation {
    Operation { role, code, name, idempotent: true, writes: false, request, response }
}

const fn write(
    role: Role,
    code: u16,
    name: &'static str,
    idempotent: bool,
    request: &'static [Field],
    response: &'static [Field],
) -> Operation {
    Operation { role, code, name, idempotent, writes: true, request, response }
}

/// The operation of this number.
pub fn by_code(role: Role, code: u16) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.role == role && operation.code == code)
}

/// The operation of this name.
pub fn by_name(role: Role, name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.role == role && operation.name == name)
}

/// The names of a tool's operations.
pub fn names(role: Role) -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().filter(move |operation| operation.role == role).map(|operation| operation.name)
}

/// Whether a request with these flags may be tried again after a worker was lost.
pub fn is_idempotent(role: Role, code: u16, flags: u16) -> bool {
    match (role, code) {
        (Role::Files, 2) => flags & fs_flag::APPEND == 0,
        // A transaction writes down its key: the second time finds it. What only reads is harmless.
        (Role::Database, 0) => flags & (db_flag::TRANSACTIONAL | db_flag::READ_ONLY) != 0,
        _ => by_code(role, code).is_some_and(|operation| operation.idempotent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_used_once() {
        for (place, one) in OPERATIONS.iter().enumerate() {
            for other in &OPERATIONS[place + 1..] {
                assert!(one.role != other.role || (one.code != other.code && one.name != other.name));
            }
            assert_eq!(by_code(one.role, one.code), Some(one));
            assert_eq!(by_name(one.role, one.name), Some(one));
        }
        assert_eq!(names(Role::Files).collect::<Vec<_>>(), ["stat", "read", "write", "list"]);
    }

    #[test]
    fn what_may_be_tried_again_is_said_by_operation_and_flags() {
        assert!(is_idempotent(Role::Files, 2, 0));
        assert!(!is_idempotent(Role::Files, 2, fs_flag::APPEND));
        assert!(!is_idempotent(Role::Database, 0, 0));
        assert!(is_idempotent(Role::Database, 0, db_flag::TRANSACTIONAL));
        assert!(!is_idempotent(Role::Environment, 1, 0));
        assert!(!is_idempotent(Role::Files, 99, 0));
    }
}
