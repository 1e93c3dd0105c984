//! The configuration as a file: every parameter in it counts. Clause: MEM-3.

use bem_machine::config::GenesisConfig;

/// Other values for a parameter, some of which must be allowed; `about` is the line that says what is.
fn other_values(value: &str, about: &str) -> Vec<String> {
    if value.starts_with('"') {
        let words = about.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        return words.map(|word| format!("{word:?}")).collect();
    }
    if let Some(list) = value.strip_prefix('[') {
        return vec![format!("[{}", list.replace("48.0", "49.0"))];
    }
    if value.contains('.') {
        return ["0.0", "0.125", "0.75", "1.0", "2.0", "20.0", "-0.5", "-4.0"].map(str::to_string).into();
    }
    let number: i64 = value.parse().expect("a whole number");
    [number / 2, number * 2, number - 1, number + 1, number + 256].map(|other| other.to_string()).into()
}

#[test]
fn changing_any_parameter_in_the_file_changes_the_digest() {
    let text = GenesisConfig::default().to_toml();
    let lines: Vec<&str> = text.lines().collect();
    let mut seen = Vec::new();
    for (place, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let Some((name, value)) = line.split_once(" = ") else { continue };
        let with = |other: String| {
            let mut changed = lines.clone();
            let line = format!("{name} = {other}");
            changed[place] = &line;
            GenesisConfig::from_toml(&changed.join("\n")).ok()
        };
        let others = other_values(value, lines[place - 1]).into_iter().filter(|other| other != value);
        let changed = others.filter_map(with).next();
        let changed = changed.unwrap_or_else(|| panic!("no other value of {name} is allowed"));
        assert_ne!(changed.digest(), GenesisConfig::default().digest(), "{name}");
        assert_ne!(changed.words(), GenesisConfig::default().words(), "{name}");
        seen.push(name);
    }
    assert_eq!(seen, GenesisConfig::NAMES);
}
