//! Tables as text: comma-separated values with a header, or one JSON object a line.
//!
//! Every cell keeps its text, so that decimals stay exact. Sizes are bounded, and an error names the line and the column.
//! Clauses: GLE-9.

use crate::DataError;
use crate::feature::{Object, plain};

/// Rows of a table.
pub const ROWS_MAX: usize = 1_000_000;
/// Columns of a table.
pub const COLUMNS_MAX: usize = 1_024;
/// Bytes of a table.
pub const BYTES_MAX: usize = 1 << 29;

/// A table of text cells. Invariant: every row has as many cells as there are names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The columns' names, all different.
    pub names: Vec<String>,
    /// The rows; an empty cell is an empty text.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The place of a column.
    pub fn column(&self, name: &str) -> Result<usize, DataError> {
        self.names.iter().position(|known| known == name).ok_or_else(|| {
            DataError(format!("there is no column {name:?}; there are {}", self.names.join(", ")))
        })
    }

    /// Reads comma-separated values: the first line names the columns, quotes may hold commas, line ends and `""`.
    pub fn from_csv(text: &str) -> Result<Table, DataError> {
        check_size(text)?;
        let mut records = Csv { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
        let names = records
            .next()
            .ok_or_else(|| DataError::new("the table is empty: line 1 must name the columns"))??
            .1;
        let names: Vec<String> = names.iter().map(|name| name.trim().to_string()).collect();
        check_names(&names)?;
        let mut rows = Vec::new();
        for record in records {
            let (line, cells) = record?;
            if cells.len() == 1 && cells[0].trim().is_empty() {
                continue;
            }
            if cells.len() != names.len() {
                return Err(DataError(format!(
                    "line {line} has {} cells; line 1 names {} columns",
                    cells.len(),
                    names.len()
                )));
            }
            rows.push(cells);
            check_rows(rows.len())?;
        }
        Ok(Table { names, rows })
    }

    /// Reads one JSON object a line; the first one says which names there are.
    pub fn from_jsonl(text: &str) -> Result<Table, DataError> {
        check_size(text)?;
        let mut names: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for (line, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let line = line + 1;
            let object: Object = serde_json::from_str(text).map_err(|error| {
                DataError(format!("line {line}, column {}: not a JSON object", error.column()))
            })?;
            if names.is_empty() {
                names = object.keys().cloned().collect();
                check_names(&names)?;
            }
            if object.len() != names.len() || !object.keys().eq(names.iter()) {
                return Err(DataError(format!(
                    "line {line} must have the names of the first: {}",
                    names.join(", ")
                )));
            }
            rows.push(object.values().map(|raw| plain(raw)).collect());
            check_rows(rows.len())?;
        }
        if rows.is_empty() {
            return Err(DataError::new("the table is empty: one JSON object a line is needed"));
        }
        Ok(Table { names, rows })
    }
}

fn check_size(text: &str) -> Result<(), DataError> {
    if BYTES_MAX < text.len() {
        return Err(DataError(format!(
            "the table has {} bytes; at most {BYTES_MAX} are allowed",
            text.len()
        )));
    }
    Ok(())
}

fn check_rows(count: usize) -> Result<(), DataError> {
    if ROWS_MAX < count {
        return Err(DataError(format!("the table has more than {ROWS_MAX} rows")));
    }
    Ok(())
}

fn check_names(names: &[String]) -> Result<(), DataError> {
    if COLUMNS_MAX < names.len() {
        return Err(DataError(format!(
            "the table has {} columns; at most {COLUMNS_MAX} are allowed",
            names.len()
        )));
    }
    let empty = names.iter().position(String::is_empty);
    if let Some(place) = empty {
        return Err(DataError(format!("column {} has no name", place + 1)));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(DataError(format!("two columns are called {:?}", pair[0])));
    }
    Ok(())
}

/// The records of comma-separated values, each with the line on which it starts.
struct Csv<'t> {
    rest: &'t str,
    line: usize,
}

impl Iterator for Csv<'_> {
    type Item = Result<(usize, Vec<String>), DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = self.line;
        let mut cells = vec![String::new()];
        let (mut quoted, mut end) = (false, self.rest.len());
        let mut signs = self.rest.char_indices().peekable();
        while let Some((place, sign)) = signs.next() {
            let cell = cells.last_mut()?;
            match sign {
                '"' if quoted && signs.peek().is_some_and(|(_, next)| *next == '"') => {
                    cell.push('"');
                    signs.next();
                }
                '"' if quoted => quoted = false,
                '"' if cell.is_empty() => quoted = true,
                '\n' if !quoted => {
                    self.line += 1;
                    end = place + 1;
                    break;
                }
                ',' if !quoted => cells.push(String::new()),
                '\r' if !quoted => {}
                other => {
                    self.line += usize::from(other == '\n');
                    cell.push(other);
                }
            }
        }
        self.rest = &self.rest[end..];
        if quoted {
            self.rest = "";
            return Some(Err(DataError(format!("line {first}: a quote is not closed"))));
        }
        if COLUMNS_MAX < cells.len() {
            return Some(Err(DataError(format!("line {first} has more than {COLUMNS_MAX} cells"))));
        }
        Some(Ok((first, cells)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same_table() {
        let csv = Table::from_csv("a,b\r\n1.50,\"x, \"\"y\"\"\"\n\n2,z\n").unwrap();
        let lines =
            Table::from_jsonl("{\"a\":1.50,\"b\":\"x, \\\"y\\\"\"}\n{\"b\":\"z\",\"a\":2}\n").unwrap();
        assert_eq!(csv, lines);
        assert_eq!(csv.rows[0], ["1.50", "x, \"y\""]);
        assert_eq!(csv.column("c").unwrap_err().to_string(), "there is no column \"c\"; there are a, b");
    }

    #[test]
    fn wrong_tables_name_the_line() {
        for (text, want) in [
            ("", "the table is empty: line 1 must name the columns"),
            ("a,b\n1,2\n3\n", "line 3 has 1 cells; line 1 names 2 columns"),
            ("a,a\n", "two columns are called \"a\""),
            ("a,\n", "column 2 has no name"),
            ("a\n\"1\n2\n", "line 2: a quote is not closed"),
        ] {
            assert_eq!(Table::from_csv(text).unwrap_err().to_string(), want);
        }
        assert!(
            Table::from_jsonl("{\"a\":1}\n{\"b\":1}\n")
                .unwrap_err()
                .to_string()
                .starts_with("line 2 must have")
        );
        assert!(Table::from_jsonl("[1]\n").unwrap_err().to_string().starts_with("line 1, column"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "[a-c,\"\\n\\r{}:0-9]{0,60}|\\PC{0,60}") {
            for read in [Table::from_csv(&text), Table::from_jsonl(&text)].into_iter().flatten() {
                proptest::prop_assert!(read.rows.iter().all(|row| row.len() == read.names.len()));
            }
        }
    }
}
