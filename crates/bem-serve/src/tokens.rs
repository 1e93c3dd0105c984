//! Who may do what: tokens with roles, kept as hashes, and sessions of browsers, kept in memory.
//!
//! A token is 32 random bytes, so that a plain hash of it is as good as any. Tokens lie in a file beside the ledger that only its
//! owner reads; nothing of them enters the ledger, pages or logs. Must not know routes. Decisions D-30, D-70.

use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash_parts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The file of tokens in a state folder.
pub const TOKENS_NAME: &str = "tokens.json";
/// The version of that file.
const VERSION: u32 = 1;
/// Tokens that a server may have.
const TOKENS_MAX: usize = 1_024;
/// Sessions at once; the oldest gives way.
const SESSIONS_MAX: usize = 256;
/// How long a session lasts.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 3_600);

/// What somebody may do; each may do what those before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look.
    Viewer,
    /// Ask for decisions, say outcomes, answer questions.
    Annotator,
    /// Approve changes.
    Approver,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them, the weakest first.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Annotator, Role::Approver, Role::Admin];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Annotator => "annotator",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// One token, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The hash of it, in hexadecimal.
    pub hash: String,
}

/// The file of tokens.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    version: u32,
    tokens: Vec<Token>,
}

/// The file as it is written now, where it is an older one: a list without a version.
pub fn upgraded(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    match serde_json::from_slice::<Vec<Token>>(bytes) {
        Ok(tokens) => Ok(Some(to_bytes(&tokens)?)),
        Err(_) => parse(bytes).map(|_| None),
    }
}

fn to_bytes(tokens: &[Token]) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&TokenFile { version: VERSION, tokens: tokens.to_vec() })?)
}

fn parse(bytes: &[u8]) -> Result<Vec<Token>> {
    if serde_json::from_slice::<Vec<Token>>(bytes).is_ok() {
        bail!("it is of an older format: bem image migrate --state DIR");
    }
    let file: TokenFile = serde_json::from_slice(bytes).context("it is no list of tokens")?;
    match file.version {
        VERSION => Ok(file.tokens),
        other => bail!("it has version {other}, and this program knows {VERSION}: use a newer bem"),
    }
}

/// The hash under which a token is kept.
pub fn hash_of(token: &str) -> Digest {
    hash_parts("bem/token", &[token.as_bytes()])
}

/// 32 random bytes as text.
pub fn random_text() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("no randomness for a token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The tokens of a state folder, in the order in which they were added.
pub fn read(folder: &Path) -> Result<Vec<Token>> {
    let path = folder.join(TOKENS_NAME);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| path.display().to_string())?,
    };
    refuse_shared(&path)?;
    let tokens = parse(&bytes).with_context(|| path.display().to_string())?;
    if TOKENS_MAX < tokens.len() {
        bail!("{} holds more than {TOKENS_MAX} tokens", path.display());
    }
    Ok(tokens)
}

fn write(folder: &Path, tokens: &[Token]) -> Result<()> {
    let (path, aside) = (folder.join(TOKENS_NAME), folder.join(format!("{TOKENS_NAME}.tmp")));
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let _ = std::fs::remove_file(&aside);
    write_private(&aside, &to_bytes(tokens)?)?;
    std::fs::rename(&aside, &path).with_context(|| path.display().to_string())
}

/// Writes a new file that only its owner reads.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).with_context(|| format!("{} cannot be made", path.display()))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(|| path.display().to_string())
}

/// A secret that others may read is none any more.
pub fn refuse_shared(path: &Path) -> Result<()> {
    let mode = std::fs::metadata(path).with_context(|| path.display().to_string())?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("{} may be read by others (mode {:o}): chmod 600 it", path.display(), mode & 0o777);
    }
    Ok(())
}

/// Adds a token; the token itself, which is shown once.
pub fn add(folder: &Path, name: &str, role: Role) -> Result<String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-@".contains(letter);
    if name.is_empty() || 64 < name.len() || !name.chars().all(is_letter) {
        bail!("a token may not be called {name:?}: 1 to 64 letters, digits, and . _ - @");
    }
    let mut tokens = read(folder)?;
    if tokens.iter().any(|token| token.name == name) {
        bail!("there is a token called {name}: revoke it first, or choose another name");
    }
    if TOKENS_MAX <= tokens.len() {
        bail!("there are {TOKENS_MAX} tokens already: revoke one first");
    }
    let text = random_text()?;
    tokens.push(Token { name: name.to_string(), role, hash: hash_of(&text).to_hex() });
    write(folder, &tokens)?;
    Ok(text)
}

/// Takes a token back; false if there is none of this name.
pub fn revoke(folder: &Path, name: &str) -> Result<bool> {
    let mut tokens = read(folder)?;
    let count = tokens.len();
    tokens.retain(|token| token.name != name);
    if tokens.len() == count {
        return Ok(false);
    }
    write(folder, &tokens)?;
    Ok(true)
}

/// The admin's token in a file of its own: read, or made if it is not there. Whether it was made.
pub fn admin_token(path: &Path) -> Result<(String, bool)> {
    if !path.exists() {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let text = random_text()?;
        write_private(path, format!("{text}\n").as_bytes())?;
        return Ok((text, true));
    }
    refuse_shared(path)?;
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = text.trim().to_string();
    if text.len() < 32 || 256 < text.len() || !text.chars().all(|letter| letter.is_ascii_graphic()) {
        bail!("{} holds no token: one line of 32 to 256 letters is needed", path.display());
    }
    Ok((text, false))
}

/// A session of a browser.
#[derive(Clone, Debug)]
struct Session {
    token: Digest,
    csrf: String,
    ends: Instant,
}

/// Whoever was recognised.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The hash of the token.
    pub token: Digest,
    /// What it allows.
    pub role: Role,
    /// For sessions: what writes must show besides.
    pub csrf: Option<String>,
}

/// Everybody who may come in.
#[derive(Debug)]
pub struct Doorkeeper {
    folder: PathBuf,
    admin: Digest,
    tokens: BTreeMap<Digest, Role>,
    read_at: Option<SystemTime>,
    sessions: BTreeMap<Digest, Session>,
}

impl Doorkeeper {
    /// For a state folder, with the admin's token.
    pub fn new(folder: &Path, admin: &str) -> Result<Doorkeeper> {
        let mut keeper = Doorkeeper {
            folder: folder.to_path_buf(),
            admin: hash_of(admin),
            tokens: BTreeMap::new(),
            read_at: None,
            sessions: BTreeMap::new(),
        };
        keeper.refresh()?;
        Ok(keeper)
    }

    /// Reads the tokens again if their file has changed.
    pub fn refresh(&mut self) -> Result<()> {
        let changed = std::fs::metadata(self.folder.join(TOKENS_NAME)).and_then(|data| data.modified()).ok();
        if changed == self.read_at && !self.tokens.is_empty() {
            return Ok(());
        }
        let mut tokens = BTreeMap::from([(self.admin, Role::Admin)]);
        for token in read(&self.folder)? {
            if let Some(hash) = Digest::from_hex(&token.hash) {
                tokens.insert(hash, token.role);
            }
        }
        (self.tokens, self.read_at) = (tokens, changed);
        // A session ends with its token.
        let Doorkeeper { tokens, sessions, .. } = self;
        sessions.retain(|_, session| tokens.contains_key(&session.token));
        Ok(())
    }

    fn known(&self, token: Digest) -> Option<Caller> {
        Some(Caller { token, role: *self.tokens.get(&token)?, csrf: None })
    }

    /// Who shows the token of this hash. One that was just added is known at once: the file is read again if it has changed.
    pub fn by_token(&mut self, token: Digest) -> Option<Caller> {
        self.known(token).or_else(|| self.refresh().ok().and_then(|()| self.known(token)))
    }

    /// Who shows this session.
    pub fn by_session(&self, session: &str, now: Instant) -> Option<Caller> {
        let session = self.sessions.get(&hash_of(session)).filter(|session| now < session.ends)?;
        let role = *self.tokens.get(&session.token)?;
        Some(Caller { token: session.token, role, csrf: Some(session.csrf.clone()) })
    }

    /// Opens a session for a token: its secret, and what writes must show besides.
    pub fn log_in(&mut self, token: &str, now: Instant) -> Result<Option<(String, String)>> {
        let Some(caller) = self.by_token(hash_of(token)) else { return Ok(None) };
        self.sessions.retain(|_, session| now < session.ends);
        if SESSIONS_MAX <= self.sessions.len() {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.ends).map(|(key, _)| *key);
            oldest.iter().for_each(|key| drop(self.sessions.remove(key)));
        }
        let (secret, csrf) = (random_text()?, random_text()?);
        let session = Session { token: caller.token, csrf: csrf.clone(), ends: now + SESSION_LASTS };
        self.sessions.insert(hash_of(&secret), session);
        Ok(Some((secret, csrf)))
    }

    /// Ends a session.
    pub fn log_out(&mut self, session: &str) {
        self.sessions.remove(&hash_of(session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_kept_as_hashes_and_revoked_ones_do_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let text = add(folder.path(), "ci", Role::Annotator).unwrap();
        let file = std::fs::read_to_string(folder.path().join(TOKENS_NAME)).unwrap();
        assert!(!file.contains(&text) && file.contains("annotator"));
        let error = add(folder.path(), "ci", Role::Viewer).unwrap_err().to_string();
        assert!(error.starts_with("there is a token called ci"), "{error}");
        assert!(add(folder.path(), "<b>", Role::Viewer).is_err());
        let mut keeper = Doorkeeper::new(folder.path(), "admin-admin-admin-admin-admin-admin").unwrap();
        assert_eq!(keeper.by_token(hash_of(&text)).map(|caller| caller.role), Some(Role::Annotator));
        let now = Instant::now();
        let (session, _) = keeper.log_in(&text, now).unwrap().unwrap();
        assert!(keeper.by_session(&session, now).is_some());
        assert!(keeper.by_session(&session, now + SESSION_LASTS).is_none());
        assert!(revoke(folder.path(), "ci").unwrap() && !revoke(folder.path(), "ci").unwrap());
        keeper.read_at = None;
        keeper.refresh().unwrap();
        assert!(keeper.by_token(hash_of(&text)).is_none() && keeper.by_session(&session, now).is_none());
        assert!(keeper.by_token(hash_of("admin-admin-admin-admin-admin-admin")).is_some());
        // One that was added meanwhile logs in at once.
        let late = add(folder.path(), "desk", Role::Viewer).unwrap();
        keeper.read_at = None;
        assert!(keeper.log_in(&late, now).unwrap().is_some());
        assert!(keeper.log_in("guess", now).unwrap().is_none());
    }

    #[test]
    fn the_admins_token_is_made_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("token");
        let (text, is_new) = admin_token(&path).unwrap();
        assert!(is_new && text.len() == 64);
        assert_eq!(admin_token(&path).unwrap(), (text, false));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(admin_token(&path).unwrap_err().to_string().contains("may be read by others"));
    }
}
