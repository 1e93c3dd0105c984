//! Text for a terminal of 80 columns.

/// Columns that output may take.
pub const WIDTH: usize = 80;

/// Lines of at most so many letters, broken between words; a word that is longer stands alone.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let letters = word.chars().count();
        let last = lines.last_mut().expect("there is always a line");
        let used = last.chars().count();
        if 0 < used && width < used + 1 + letters {
            lines.push(word.to_string());
        } else {
            if 0 < used {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdef g", 4), ["abcdef", "g"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
