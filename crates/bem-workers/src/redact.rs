//! What lies in sensitive files stays out of questions to language models.
//!
//! A model is somebody else's program. Before a question goes out, and before it is written into a history, whatever it has in
//! common with a sensitive file of the catalog is replaced by the file's name: the whole contents, every line, and every value
//! behind an equals sign or a colon, if they are long enough to tell anything. Clauses: TOOL-8; decisions D-30, D-137.

use crate::catalog_file::{CatalogFile, Place};
use bem_base::ids::ObjectId;
use bem_tools::cbor::Item;
use bem_tools::operation::Role;
use std::borrow::Cow;

/// Bytes of a sensitive file that are looked at.
const FILE_MAX: u64 = 1 << 20;
/// Shorter pieces say nothing that could be told from chance.
const PIECE_MIN: usize = 6;

/// The question as it may go out; the same bytes where there is nothing to hide or the kind is no model.
pub fn question<'p>(file: &CatalogFile, kind: ObjectId, payload: &'p [u8]) -> Cow<'p, [u8]> {
    if file.catalog.role(kind) != Some(Role::Model) {
        return Cow::Borrowed(payload);
    }
    let secrets = secrets(file);
    let Some(item) = (!secrets.is_empty()).then(|| Item::from_bytes(payload).ok()).flatten() else {
        return Cow::Borrowed(payload);
    };
    Cow::Owned(withheld(&item, &secrets).to_bytes())
}

/// Pieces of sensitive files with the names of these, the longest first.
fn secrets(file: &CatalogFile) -> Vec<(String, String)> {
    let sensitive = file.catalog.files().iter().filter(|node| file.catalog.is_sensitive(node.id));
    let mut pieces = Vec::new();
    for node in sensitive {
        let Some((root, path)) = file.nodes.get(&node.id) else { continue };
        let Some(Place::Folder(folder)) = file.roots.get(*root).map(|root| &root.place) else { continue };
        let path = folder.join(path);
        // A pipe or a device would never end.
        let is_plain =
            std::fs::symlink_metadata(&path).is_ok_and(|known| known.is_file() && known.len() <= FILE_MAX);
        let Some(bytes) = is_plain.then(|| std::fs::read(&path).ok()).flatten() else { continue };
        let name = file.catalog.name_of(node.id).unwrap_or("a file");
        let text = String::from_utf8_lossy(&bytes);
        for piece in pieces_of(&text).filter(|piece| PIECE_MIN <= piece.len()) {
            pieces.push((piece.to_string(), format!("[{name} withheld]")));
        }
    }
    pieces.sort_by(|one, other| other.0.len().cmp(&one.0.len()).then_with(|| one.cmp(other)));
    pieces.dedup();
    pieces
}

fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    let values = text.lines().filter_map(|line| line.split_once(['=', ':']));
    let values = values.map(|(_, value)| value.trim().trim_matches(['"', '\'', ',', ';']));
    core::iter::once(text.trim()).chain(lines).chain(values)
}

fn withheld(item: &Item, secrets: &[(String, String)]) -> Item {
    match item {
        Item::Text(text) => {
            let hide = |text: String, (piece, name): &(String, String)| text.replace(piece.as_str(), name);
            Item::Text(secrets.iter().fold(text.clone(), hide))
        }
        Item::List(items) => Item::List(items.iter().map(|item| withheld(item, secrets)).collect()),
        Item::Map(fields) => {
            Item::Map(fields.iter().map(|(key, item)| (key.clone(), withheld(item, secrets))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_sensitive_files_leave_their_names_behind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("config")).unwrap();
        std::fs::write(folder.path().join("config/open.txt"), "colour=purple\n").unwrap();
        std::fs::write(folder.path().join("config/secret.txt"), "user = anna\npassword = \"CANARY-7291\"\n")
            .unwrap();
        std::fs::write(folder.path().join("config/note.txt"), "short\nthe vault opens at dawn\n").unwrap();
        let text = "[[root]]\nname = \"config\"\npath = \"config\"\n\
            [[file]]\nroot = \"config\"\npath = \"secret.txt\"\nflags = [\"sensitive\"]\n\
            [[file]]\nroot = \"config\"\npath = \"note.txt\"\nflags = [\"sensitive\"]\n\
            [[model]]\nname = \"m\"\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"tiny\"\n";
        let file = CatalogFile::parse("c", text.to_string(), folder.path().to_path_buf(), None).unwrap();
        let asked = |text: &str| {
            let said = Item::List(vec![Item::Text("user".into()), Item::Text(text.into())]);
            Item::fields([(0, Item::List(vec![said])), (1, Item::Int(5))]).to_bytes()
        };
        let model = file.catalog.find("llm").unwrap();
        let shown = |text: &str| {
            let payload = asked(text);
            let out = Item::from_bytes(&question(&file, model, &payload)).unwrap();
            let said =
                out.field(0).unwrap().list().unwrap()[0].list().unwrap()[1].text().unwrap().to_string();
            assert_eq!(out.field(1), Some(&Item::Int(5)));
            said
        };
        assert_eq!(shown("is CANARY-7291 safe?"), "is [config/secret.txt withheld] safe?");
        assert_eq!(shown("password = \"CANARY-7291\""), "[config/secret.txt withheld]");
        assert_eq!(shown("x the vault opens at dawn x"), "x [config/note.txt withheld] x");
        assert_eq!(shown("purple and short and anna"), "purple and short and anna");
        // Other kinds are left alone.
        let other = file.catalog.find("fs").unwrap();
        assert_eq!(question(&file, other, &asked("CANARY-7291")), asked("CANARY-7291"));
        assert_eq!(question(&file, model, b"\xff no CBOR"), &b"\xff no CBOR"[..]);
    }
}
