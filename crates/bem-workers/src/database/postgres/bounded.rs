//! A connection that reads no more than its budget: a server's answer can be longer than memory.
//!
//! Must not know the protocol that it carries.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Bytes that may still be read.
#[derive(Clone, Default)]
pub struct Budget(Arc<AtomicU64>);

impl Budget {
    /// So many from now on.
    pub fn fill(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// The connection.
pub struct Stream {
    socket: Box<dyn Socket>,
    budget: Budget,
}

impl Stream {
    /// Connects to the first host that the configuration names.
    pub async fn open(config: &Config, budget: Budget) -> Result<Stream> {
        let port = config.get_ports().first().copied().unwrap_or(5_432);
        let socket: Box<dyn Socket> = match config.get_hosts().first() {
            Some(Host::Unix(folder)) => {
                Box::new(UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?)
            }
            Some(Host::Tcp(name)) => Box::new(TcpStream::connect((name.as_str(), port)).await?),
            None => return Err(Error::new(ErrorKind::InvalidInput, "no host")),
        };
        Ok(Stream { socket, budget })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if self.budget.is_spent() {
            return Poll::Ready(Err(Error::other("more bytes than are read")));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, into);
        let bytes = (into.filled().len() - before) as u64;
        let left = self.budget.0.load(Ordering::Relaxed);
        self.budget.0.store(left.saturating_sub(bytes), Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
