//! The pipeline that works beside a service, for programs: how its domains stand, and one more of them.
//!
//! What a pipeline is, is for whoever started it to say: this is the door to it. Clauses: PIPE-1, PIPE-2; decision D-238.

use crate::api::Fields;
use crate::http::{App, Failure, Registered, route};
use crate::tokens::Role;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use std::sync::Arc;

/// Why a domain is not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainRefusal {
    /// There is no such domain; the words say which there are.
    Unknown(String),
    /// It is there already.
    Known(String),
    /// It could not be written down.
    Failed(String),
}

/// A pipeline as the service sees it.
pub trait DomainDesk: Send + Sync {
    /// How it stands.
    fn show(&self) -> Value;
    /// Names a domain that is to be learned; durable when it returns.
    fn take_in(&self, name: &str) -> Result<Value, DomainRefusal>;
}

/// See [`DomainDesk`].
#[derive(Clone)]
pub struct Domains(pub Arc<dyn DomainDesk>);

impl std::fmt::Debug for Domains {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Domains")
    }
}

/// The routes, with the roles that they need.
pub fn routes() -> Vec<Registered> {
    vec![
        route(Method::GET, "/v1/domains", Some(Role::Viewer), get(show)),
        route(Method::POST, "/v1/domains", Some(Role::Admin), post(take_in)),
    ]
}

fn desk(app: &App) -> Result<Domains, Failure> {
    let message = "this server runs no pipeline: start it with --pipeline N";
    app.domains.clone().ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, "no_pipeline", message))
}

#[utoipa::path(get, path = "/v1/domains", responses((status = 200, description = "Phase, domains with their scores, units and steps"),
    (status = 404, description = "No pipeline works beside this server")))]
pub(crate) async fn show(State(app): State<App>) -> Result<Json<Value>, Failure> {
    Ok(Json(desk(&app)?.0.show()))
}

#[utoipa::path(post, path = "/v1/domains", responses((status = 202, description = "The domain comes in with the next round"),
    (status = 400, description = "There is no such domain"), (status = 404, description = "No pipeline works beside this server"),
    (status = 409, description = "It is there already")))]
pub(crate) async fn take_in(
    State(app): State<App>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Failure> {
    let mut fields = Fields::read(&body)?;
    let desk = desk(&app)?;
    let name = Fields::must("name", fields.text("name")?)?;
    fields.finish("name is")?;
    let taken = tokio::task::spawn_blocking(move || desk.0.take_in(&name)).await;
    let failed = |words: String| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "not_kept", words);
    match taken {
        Ok(Ok(shown)) => Ok((StatusCode::ACCEPTED, Json(shown))),
        Ok(Err(DomainRefusal::Unknown(words))) => Err(Failure::bad("name", words)),
        Ok(Err(DomainRefusal::Known(words))) => {
            Err(Failure::new(StatusCode::CONFLICT, "known", words).about("name"))
        }
        Ok(Err(DomainRefusal::Failed(words))) => Err(failed(words)),
        Err(_) => Err(failed("the domain could not be taken in".to_string())),
    }
}
