//! Both sides over the loopback: scripted monitors of three generations, scripted responders, and peers that mean no good.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use units::Nanos;

use super::server::{Pulses, Served, Server, serve_each};
use super::session::{Followed, Session, address};
use super::*;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const START: [u8; 8] = [0, 0, 0x03, 0xe8, 0, 0, 0, 8];

fn record(sum: i64, min: i32, max: i32, overruns: u32, samples: u32) -> [u8; RECORD] {
    Sample { sum, min, max, overruns, samples }.bytes()
}

/// A monitor that is asked for 8 cells each 1000 us and does `script`; the responder stops once `script` has raised the flag.
fn with_monitor(script: impl FnOnce(&mut TcpStream, &AtomicBool) + Send) -> Followed {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let monitor = listener.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            script(&mut stream, &stop);
        });
        let mut session = Session::connect(monitor).unwrap();
        session.patience = Duration::from_millis(500);
        session.follow(1000, 8, &|| stop.load(Ordering::Relaxed))
    })
}

fn read<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Histogram of 8 cells with so many latencies of 5 us.
fn cells(count: u32) -> Vec<u8> {
    (0..8).flat_map(|cell: u32| if cell == 5 { count } else { 0_u32 }.to_be_bytes()).collect()
}

/// What a generation sends: a record, at the stop the rest, the terminator and the histogram, in pieces of `piece` bytes.
fn generation(in_histogram: u32, piece: usize) -> Followed {
    with_monitor(move |stream, stop| {
        assert_eq!(read::<8>(stream), START);
        stream.write_all(&record(10_500, 5_000, 5_500, 1, 2)).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(read::<8>(stream), [0; 8]);
        let rest =
            [&record(5_200, 5_200, 5_200, 0, 1)[..], &Sample::terminator(2).bytes(), &cells(in_histogram)];
        for piece in rest.concat().chunks(piece) {
            stream.write_all(piece).unwrap();
        }
    })
}

#[test]
fn monitors_of_three_generations_are_followed_to_the_end() {
    // libevl's of 2020 sends all at once, the port of 2024 as its buffers fill, Zephyr's leaves the warm-up in the histogram.
    for (in_histogram, piece, surplus) in [(3, 4096, 0), (3, 7, 0), (1003, 1, 1000)] {
        let Followed { totals, problem } = generation(in_histogram, piece);
        assert!(problem.is_none(), "{problem:?}");
        let figures = (totals.samples, totals.sum, totals.min, totals.max, totals.overruns);
        assert_eq!(figures, (3, 15_700, Some(5_000), Some(5_500), 3));
        assert_eq!((totals.average(), totals.surplus()), (Some(5_233), Some(surplus)));
    }
}

fn problem_of(script: impl FnOnce(&mut TcpStream, &AtomicBool) + Send) -> (u64, String) {
    let Followed { totals, problem } = with_monitor(script);
    (totals.samples, problem.map(|problem| problem.to_string()).unwrap_or_default())
}

#[test]
fn a_monitor_that_fails_leaves_one_error_and_what_had_come() {
    let cut = problem_of(|stream, _| {
        read::<8>(stream);
        stream.write_all(&record(5_000, 5_000, 5_000, 0, 1)).unwrap();
        stream.write_all(&[0; 10]).unwrap();
    });
    assert!(cut.0 == 1 && cut.1.contains("after 10 of 24 bytes of a record"), "{cut:?}");
    let silent = problem_of(|stream, stop| {
        read::<8>(stream);
        stop.store(true, Ordering::Relaxed);
        read::<8>(stream);
        let _ = stream.read(&mut [0; 1]);
    });
    assert!(silent.0 == 0 && silent.1.contains("said nothing for 0.5 s"), "{silent:?}");
    let slow = problem_of(|stream, stop| {
        read::<8>(stream);
        stop.store(true, Ordering::Relaxed);
        // A byte each 100 ms is heard, and still does not end in time.
        for byte in record(5_000, 5_000, 5_000, 0, 1) {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert!(slow.1.contains("of a record"), "{slow:?}");
    let wrong = problem_of(|stream, _| {
        read::<8>(stream);
        stream.write_all(&record(5_000, 6_000, 7_000, 0, 1)).unwrap();
        let _ = stream.read(&mut [0; 1]);
    });
    assert!(wrong.1.contains("contradict each other"), "{wrong:?}");
    let ended = problem_of(|stream, _| {
        read::<8>(stream);
        stream.write_all(&Sample::terminator(500).bytes()).unwrap();
        let _ = stream.read(&mut [0; 1]);
    });
    assert!(ended.1.contains("stopped by itself"), "{ended:?}");
}

#[test]
fn a_monitor_that_floods_is_left() {
    let (samples, problem) = problem_of(|stream, _| {
        read::<8>(stream);
        let many = record(5_000, 5_000, 5_000, 0, 1).repeat(1_000);
        while stream.write_all(&many).is_ok() {}
    });
    assert!(problem.contains("more than 2000 records a second"), "{problem}");
    assert!(samples < 10_000, "{samples}");
}

/// Answers of 5 us, each fourth of them missing; a pulse each millisecond.
#[derive(Default)]
struct Fake {
    pulses: u64,
    begun: Vec<Nanos>,
    ended: u32,
    fails_at: Option<u64>,
}

impl Pulses for Fake {
    fn begin(&mut self, period: Nanos) -> failure::Result<()> {
        self.begun.push(period);
        Ok(())
    }

    fn pulse(&mut self) -> failure::Result<Option<u64>> {
        std::thread::sleep(Duration::from_millis(1));
        self.pulses += 1;
        if self.fails_at == Some(self.pulses) {
            return Err(failure::Error::new("the chip is gone", ""));
        }
        Ok((self.pulses % 4 != 0).then_some(5_000))
    }

    fn end(&mut self) {
        self.ended += 1;
    }
}

/// What a scripted responder made of a monitor with records each 50 ms.
fn with_responder(fake: &mut Fake, script: impl FnOnce(&mut TcpStream) + Send) -> (Served, Option<String>) {
    let mut server = Server::listen(LOOPBACK, false).unwrap();
    let monitor = server.local().unwrap();
    let mut served = Served::default();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| script(&mut TcpStream::connect(monitor).unwrap()));
        let (stream, _) = server.accept(Duration::from_secs(10)).unwrap().unwrap();
        serve_each(Duration::from_millis(50), stream, fake, &mut served)
    });
    (served, result.err().map(|error| error.to_string()))
}

/// Records until the terminator: samples and overruns of all, the terminator's included.
fn records(stream: &mut TcpStream) -> (u32, u32) {
    let (mut samples, mut overruns) = (0, 0);
    loop {
        let sample = Sample::read(read(stream)).check().unwrap();
        overruns += sample.overruns;
        if sample.is_terminator() {
            return (samples, overruns);
        }
        assert_eq!((sample.min, sample.max), (5_000, 5_000));
        samples += sample.samples;
    }
}

#[test]
fn a_responder_as_latmus_is_served_and_every_pulse_is_accounted_for() {
    let mut fake = Fake::default();
    let (served, problem) = with_responder(&mut fake, |stream| {
        // In two pieces, as TCP may.
        stream.write_all(&START[..3]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(&START[3..]).unwrap();
        let first = Sample::read(read(stream));
        assert!(first.samples > 0, "{first:?}");
        stream.write_all(&[0; 8]).unwrap();
        let (samples, _) = records(stream);
        let counts: Vec<u32> = (0..8).map(|_| u32::from_be_bytes(read(stream))).collect();
        assert_eq!(counts.iter().sum::<u32>(), counts[5]);
        assert_eq!(counts[5], first.samples + samples);
        // The same connection serves another run.
        stream.write_all(&[0, 0, 0x07, 0xd0, 0, 0, 0, 0]).unwrap();
        read::<RECORD>(stream);
        stream.write_all(&[0; 8]).unwrap();
        records(stream);
    });
    assert_eq!(problem, None);
    assert_eq!(fake.begun, [Nanos::from_millis(1), Nanos::from_millis(2)]);
    assert_eq!((served.starts, served.answered + served.missed), (2, fake.pulses));
    assert_eq!(fake.ended, 2);
}

#[test]
fn both_sides_understand_each_other() {
    let mut fake = Fake::default();
    let mut server = Server::listen(LOOPBACK, false).unwrap();
    let monitor = server.local().unwrap();
    let mut served = Served::default();
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(move || {
            let since = std::time::Instant::now();
            Session::connect(monitor)
                .unwrap()
                .follow(1000, 200, &|| since.elapsed() > Duration::from_millis(300))
        });
        let (stream, _) = server.accept(Duration::from_secs(10)).unwrap().unwrap();
        serve_each(Duration::from_millis(50), stream, &mut fake, &mut served).unwrap();
        follower.join().unwrap()
    });
    assert!(followed.problem.is_none(), "{:?}", followed.problem);
    let totals = followed.totals;
    assert!(totals.samples > 0 && totals.samples <= served.answered, "{totals:?} {served:?}");
    assert_eq!(totals.surplus(), Some(0));
}

#[test]
fn a_responder_that_means_no_good_is_left_with_one_error() {
    let ask = |bytes: &'static [u8]| {
        let mut fake = Fake::default();
        let (_, problem) = with_responder(&mut fake, move |stream| {
            stream.write_all(bytes).unwrap();
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        (problem, fake.begun.len())
    };
    let (problem, begun) = ask(&[0xff; 8]);
    assert!(problem.unwrap().contains("a period of 4294967295 us") && begun == 0);
    let (problem, begun) = ask(&[0, 0, 0, 1, 0, 0, 0x03, 0xe9]);
    assert!(problem.unwrap().contains("a histogram of 1001 cells") && begun == 0);
    let (problem, _) = ask(&[0, 0, 3]);
    assert!(problem.unwrap().contains("after 3 of 8 bytes of a request"));
    assert_eq!(ask(&[]), (None, 0));
    // A stop without a start has a trailer, and harms nothing.
    assert_eq!(ask(&[0; 8]), (None, 0));
}

#[test]
fn a_flood_of_starts_is_served_one_at_a_time_and_the_lines_come_to_rest() {
    let mut fake = Fake::default();
    let (served, problem) = with_responder(&mut fake, |stream| {
        stream.write_all(&START.repeat(50)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    assert_eq!(problem, None);
    assert_eq!((served.starts, fake.ended), (50, 50));
    assert!(fake.pulses >= 49, "a pulse at least between two requests: {}", fake.pulses);
}

#[test]
fn lines_that_go_away_end_the_session_with_their_error() {
    let mut fake = Fake { fails_at: Some(3), ..Fake::default() };
    let (_, problem) = with_responder(&mut fake, |stream| {
        stream.write_all(&START).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert_eq!((problem.as_deref(), fake.ended), (Some("the chip is gone"), 1));
}

#[test]
fn addresses_of_monitors_have_latmons_port_where_none_is_named() {
    assert_eq!(address("10.0.0.3").unwrap().to_string(), "10.0.0.3:2306");
    assert_eq!(address("10.0.0.3:99").unwrap().to_string(), "10.0.0.3:99");
    assert!(address("board").is_err());
    assert!(
        Session::connect("127.0.0.1:1".parse().unwrap()).unwrap_err().to_string().contains("127.0.0.1:1")
    );
}
