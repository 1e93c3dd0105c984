//! A small HTTP client for servers on this machine or behind its proxy: one request, one bounded answer.
//!
//! Plain HTTP/1.1 with a length or chunks; no redirects, no TLS. Messages never hold headers, so that no credential reaches
//! them. Clauses: TOOL-8, TOOL-11.

use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Lines of a head at most.
const HEADERS_MAX: usize = 128;
/// Bytes of one line of a head.
const HEADER_MAX: u64 = 16_384;

/// What is asked.
pub struct Ask<'a> {
    /// GET or POST.
    pub method: &'a str,
    /// `http://HOST[:PORT]/PATH`.
    pub url: &'a str,
    /// The bearer token, if one is needed.
    pub bearer: Option<&'a str>,
    /// Headers beside those that every request has.
    pub headers: &'a [(&'a str, &'a str)],
    /// The JSON body, if there is one.
    pub body: Option<&'a str>,
    /// Bytes of the answer at most.
    pub answer_max: usize,
    /// How long it may take.
    pub timeout: Duration,
}

/// Host with port, and path.
fn split(url: &str) -> Result<(String, String)> {
    let rest = url.strip_prefix("http://").ok_or_else(|| anyhow!("url {url:?} must begin with http://"))?;
    let (host, path) =
        rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, path.to_string()));
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    if host.is_empty() || !host.chars().all(is_host) || path.contains(char::is_whitespace) {
        bail!("url {url:?} is not allowed: http://HOST:PORT/PATH");
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { host.to_string() } else { format!("{host}:80") };
    Ok((host, format!("/{path}")))
}

/// Whether an address can be asked.
pub fn check(url: &str) -> Result<()> {
    split(url).map(drop)
}

/// Asks: the status, and the body as text.
pub fn ask(asked: &Ask<'_>) -> Result<(u16, String)> {
    let (host, path) = split(asked.url)?;
    let address = host.to_socket_addrs().with_context(|| host.clone())?.next();
    let address = address.ok_or_else(|| anyhow!("{host} has no address"))?;
    let stream = TcpStream::connect_timeout(&address, asked.timeout).with_context(|| host.clone())?;
    stream.set_read_timeout(Some(asked.timeout))?;
    stream.set_write_timeout(Some(asked.timeout))?;
    let mut head = format!("{} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", asked.method);
    if let Some(bearer) = asked.bearer {
        if bearer.contains(['\r', '\n']) {
            bail!("the token must be one line");
        }
        head.push_str(&format!("Authorization: Bearer {bearer}\r\n"));
    }
    for (name, value) in asked.headers {
        if name.contains(['\r', '\n', ':']) || value.contains(['\r', '\n']) {
            bail!("a header must be one line");
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = asked.body.unwrap_or_default();
    if asked.body.is_some() {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    (&stream)
        .write_all(head.as_bytes())
        .and_then(|()| (&stream).write_all(body.as_bytes()))
        .with_context(|| host.clone())?;
    read(BufReader::new(stream), asked.answer_max).with_context(|| host.clone())
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut bytes = Vec::new();
    reader.take(HEADER_MAX).read_until(b'\n', &mut bytes)?;
    if !bytes.ends_with(b"\n") {
        bail!("the answer is cut off or has too long a line");
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_string())
}

fn read(mut reader: impl BufRead, answer_max: usize) -> Result<(u16, String)> {
    let first = line(&mut reader)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| anyhow!("the answer is no HTTP"))?;
    let (mut length, mut is_chunked) = (None, false);
    for place in 0.. {
        let header = line(&mut reader)?;
        if header.is_empty() {
            break;
        }
        if HEADERS_MAX <= place {
            bail!("the answer has too many headers");
        }
        if let Some((name, value)) = header.split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    length = Some(value.trim().parse::<usize>().context("a length that is no number")?)
                }
                "transfer-encoding" => is_chunked = value.to_ascii_lowercase().contains("chunked"),
                _ => {}
            }
        }
    }
    let mut body = Vec::new();
    let too_long = || anyhow!("the answer has more than {answer_max} bytes");
    if is_chunked {
        loop {
            let size = line(&mut reader)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).context("a chunk without a size")?;
            if answer_max < body.len() + size {
                return Err(too_long());
            }
            if size == 0 {
                break;
            }
            let before = body.len();
            (&mut reader).take(size as u64).read_to_end(&mut body)?;
            if body.len() != before + size {
                bail!("the answer is cut off");
            }
            line(&mut reader)?;
        }
    } else {
        if length.is_some_and(|length| answer_max < length) {
            return Err(too_long());
        }
        (&mut reader).take(length.unwrap_or(answer_max + 1) as u64).read_to_end(&mut body)?;
        if answer_max < body.len() {
            return Err(too_long());
        }
        if length.is_some_and(|length| body.len() < length) {
            bail!("the answer is cut off");
        }
    }
    let text = String::from_utf8(body).map_err(|_| anyhow!("the answer is no text"))?;
    Ok((status, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, max: usize) -> Result<(u16, String)> {
        read(text.as_bytes(), max)
    }

    #[test]
    fn lengths_and_chunks_are_read_and_bounded() {
        assert_eq!(
            parsed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 9).unwrap(),
            (200, "hi".to_string())
        );
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n";
        assert_eq!(parsed(chunked, 9).unwrap(), (200, "hi yo".to_string()));
        assert!(parsed(chunked, 4).unwrap_err().to_string().contains("more than 4 bytes"));
        assert!(parsed("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi", 9).is_err());
        assert!(
            parsed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", 9)
                .unwrap_err()
                .to_string()
                .contains("cut off")
        );
        assert!(parsed("hello\r\n\r\n", 9).unwrap_err().to_string().contains("no HTTP"));
        assert!(parsed(&"x".repeat(40_000), 9).is_err());
        assert_eq!(split("http://localhost/v1").unwrap(), ("localhost:80".to_string(), "/v1".to_string()));
        assert!(split("https://a/").is_err() && split("http://a b/").is_err());
    }
}
