//! Files through the tool: what is allowed, what is cached, and that nothing leads outside.

use super::*;
use bem_tools::operation::by_name;
use bem_tools::word::AtomicU64;
use bem_tools::worker::Port;
use std::os::unix::fs::symlink;

struct Bench {
    _folder: tempfile::TempDir,
    base: PathBuf,
    catalog: Arc<CatalogFile>,
    files: Files,
}

/// A folder with a secret beside the root.
fn bench(prepare: impl FnOnce(&Path), toml: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("root")).unwrap();
    std::fs::write(base.join("secret"), "SECRET").unwrap();
    std::fs::write(base.join("root/a.txt"), "hello world").unwrap();
    prepare(&base);
    let text = format!("[[root]]\nname = \"r\"\npath = \"root\"\n{toml}");
    let catalog = Arc::new(CatalogFile::parse("c.toml", text, base.clone(), None).unwrap());
    let files = Files::open(Arc::clone(&catalog)).unwrap();
    Bench { _folder: folder, base, catalog, files }
}

impl Bench {
    /// One request through a bus of its own, so that jobs are what workers get.
    fn call(
        &mut self,
        op: &str,
        name: &str,
        fields: Vec<(u64, Item)>,
        flags: u16,
    ) -> Result<Item, ErrorCode> {
        let kind = self.catalog.catalog.find("fs").unwrap();
        let memory: Arc<Vec<AtomicU64>> = Arc::new(bem_tools::layout::private());
        let mut channel = bem_tools::bus::Channel::new(kind, Arc::clone(&memory));
        let payload = if fields.is_empty() { Vec::new() } else { Item::fields(fields).to_bytes() };
        let request = bem_tools::bus::Request {
            operation: by_name(Role::Files, op).unwrap().code,
            flags,
            resource: self.catalog.catalog.find(name).unwrap_or_else(|| panic!("no resource {name}")),
            payload: &payload,
            capacity: 1 << 16,
            number: 1,
            key: bem_tools::bus::key(1, &payload),
            is_idempotent: true,
            lease: 100,
            patience: 0,
        };
        channel.enqueue(&request, 0).unwrap();
        let mut port = Port::open(memory, 1).unwrap();
        assert!(bem_tools::worker::serve_one(&mut port, &mut self.files));
        let mut done = Vec::new();
        channel.poll(1, 1, &mut done);
        match done[0].error {
            Some(code) => Err(code),
            None => Ok(Item::from_bytes(&done[0].response).unwrap()),
        }
    }

    fn read(&mut self, name: &str) -> Result<String, ErrorCode> {
        let item = self.call("read", name, Vec::new(), 0)?;
        Ok(String::from_utf8(item.field(0).unwrap().bytes().unwrap().to_vec()).unwrap())
    }

    fn write(&mut self, name: &str, data: &str, flags: u16) -> Result<Item, ErrorCode> {
        self.call("write", name, vec![(1, Item::Text(data.to_string()))], flags)
    }
}

fn declared(path: &str) -> String {
    format!("[[file]]\nroot = \"r\"\npath = \"{path}\"\n")
}

#[test]
fn files_are_read_written_listed_and_described() {
    let mut bench = bench(|_| {}, &declared("new.txt"));
    assert_eq!(bench.read("r/a.txt").unwrap(), "hello world");
    let part = vec![(0, Item::Int(6)), (1, Item::Int(3))];
    let part = bench.call("read", "r/a.txt", part, 0).unwrap();
    assert_eq!((part.field(0).unwrap().bytes(), part.field(1).unwrap().int()), (Some(&b"wor"[..]), Some(11)));
    let beyond = || vec![(0, Item::Int(6)), (1, Item::Int(30))];
    assert_eq!(bench.call("read", "r/a.txt", beyond(), 0), Err(ErrorCode::TOO_LONG));
    assert!(bench.call("read", "r/a.txt", beyond(), fs_flag::PARTIAL).is_ok());
    assert_eq!(bench.read("r/new.txt"), Err(ErrorCode::NOT_FOUND));
    bench.write("r/new.txt", "one", 0).unwrap();
    bench.write("r/new.txt", " two", fs_flag::APPEND).unwrap();
    bench.call("write", "r/new.txt", vec![(0, Item::Int(0)), (1, Item::Text("O".into()))], 0).unwrap();
    assert_eq!(std::fs::read_to_string(bench.base.join("root/new.txt")).unwrap(), "One two");
    let about = bench.call("stat", "r/new.txt", Vec::new(), 0).unwrap();
    assert_eq!(about.field(0).unwrap().int(), Some(7));
    std::fs::write(bench.base.join("root/later.log"), "").unwrap();
    let listed = bench.call("list", "r", Vec::new(), 0).unwrap();
    let entries = listed.field(0).unwrap().list().unwrap().to_vec();
    assert_eq!(entries.len(), 3);
    let first = entries[0].list().unwrap();
    assert_eq!(first[0].int(), bench.catalog.catalog.find("r/a.txt").map(|id| i64::from(id.to_word())));
    // A child that the catalog does not have is named by its hash.
    assert_eq!(entries[1].list().unwrap()[..2], [Item::Int(0), Item::Int(hash_name("later.log") as i64)]);
    let some = bench.call("list", "r", vec![(1, Item::Text("*.t?t".into())), (2, Item::Int(1))], 0).unwrap();
    assert_eq!((some.field(0).unwrap().list().unwrap().len(), some.field(1)), (1, Some(&Item::Bool(true))));
}

#[test]
fn flags_are_enforced() {
    let flagged = |flag: &str| format!("[[file]]\nroot = \"r\"\npath = \"f.txt\"\nflags = [\"{flag}\"]\n");
    let mut fixed =
        bench(|base| std::fs::write(base.join("root/f.txt"), "x").unwrap(), &flagged("read_only"));
    assert_eq!(fixed.write("r/f.txt", "y", 0), Err(ErrorCode::NOT_ALLOWED));
    let mut log =
        bench(|base| std::fs::write(base.join("root/f.txt"), "x").unwrap(), &flagged("append_only"));
    assert_eq!(log.write("r/f.txt", "y", 0), Err(ErrorCode::NOT_ALLOWED));
    log.write("r/f.txt", "y", fs_flag::APPEND).unwrap();
    assert_eq!(log.read("r/f.txt").unwrap(), "xy");
    assert_eq!(log.write("r", "y", 0), Err(ErrorCode::NOT_ALLOWED), "a root is no file");
    let mut memory =
        bench(|_| {}, "[[root]]\nname = \"m\"\nmemory = true\n[[file]]\nroot = \"m\"\npath = \"x\"\n");
    memory.write("m/x", "kept", 0).unwrap();
    assert_eq!(memory.read("m/x").unwrap(), "kept");
}

#[test]
fn ephemeral_files_are_gone_when_the_next_host_starts_and_others_stay() {
    let toml = "[[file]]\nroot = \"r\"\npath = \"scratch.txt\"\nflags = [\"ephemeral\"]\n";
    let mut bench = bench(|_| {}, toml);
    bench.write("r/scratch.txt", "for now", 0).unwrap();
    assert_eq!(bench.read("r/scratch.txt").unwrap(), "for now");
    let options = crate::host::HostOptions { has_threads: false, ..Default::default() };
    drop(crate::host::Host::start(Arc::clone(&bench.catalog), &options).unwrap());
    assert_eq!(bench.read("r/scratch.txt"), Err(ErrorCode::NOT_FOUND));
    assert_eq!(bench.read("r/a.txt").unwrap(), "hello world");
}

#[test]
fn no_path_leads_outside_its_root() {
    let names = ["link", "inner", "loop", "up/secret", "dir/../../secret", "abs", "hop"];
    let toml: String = ["link", "inner", "loop", "up/secret", "abs", "hop"].map(declared).concat();
    let prepare = |base: &Path| {
        let root = base.join("root");
        symlink("../secret", root.join("link")).unwrap();
        symlink("a.txt", root.join("inner")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(base.join("secret"), root.join("abs")).unwrap();
        symlink("link", root.join("hop")).unwrap();
    };
    let mut bench = bench(prepare, &toml);
    assert_eq!(bench.read("r/inner").unwrap(), "hello world", "a link inside its root is followed");
    for name in ["r/link", "r/loop", "r/up/secret", "r/abs", "r/hop"] {
        let read = bench.read(name);
        assert!(
            matches!(read, Err(ErrorCode::NOT_ALLOWED | ErrorCode::NOT_A_FILE | ErrorCode::INPUT_OUTPUT)),
            "{name}: {read:?}"
        );
        for flags in [0, fs_flag::APPEND] {
            assert!(bench.write(name, "HACKED", flags).is_err(), "{name}");
        }
    }
    assert_eq!(std::fs::read_to_string(bench.base.join("secret")).unwrap(), "SECRET");
    assert!(!is_declared("dir/../../secret") && !is_declared("/etc/passwd") && !is_declared(""), "{names:?}");
}

fn is_declared(path: &str) -> bool {
    crate::catalog_file::is_plain(Path::new(path))
}

#[test]
fn a_link_that_is_swapped_during_the_call_leads_nowhere() {
    let mut bench =
        bench(|base| std::fs::write(base.join("root/swap"), "inside").unwrap(), &declared("swap"));
    let root = bench.base.join("root");
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = {
        let (root, over) = (root.clone(), Arc::clone(&over));
        std::thread::spawn(move || {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = symlink("../secret", root.join("aside"));
                let _ = std::fs::rename(root.join("aside"), root.join("swap"));
                let _ = std::fs::write(root.join("aside"), "inside");
                let _ = std::fs::rename(root.join("aside"), root.join("swap"));
            }
        })
    };
    // `cargo xtask battery bus` asks for more.
    let asked = std::env::var("BEM_BUS_ESCAPES").ok().and_then(|text| text.parse().ok());
    let (mut inside, reads) = (0, asked.unwrap_or(3_000));
    for _ in 0..reads {
        match bench.read("r/swap") {
            Ok(text) => {
                assert_ne!(text, "SECRET", "the path has led outside");
                inside += 1;
            }
            Err(code) => assert_ne!(code, ErrorCode::BAD_RESPONSE),
        }
    }
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    println!("{reads} reads between swaps of file and link: {inside} of the file, the others refused");
    assert!(0 < inside, "some reads find the file");
}

#[test]
fn devices_pipes_and_long_names_are_refused_without_waiting() {
    let long = "n".repeat(120);
    let toml = format!("{}{}{}{}", declared("pipe"), declared("folder"), declared("zero"), declared(&long));
    let prepare = |base: &Path| {
        let path = base.join("root/pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        std::fs::create_dir(base.join("root/folder")).unwrap();
        // Whoever may make a device makes one; for others it is one more folder.
        let zero = base.join("root/zero");
        let made = std::process::Command::new("mknod").arg(&zero).args(["c", "1", "5"]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            std::fs::create_dir(zero).unwrap();
        }
    };
    let mut bench = bench(prepare, &toml);
    for name in ["r/pipe", "r/folder", "r/zero"] {
        assert_eq!(bench.read(name), Err(ErrorCode::NOT_A_FILE), "{name}");
        for flags in [0, fs_flag::APPEND] {
            assert_eq!(bench.write(name, "x", flags), Err(ErrorCode::NOT_A_FILE), "{name}");
        }
    }
    assert_eq!(bench.read(&format!("r/{long}")), Err(ErrorCode::NOT_FOUND));
    assert_eq!(bench.call("list", "r/a.txt", Vec::new(), 0), Err(ErrorCode::NOT_A_DIRECTORY));
}

#[test]
fn cached_files_are_read_again_when_they_change_or_are_written() {
    let toml = "[[file]]\nroot = \"r\"\npath = \"c.txt\"\nflags = [\"cacheable\"]\n";
    let mut bench = bench(|base| std::fs::write(base.join("root/c.txt"), "one").unwrap(), toml);
    for _ in 0..3 {
        assert_eq!(bench.read("r/c.txt").unwrap(), "one");
    }
    assert_eq!(bench.files.cache_counts(), (2, 1));
    std::fs::write(bench.base.join("root/c.txt"), "changed").unwrap();
    assert_eq!(bench.read("r/c.txt").unwrap(), "changed");
    bench.write("r/c.txt", "written", 0).unwrap();
    assert_eq!(bench.read("r/c.txt").unwrap(), "written");
    assert_eq!(bench.read("r/a.txt").unwrap(), "hello world");
    assert_eq!(bench.files.cache_counts(), (2, 3), "a file that may not be cached is not");
}
