//! Pipes, files and sockets as stdin and stdout.

use std::{
    io::{self, Read, Write},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::{
    fs::{OFlags, fcntl_getfl},
    pipe::{fcntl_getpipe_size, fcntl_setpipe_size},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::{bytes::Buf, either::Either};

use super::linux::{CAPACITY, output, reopen_to_read};

/// Writes more than `writer` buffers, while the other end is not read for a while.
async fn write_to_a_slow_reader(reader: impl Read + Send + 'static, writer: OwnedFd) {
    let mut output = output(writer);
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        let (mut all, mut reader) = (Vec::new(), reader);
        reader.read_to_end(&mut all).map(|_| all)
    });
    let line: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for part in [&line[..], b"\n", b"short\n"] {
        output.write_all(part).await.expect("the pipe has a reader");
    }
    // In two slices.
    output.write_all_buf(&mut Buf::chain(&line[..], &b"\n"[..])).await.expect("the pipe has a reader");
    output.flush().await.expect("the pipe has a reader");
    drop(output);
    let read = reading.join().expect("the thread ends").expect("the pipe can be read");
    assert!(read == [&line[..], b"\nshort\n", &line, b"\n"].concat());
}

#[tokio::test]
async fn full_pipe_is_waited_for() {
    let (reader, writer) = io::pipe().expect("a pipe");
    write_to_a_slow_reader(reader, writer.into()).await;
}

#[tokio::test]
async fn full_socket_is_waited_for() {
    let (reader, writer) = std::os::unix::net::UnixStream::pair().expect("two sockets");
    assert!(matches!(output(writer.try_clone().expect("a descriptor").into()), Either::Right(_)));
    write_to_a_slow_reader(reader, writer.into()).await;
}

#[tokio::test]
async fn empty_pipe_is_waited_for() {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let mut input = reopen_to_read(&reader).expect("an anonymous pipe");
    let writing = std::thread::spawn(move || {
        for piece in 0..200_u8 {
            let piece = vec![piece; 1 << (piece % 13)];
            writer.write_all(&piece).expect("the pipe has a reader");
            if piece.len() == 1 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let (mut all, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        match input.read(&mut buffer).await.expect("the pipe can be read") {
            0 => break,
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    writing.join().expect("the thread ends");
    let expected: Vec<u8> = (0..200_u8).flat_map(|piece| vec![piece; 1 << (piece % 13)]).collect();
    assert!(all == expected);
}

#[tokio::test]
async fn input_that_ended_before_it_is_opened_is_read_to_its_end() {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    writer.write_all(b"line\n").expect("the pipe has a reader");
    drop(writer);
    let mut input = reopen_to_read(&reader).expect("an anonymous pipe");
    let mut all = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), input.read_to_string(&mut all)).await;
    read.expect("the end is noticed").expect("the pipe can be read");
    assert_eq!(all, "line\n");
}

#[tokio::test]
async fn inherited_pipes_stay_blocking() {
    let (reader, writer) = io::pipe().expect("a pipe");
    let inherited = writer.try_clone().expect("a descriptor");
    let (_input, _output) = (reopen_to_read(&reader), output(inherited.into()));
    for flags in [fcntl_getfl(&reader), fcntl_getfl(&writer)] {
        assert!(!flags.expect("an open descriptor").contains(OFlags::NONBLOCK));
    }
}

#[tokio::test]
async fn only_anonymous_pipes_are_opened_anew() {
    let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("two sockets");
    let file = std::fs::File::open("/dev/null").expect("a device");
    assert!(reopen_to_read(&socket).is_none() && reopen_to_read(&file).is_none());
}

#[tokio::test]
async fn pipe_is_enlarged_and_never_reduced() {
    for (before, after) in [(4 << 10, CAPACITY), (1 << 20, 1 << 20)] {
        let (_reader, writer) = io::pipe().expect("a pipe");
        fcntl_setpipe_size(&writer, before).expect("an allowed size");
        let inherited = writer.try_clone().expect("a descriptor");
        let _output = output(inherited.into());
        assert_eq!(fcntl_getpipe_size(&writer), Ok(after));
    }
}

#[tokio::test]
async fn closed_reader_is_an_error() {
    let (reader, writer) = io::pipe().expect("a pipe");
    let mut before = output(writer.try_clone().expect("a descriptor").into());
    drop(reader);
    let mut after = output(writer.into());
    for output in [&mut before, &mut after] {
        let written = async {
            output.write_all(b"line\n").await?;
            output.flush().await
        };
        assert_eq!(written.await.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
