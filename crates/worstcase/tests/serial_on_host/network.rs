//! The response probe between two network namespaces joined by a veth pair: delays, losses and hogs that we make must be
//! found, in the part in which they were made.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use record::instrument::response::{PartName, ResponseSeries};
use record::verdict::Verdict;
use record::{Record, WarningId};
use rustix::process::Signal;
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos};

use crate::support::{self, BINARY, Ended, Run};

const MS: u64 = 1_000_000;

/// Two namespaces and what joins them; gone with it.
struct Joined {
    name: String,
}

impl Joined {
    /// None without root, `ip` and namespaces: said by name.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !support::is_root() || support::is_missing("ip") || support::is_missing("nsenter") {
            support::skipped("needs root, ip and nsenter");
            return None;
        }
        let joined =
            Self { name: format!("wc{}n{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)) };
        let (here, there) = (joined.here(), joined.there());
        let made = [
            format!("netns add {here}"),
            format!("netns add {there}"),
            format!("link add near netns {here} type veth peer name far netns {there}"),
            format!("-n {here} addr add 10.99.7.1/24 dev near"),
            format!("-n {there} addr add 10.99.7.2/24 dev far"),
            format!("-n {here} link set near up"),
            format!("-n {there} link set far up"),
        ]
        .iter()
        .all(|arguments| ip(arguments));
        if !made {
            support::skipped("network namespaces and veth cannot be had here");
        }
        made.then_some(joined)
    }

    fn here(&self) -> String {
        format!("{}here", self.name)
    }

    fn there(&self) -> String {
        format!("{}there", self.name)
    }

    fn within(namespace: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{namespace}")).arg(BINARY).args(arguments);
        command
    }

    /// `worstcase echo` in the other namespace, once it answers.
    fn echo(&self, arguments: &[&str]) -> Run {
        let on = cpu_of_echo().to_string();
        let echo = [&["echo", "--cpus", &on], arguments].concat();
        let mut run = Run::start_as(&mut Self::within(&self.there(), &echo));
        run.wait_until("the echo", |run| run.text("stdout").contains("answering on"));
        run
    }

    /// `worstcase measure --probe network` in this one.
    fn measure(&self, arguments: &[&str]) -> Run {
        let on = cpu_of_probe().to_string();
        let measure =
            [&["measure", "--probe", "network", "--out", "record", "--cpus", &on], arguments].concat();
        Run::start_as(&mut Self::within(&self.here(), &measure))
    }

    /// By UDP, to its end.
    fn measured(&self, arguments: &[&str]) -> Ended {
        self.measure(&[&["--peer", "10.99.7.2"], arguments].concat()).end()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        [self.here(), self.there()].iter().for_each(|namespace| {
            ip(&format!("netns del {namespace}"));
        });
    }
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}

fn cpus() -> Vec<CpuId> {
    schedule::affinity(0).unwrap().iter().collect()
}

fn cpu_of_probe() -> CpuId {
    cpus()[0]
}

fn cpu_of_echo() -> CpuId {
    *cpus().last().unwrap()
}

pub fn response(record: &Record) -> &ResponseSeries {
    let response = record.scenarios[0].series[0].response().unwrap();
    let frames = response.frames;
    assert_eq!(frames.answered + frames.lost, frames.sent, "{frames:?}");
    let series = &record.scenarios[0].series[0];
    assert_eq!(series.accounted(), series.expected());
    let parts: u64 = response.parts.iter().map(|part| part.took.summary().sum).sum();
    assert_eq!(parts, response.split.sum, "the parts are the whole");
    assert_eq!(response.split.count + response.unsplit.count(), series.observed.summary().count);
    response
}

fn median(record: &Record) -> u64 {
    record.scenarios[0].series[0].observed.quantile(0.5).unwrap().0
}

pub fn part(response: &ResponseSeries, name: PartName) -> u64 {
    response.part(name).unwrap().quantile(0.5).unwrap().0
}

fn ids(record: &Record) -> Vec<WarningId> {
    record.all_warnings().map(|warning| warning.id).collect()
}

#[test]
fn a_delay_at_the_peer_is_found_in_the_whole_and_in_its_part() {
    let Some(joined) = Joined::new() else { return };
    const DELAY: u64 = 2 * MS;
    let run = |delay: &str| {
        let echo = joined.echo(&["--listen", "10.99.7.2", "--delay", delay]);
        let ended = joined.measured(&["-D", "2s", "-i", "5ms", "--warm-up", "100ms"]);
        drop(echo);
        ended.record()
    };
    let within_5_percent =
        |slow: u64, quick: u64| (DELAY / 100 * 95..=DELAY / 100 * 105).contains(&slow.saturating_sub(quick));
    // Between the two runs the machine itself can become slower or faster.
    support::in_one_of(4, || {
        let (quick, slow) = (run("0s"), run("2ms"));
        let (of_quick, of_slow) = (response(&quick), response(&slow));
        assert!(of_slow.split.count > 0, "{:?}", of_slow.unsplit);
        assert!(slow.scenarios[0].series[0].worst.len() == of_slow.worst_parts.len());
        let whole = (median(&slow), median(&quick));
        let peers = (part(of_slow, PartName::Peer), part(of_quick, PartName::Peer));
        let others = [PartName::Send, PartName::Wire, PartName::Receive].map(|name| part(of_slow, name));
        let is_found = within_5_percent(whole.0, whole.1)
            && within_5_percent(peers.0, peers.1)
            && others.iter().all(|part| *part < DELAY / 4);
        is_found.then_some(()).ok_or_else(|| format!("{whole:?}: peer {peers:?}, others {others:?}"))
    });
}

#[test]
fn frames_that_the_peer_drops_are_counted_one_by_one_and_fail_a_limit() {
    let Some(joined) = Joined::new() else { return };
    let _echo = joined.echo(&["--listen", "10.99.7.2:4000", "--drop-each", "7"]);
    let run = ["--peer", "10.99.7.2:4000", "-i", "10ms", "-l", "100", "--warm-up", "0s", "--frames", "4"];
    let ended = joined.measure(&[&run[..], &["--limit", "9ms"]].concat()).end();
    let record = ended.record();
    let frames = response(&record).frames;
    assert_eq!(frames.lost, frames.sent / 7, "{frames:?}");
    assert!(ids(&record).contains(&WarningId::FramesLost));
    assert_eq!(record.judgement.verdict, Verdict::Fail);
    assert!(ended.out.contains("were not answered within the limit of 9ms"), "{}", ended.out);
    let report = ended.report();
    assert!(report.contains("lost frames"), "{report}");
}

#[test]
fn a_hog_on_the_receivers_cpu_is_in_the_part_of_the_receiver_and_one_on_the_peers_in_the_peers() {
    let Some(joined) = Joined::new() else { return };
    if cpus().len() < 2 {
        return support::skipped("needs two CPUs");
    }
    // The sender has the receiver's CPU.
    let of_probe = [PartName::Receive, PartName::Send];
    for (cpu, names) in [(cpu_of_probe(), &of_probe[..]), (cpu_of_echo(), &[PartName::Peer])] {
        let _echo = joined.echo(&["--listen", "10.99.7.2", "--delay", "1ms"]);
        let run =
            joined.measure(&["--peer", "10.99.7.2", "-D", "1500ms", "-i", "20ms", "--warm-up", "100ms"]);
        let is_over = AtomicBool::new(false);
        let record = std::thread::scope(|scope| {
            let hog = scope.spawn(|| hog(cpu, &is_over));
            let ended = run.end();
            is_over.store(true, Ordering::Relaxed);
            hog.join().unwrap().map(|()| ended.record())
        });
        let record = match record {
            Ok(record) => record,
            Err(error) => return support::skipped(&error.to_string()),
        };
        let response = response(&record);
        let worst: Vec<_> = response.worst_parts.iter().filter_map(|parts| parts.value()).collect();
        let whole = |parts: &[Option<Nanos>]| parts.iter().flatten().map(|part| part.0).sum::<u64>();
        let late: Vec<_> = worst.into_iter().filter(|parts| whole(&parts[..]) > 3 * MS).collect();
        assert!(!late.is_empty(), "no response met the hog");
        let of = |parts: &[Option<Nanos>], name: &PartName| {
            parts[PartName::OF_SOFTWARE.iter().position(|part| part == name).unwrap()]
                .map_or(0, |part| part.0)
        };
        // The host may have taken a CPU from one or the other.
        let there = late.iter().filter(|parts| {
            let sum: u64 = names.iter().map(|name| of(&parts[..], name)).sum();
            sum > whole(&parts[..]) / 2
        });
        assert!(there.count() * 2 > late.len(), "{names:?}: {late:?}");
        let is_named = late.iter().any(|parts| of(&parts[..], &names[0]) > whole(&parts[..]) / 2);
        assert!(is_named, "never in {}: {late:?}", names[0]);
    }
}

/// Takes a CPU for 6 ms of each 13, which no period of the probe is a multiple of.
fn hog(cpu: CpuId, is_over: &AtomicBool) -> Result<(), sys::Error> {
    schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
    schedule::set(Scheduling::Fifo("99".parse().unwrap()))?;
    while !is_over.load(Ordering::Relaxed) {
        let until = Clock::Monotonic.now() + 6 * MS;
        while Clock::Monotonic.now() < until {
            std::hint::spin_loop();
        }
        let _ = Clock::Monotonic.sleep_until(until + 7 * MS);
    }
    Ok(())
}

#[test]
fn raw_frames_are_answered_too_and_all_of_a_cycle_are_waited_for() {
    let Some(joined) = Joined::new() else { return };
    for sent_as in [&[][..], &["--ptp-frames"]] {
        let _echo = joined.echo(&[&["--interface", "far"], sent_as].concat());
        let raw = ["--peer", "ff:ff:ff:ff:ff:ff", "--interface", "near", "--size", "200"];
        let options = ["-i", "10ms", "-l", "60", "--warm-up", "0s", "--frames", "8", "--receive", "spin"];
        let record = joined.measure(&[&raw[..], &options, sent_as].concat()).end().record();
        let response = response(&record);
        let begun = record.scenarios[0].series[0].expected() - response.skipped;
        assert_eq!(response.frames.sent, 8 * begun);
        assert_eq!((response.frames.lost, response.frames.foreign), (0, 0), "{:?}", response.frames);
        assert!(response.split.count > 0);
    }
}

#[test]
fn a_peer_that_leaves_makes_the_run_inconclusive_and_one_that_is_not_there_refuses_it() {
    let Some(joined) = Joined::new() else { return };
    let echo = joined.echo(&["--listen", "10.99.7.2"]);
    let mut run = joined.measure(&["--peer", "10.99.7.2", "-i", "5ms", "--warm-up", "0s"]);
    run.wait_measured("idle", 1);
    drop(echo);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    run.signal(Signal::INT);
    let record = run.end().record();
    assert!(response(&record).frames.refused > 0);
    assert!(ids(&record).contains(&WarningId::PeerLeft), "{:?}", ids(&record));
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive);
    let ended = joined.measured(&["-D", "1s"]);
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.err.contains("no answer from 10.99.7.2:2307"), "{}", ended.err);
    assert!(ended.err.contains("hint: start `worstcase echo"), "{}", ended.err);
}

#[test]
fn without_privilege_udp_is_measured_and_raw_frames_are_refused() {
    use std::os::unix::process::CommandExt;
    if !support::is_root() {
        return support::skipped("needs root, to be somebody else");
    }
    let binary = std::env::temp_dir().join(format!("worstcase-network-{}", std::process::id()));
    std::fs::copy(BINARY, &binary).unwrap();
    let nobody =
        |arguments: &[&str]| Run::start_as(Command::new(&binary).args(arguments).uid(65534).gid(65534));
    let on = cpu_of_probe().to_string();
    let common = ["measure", "--probe", "network", "--cpus", &on, "-D", "300ms", "--warm-up", "0s"];
    let mut echo = nobody(&["echo", "--listen", "127.0.0.1:0"]);
    echo.wait_until("the echo", |run| run.text("stdout").contains("answering on"));
    let place = echo.text("stdout").trim().replace("answering on ", "");
    let run = nobody(&[&common[..], &["--out", "record", "--peer", &place, "-i", "5ms"]].concat());
    let record = run.end().record();
    let frames = response(&record).frames;
    assert!(frames.answered > 0, "{frames:?}");
    assert!(ids(&record).contains(&WarningId::PolicyDiffers));
    let raw = nobody(&[&common[..], &["--peer", "ff:ff:ff:ff:ff:ff", "--interface", "lo"]].concat()).end();
    std::fs::remove_file(&binary).unwrap();
    assert_eq!(raw.code(), Some(2), "{}", raw.err);
    assert!(raw.err.contains("CAP_NET_RAW") && raw.err.contains("hint:"), "{}", raw.err);
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_hint() {
    for (arguments, words) in [
        (&["echo", "--listen", "0.0.0.0"][..], "every interface"),
        (&["echo", "--listen", "[::]:9"], "every interface"),
        (&["echo", "--interface", "nothing0"], "nothing0"),
        (&["measure", "--probe", "network"], "needs a peer"),
        (
            &["measure", "--probe", "network", "--peer", "10.0.0.1", "--interface", "lo", "--ptp-frames"],
            "is an address of UDP",
        ),
        (&["measure", "--probe", "network", "--peer", "10.0.0.1", "-i", "2s"], "lasts 1s at most"),
        (
            &["measure", "--probe", "network", "--peer", "10.0.0.1", "--patience", "2ms"],
            "longer than a cycle",
        ),
        (
            &["measure", "--probe", "network", "--peer", "127.0.0.1", "-D", "1s", "--limit", "950us"],
            "longer than an answer is waited for",
        ),
        (&["measure", "--probe", "network", "--peer", "02:00:00:00:00:01"], "need the interface"),
        (&["measure", "--peer", "10.0.0.1"], "--probe network"),
        (
            &["measure", "--probe", "network", "--peer", "10.0.0.1", "--wake", "timerfd"],
            "--wake means nothing",
        ),
    ] {
        let ended = support::refused(arguments);
        assert!(ended.err.contains(words), "{arguments:?}: {}", ended.err);
    }
}
