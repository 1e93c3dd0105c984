//! Words, names and operands of a line; nothing here knows what they mean.

use crate::instruction::Opcode;

pub(super) fn without_comment(line: &str) -> &str {
    line.split(';').next().unwrap_or_default()
}

pub(super) fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

pub(super) fn operands(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() }
}

pub(super) fn opcode(word: &str) -> Option<Opcode> {
    Opcode::ALL.iter().copied().find(|opcode| opcode.mnemonic() == word)
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@';
    let fine = !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(letter);
    if fine {
        Ok(())
    } else {
        Err(format!("{name:?} is no name: letters, digits and _ only, no digit first"))
    }
}

/// Replaces a name where it stands alone.
pub(super) fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut result = String::new();
    let mut word = String::new();
    for letter in text.chars().chain(core::iter::once('\n')) {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
        } else {
            result.push_str(if word == from { to } else { &word });
            word.clear();
            result.push(letter);
        }
    }
    result.pop();
    result
}
