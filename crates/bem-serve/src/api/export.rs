//! The policy in force of a world as a program or a circuit that runs elsewhere: `GET /v1/worlds/NAME/export`.
//!
//! What is handed out says where it comes from: world, head of the history, what was measured, and what to look out for. A program has its
//! self-test, the vectors and the rows of it as parts. Clauses: GLE-9; decisions D-191, D-256.

use super::{ErrorBody, Paging, shown};
use crate::http::{App, Failure};
use crate::taken::{TakenPolicy, circuit_bytes};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bem_circuit::formats::Format;
use bem_data::Declared;
use bem_export::{FileNames, Language, Program, VECTORS_DEFAULT};

/// What is handed out of a program.
const PARTS: &str = "program, test, vectors, or rows where features have names";

#[utoipa::path(get, path = "/v1/worlds/{name}/export",
    params(("name" = String, Path),
        ("format" = Option<String>, Query, description = "c (if left out), rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot or net"),
        ("part" = Option<String>, Query, description = "Of a program: program (if left out), test for its self-test, vectors for what that plays, rows for the named values that it plays where features have names; they go into one folder under the names of the header content-disposition")),
    responses((status = 200, description = "The circuit in force, with where it comes from, what was measured and what to look out for"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(super) async fn export(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Paging,
) -> Result<Response, Failure> {
    if let Some(other) = query.keys().find(|key| *key != "format" && *key != "part") {
        let other: String = other.chars().take(64).collect();
        return Err(Failure::bad(other.clone(), format!("{other:?} is no field: format and part are")));
    }
    let head = app.handle.gauges.signed();
    let shown = shown(&app, name).await?;
    let format = query.get("format").map_or("c", String::as_str);
    let part = query.get("part").map(String::as_str);
    let allowed = "c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot or net";
    let unknown = || Failure::bad("format", format!("format is unknown: {allowed}"));
    let policy = shown.agent.policy();
    let taken = TakenPolicy {
        spec: &shown.spec,
        statistics: &shown.statistics,
        agent: &shown.agent,
        words: &shown.words,
        head,
    };
    let lines = taken.lines();
    let named = |file: &str| (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\""));
    if let Some(language) = Language::from_name(format) {
        let encoder = Declared::encoder_of(&shown.spec.note).ok();
        let program = Program {
            policy,
            observation_bits: usize::from(shown.spec.shape.observation_bits),
            horizon: Some(shown.spec.shape.horizon),
            name: "policy",
            provenance: &lines,
            encoder: encoder.as_ref(),
        };
        let files = FileNames::of(language, &format!("policy.{}", language.extension()));
        let (file, text) = match part {
            None | Some("program") => (&files.program, bem_export::write(language, &program)),
            Some("test") => (&files.test, bem_export::self_test(language, &program, &files)),
            Some("vectors") => (&files.vectors, bem_export::vectors(&program, VECTORS_DEFAULT)),
            Some("rows") if language.takes_names() && encoder.is_some() => {
                (&files.rows, bem_export::rows(&program).unwrap_or_default())
            }
            Some(_) => return Err(Failure::bad("part", format!("part is unknown: {PARTS}"))),
        };
        let plain = (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_string());
        return Ok(([plain, named(file)], text).into_response());
    }
    let form = Format::from_name(format).ok_or_else(unknown)?;
    if part.is_some() {
        return Err(Failure::bad("part", "part has no effect here: only a program has a self-test"));
    }
    let failed =
        |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_model", "the circuit cannot be written");
    let bytes = circuit_bytes(policy, "policy", &lines, form).map_err(failed)?;
    let binary = (header::CONTENT_TYPE, "application/octet-stream".to_string());
    Ok(([binary, named(&format!("policy.{format}"))], bytes).into_response())
}
