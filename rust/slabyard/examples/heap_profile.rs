//! A server that hands out its heap profile by HTTP: `GET /heap` is a file for `go tool pprof` and other
//! viewers.
//!
//!     go tool pprof -symbolize=local -sample_index=inuse_space SERVER http://localhost:6060/heap
//!
//! The program asks its own server once, and checks that the answer is a profile.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use slabyard::profile;

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

/// Answers one request.
fn answer(mut client: TcpStream) -> Result<()> {
    let mut request = String::new();
    BufReader::new(&client).read_line(&mut request)?;
    if !request.starts_with("GET /heap ") {
        return client.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    }
    client.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")?;
    client.write_all(b"Content-Type: application/octet-stream\r\n\r\n")?;
    send_profile(client)
}

#[cfg(not(windows))]
fn send_profile(client: TcpStream) -> Result<()> {
    profile::write(client)
}

/// On Windows a socket is no file.
#[cfg(windows)]
fn send_profile(mut client: TcpStream) -> Result<()> {
    let path = std::env::temp_dir().join(format!("{}.pb", std::process::id()));
    profile::write(std::fs::File::create(&path)?)?;
    client.write_all(&std::fs::read(&path)?)?;
    std::fs::remove_file(path)
}

fn serve(listener: &TcpListener) {
    for client in listener.incoming().flatten() {
        if let Err(error) = answer(client) {
            eprintln!("a profile was not sent: {error}");
        }
    }
}

/// The status and the content of the server's answer.
fn ask(server: SocketAddr, path: &str) -> Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n")?;
    let mut reader = BufReader::new(stream);
    let (mut status, mut line) = (String::new(), String::new());
    reader.read_line(&mut status)?;
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let mut content = Vec::new();
    reader.read_to_end(&mut content)?;
    Ok((status, content))
}

pub fn main() -> Result<()> {
    profile::start(64 << 10)?;
    let kept: Vec<String> = (0..100_000).map(|n| format!("object number {n}")).collect();
    let listener = TcpListener::bind("127.0.0.1:0")?; // a server has a port of its own
    let server = listener.local_addr()?;
    std::thread::spawn(move || serve(&listener));

    let (status, content) = ask(server, "/heap")?;
    assert!(status.starts_with("HTTP/1.1 200"));
    assert!(content.windows(11).any(|bytes| bytes == b"inuse_space"));
    println!("a profile of {} KiB", content.len().div_ceil(1024));
    assert!(ask(server, "/")?.0.starts_with("HTTP/1.1 404"));
    drop(kept);
    profile::stop()
}
