//! Catalogs that are wrong, and what is found in roots.

use super::*;

fn parse(text: &str) -> Result<CatalogFile> {
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir(base.path().join("data")).unwrap();
    std::fs::write(base.path().join("data/a.txt"), "a").unwrap();
    std::fs::write(base.path().join("stock.db"), "").unwrap();
    CatalogFile::parse("c.toml", text.to_string(), base.path().to_path_buf(), None)
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_is_allowed() {
    let check = |text: &str, words: &str| {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with("c.toml:") && error.contains(words), "{error}");
    };
    check("x = 1", "c.toml:1: unknown field");
    check("\n[[root]]\nname = \"d\"\npath = \"nowhere\"", "c.toml:4: path");
    check("[[root]]\nname = \"d\"", "c.toml:2: root \"d\" needs one of");
    check(
        "[[root]]\nname = \"d\"\nmemory = true\nflags = [\"readonly\"]",
        "c.toml:4: flag \"readonly\" is unknown",
    );
    check("[[root]]\nname = \"d\"\nmemory = true\nalias = \"ROOT\"", "c.toml:4: alias");
    check("[[root]]\nname = \"d\"\nmemory = true\nalias = 9", "alias 9 is out of range");
    check("[[file]]\nroot = \"d\"\npath = \"x\"", "c.toml:2: root \"d\" is unknown");
    check(
        "[[root]]\nname = \"d\"\nmemory = true\n[[file]]\nroot = \"d\"\npath = \"../x\"",
        "c.toml:6: path \"../x\"",
    );
    check("[[root]]\nname = \"d\"\nmemory = true\n[[file]]\nroot = \"d\"\npath = \"/x\"", "is not allowed");
    check("[[database]]\nname = \"s\"", "needs one of sqlite = ");
    check(
        "[[database]]\nname = \"s\"\nsqlite = \"stock.db\"\nsteps_max = 0",
        "steps_max 0 is out of range: 1 to",
    );
    check(
        "[[root]]\nname = \"d\"\nmemory = true\n[[root]]\nname = \"d\"\nmemory = true",
        "c.toml:5: name \"d\" is used twice",
    );
    check("[[tool]]\nname = \"t\"", "needs operations");
    check("[[model]]\nname = \"m\"\nurl = \"ftp://x\"\nmodel = \"x\"", "c.toml:3: url");
    check("version = \"9\"", "c.toml:1: version \"9\" is not served");
}

#[test]
fn folders_are_looked_through_and_found_again_elsewhere() {
    let text = "[[root]]\nname = \"d\"\npath = \"data\"\nalias = \"DATA_ROOT\"\n[[database]]\nname = \"s\"\nsqlite = \"stock.db\"";
    let file = parse(text).unwrap();
    let node = file.catalog.find("d/a.txt").unwrap();
    assert_eq!(file.nodes[&node], (0, PathBuf::from("a.txt")));
    assert_eq!(file.catalog.alias(0), file.catalog.find("d"));
    assert_eq!(file.found, [Found { root: 0, path: "a.txt".to_string(), kind: 0 }]);
}
