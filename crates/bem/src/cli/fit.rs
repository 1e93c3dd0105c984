//! Text for a terminal of 80 columns. It knows nothing of what is said, nor whether a terminal is there. Clauses: LOG-4.

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

/// A line in as many as it needs; those after the first are indented. Its own indent stays.
pub fn hanging(line: &str, indent: usize) -> Vec<String> {
    if line.chars().count() <= WIDTH {
        return vec![line.to_string()];
    }
    let own = line.len() - line.trim_start().len();
    let parts = wrapped(&line[own..], WIDTH - own.max(indent));
    let indented = |(place, part): (usize, String)| match place {
        0 => format!("{}{part}", &line[..own]),
        _ => format!("{}{part}", " ".repeat(own.max(indent))),
    };
    parts.into_iter().enumerate().map(indented).collect()
}

/// A message of one line or several in lines that fit; what goes on from the line before is indented.
pub fn message(text: &str) -> String {
    const INDENT: usize = 5;
    text.lines().flat_map(|line| hanging(line, INDENT)).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdef g", 4), ["abcdef", "g"]);
        assert_eq!(wrapped("", 4), [""]);
        let long = format!("  {} {}", "a".repeat(50), "b".repeat(40));
        let lines = hanging(&long, 6);
        assert_eq!(lines, [format!("  {}", "a".repeat(50)), format!("      {}", "b".repeat(40))]);
    }
}
