//! Which CPUs are measured, which carry the load, which are left to recorder and observer.

use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use record::{LeftOut, Machine, Partition};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::partition::{named, valid};
use failure::{Error, Result};

/// The machine's CPUs, divided for a run.
#[derive(Clone, Debug)]
pub struct Division {
    /// Measured.
    pub measured: CpuList,
    /// Wanted, and not to be had.
    pub left_out: Vec<LeftOut>,
    /// On which load workers run.
    pub load: CpuList,
    /// On which recorder, display and the probe's main thread run.
    pub own: CpuList,
    /// Whether those are measured too, because no other CPU is free.
    pub shared: bool,
    /// Where the probe is put, and nothing else.
    pub partition: Option<Partition>,
}

impl Division {
    /// Measures `wanted`, or every CPU that this process may use and every isolated one; puts loads on `load`, or
    /// every CPU that is not isolated.
    pub fn of(
        root: &SysRoot,
        machine: &Machine,
        wanted: Option<&CpuList>,
        load: Option<&CpuList>,
    ) -> Result<Self> {
        let cpus = &machine.cpus;
        let isolated = cpus.isolated.value().cloned().unwrap_or_default().intersection(&cpus.online);
        check_online(wanted, &cpus.online, "--cpus")?;
        check_online(load, &cpus.online, "--load-cpus")?;
        let all = || {
            cpus.allowed.union(&isolated).union(&partitioned(root, &cpus.online.difference(&cpus.allowed)))
        };
        let wanted = wanted.cloned().unwrap_or_else(all);
        let measured = sys::schedule::reachable(&wanted)?;
        let left_out = left_out(root, &wanted.difference(&measured));
        if wanted.is_empty() {
            let what = "no CPU is known that this process may use: /proc/self/status could not be read";
            return Err(Error::new(what, "is /proc mounted? mount -t proc proc /proc"));
        }
        if measured.is_empty() {
            let reasons: Vec<String> = left_out.iter().map(|group| group.reason.clone()).collect();
            return Err(Error::new(format!("{} cannot be measured", wanted.named()), reasons.join("; ")));
        }
        let load = load.cloned().unwrap_or_else(|| cpus.for_loads(&CpuList::new()));
        let free = cpus.allowed.difference(&measured);
        let own = [free.difference(&isolated), free.clone(), cpus.allowed.clone()];
        let own = own.into_iter().find(|cpus| !cpus.is_empty()).unwrap_or_default();
        Ok(Self { measured, left_out, load, own, shared: free.is_empty(), partition: None })
    }

    /// Measures `wanted`, or every CPU of the partition `name`, from inside it; everything else stays outside.
    pub fn inside(
        root: &SysRoot,
        machine: &Machine,
        name: &str,
        wanted: Option<&CpuList>,
        load: Option<&CpuList>,
    ) -> Result<Self> {
        let partition = valid(named(root, name)?)?;
        let (group, cpus) = (&partition.group, &partition.cpus);
        check_online(wanted, &machine.cpus.online, "--cpus")?;
        check_online(load, &machine.cpus.online, "--load-cpus")?;
        let measured = wanted.cloned().unwrap_or_else(|| cpus.clone());
        let outside = measured.difference(cpus);
        if !outside.is_empty() {
            let message = format!("--cpus names {}: not in {group}", outside.named());
            return Err(Error::new(message, format!("it has {cpus}")));
        }
        let own = machine.cpus.for_loads(cpus);
        if own.is_empty() {
            let message = format!("this program may run on CPUs of {group} alone, and is to stay outside");
            return Err(Error::new(message, "start it elsewhere: in the group above"));
        }
        let load = load.cloned().unwrap_or_else(|| own.clone());
        let left_out = Vec::new();
        Ok(Self { measured, left_out, load, own, shared: false, partition: Some(partition) })
    }

    /// Those of the measured CPUs to which a deadline thread can be pinned. Of a partition that is seen from inside
    /// only: its one CPU.
    pub fn reservable(&self) -> CpuList {
        match &self.partition {
            Some(partition) if partition.cpus.len() > 1 => CpuList::new(),
            Some(_) => self.measured.clone(),
            None => sys::schedule::reservable(&self.measured),
        }
    }
}

fn check_online(asked: Option<&CpuList>, online: &CpuList, option: &str) -> Result<()> {
    let Some(asked) = asked else { return Ok(()) };
    let missing = asked.difference(online);
    if asked.is_empty() || !missing.is_empty() {
        let what = if asked.is_empty() {
            "names no CPU".into()
        } else {
            format!("names {}: not online", missing.named())
        };
        return Err(Error::new(format!("{option} {what}"), format!("online are {online}")));
    }
    Ok(())
}

/// Those of `cpus` that a partition took away: the others are out of reach because somebody wanted it so (taskset).
fn partitioned(root: &SysRoot, cpus: &CpuList) -> CpuList {
    cpus.iter().filter(|&cpu| machine::partition_of(root, cpu).is_some()).collect()
}

/// Groups CPUs that cannot be pinned to by what owns them.
fn left_out(root: &SysRoot, cpus: &CpuList) -> Vec<LeftOut> {
    let mut groups: Vec<LeftOut> = Vec::new();
    for cpu in cpus.iter() {
        let reason = match machine::partition_of(root, cpu) {
            Some(partition) => format!(
                "it belongs to the cgroup partition {partition}: --partition {partition} puts the probe inside"
            ),
            None => "it is outside this process's cpuset: start worstcase in a cgroup that has it".into(),
        };
        match groups.iter_mut().find(|group| group.reason == reason) {
            Some(group) => group.cpus.insert(cpu),
            None => groups.push(LeftOut { cpus: CpuList::from_iter([cpu]), reason }),
        }
    }
    groups
}

/// The right to measure CPUs, held by sockets in the abstract namespace: the kernel gives them back with the process,
/// whatever ends it. unix(7). Other network namespaces (containers) are not seen.
///
/// Anybody can take such a name. So root's runs exclude each other by files that nobody else can lock, and a name that a
/// user has taken who is neither root nor this one ends no run.
#[derive(Debug)]
pub struct Claims {
    _sockets: Vec<UnixListener>,
    _files: Vec<File>,
    /// CPUs whose names other users have taken.
    pub by_others: CpuList,
}

/// Where root's claims are.
const CLAIMS: &str = "/run/worstcase-cpus";

impl Claims {
    /// Claims `cpus`, or says which one another worstcase measures.
    pub fn on(cpus: &CpuList) -> Result<Self> {
        let directory = if rustix::process::geteuid().is_root() { Some(Path::new(CLAIMS)) } else { None };
        Self::held(cpus, directory)
    }

    fn held(cpus: &CpuList, directory: Option<&Path>) -> Result<Self> {
        let mut claims = Self { _sockets: Vec::new(), _files: Vec::new(), by_others: CpuList::new() };
        for cpu in cpus.iter() {
            if let Some(directory) = directory {
                claims._files.extend(locked(directory, cpu)?);
            }
            match bound(cpu)? {
                Some(socket) => claims._sockets.push(socket),
                None => claims.by_others.insert(cpu),
            }
        }
        Ok(claims)
    }
}

fn taken(cpu: CpuId) -> Error {
    let who =
        holder(cpu).map_or_else(|_| String::new(), |who| format!(", process {}", who.pid.as_raw_nonzero()));
    let hint = "wait for it, or measure other CPUs with --cpus: two probes on a CPU measure each other";
    Error::new(format!("CPU {cpu} is being measured by another worstcase{who}"), hint)
}

/// A file that is locked as long as it is open; none where /run cannot be written, as on a read-only system.
fn locked(directory: &Path, cpu: CpuId) -> Result<Option<File>> {
    if files::Directory::make(directory).is_err() {
        return Ok(None);
    }
    files::Directory::open_obeyed(directory)?;
    let file = files::open_lock(&directory.join(cpu.to_string()), files::PRIVATE)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(_) => Err(taken(cpu)),
    }
}

/// The name of the socket that stands for a CPU that is being measured.
fn name(cpu: CpuId) -> String {
    format!("worstcase-measures-cpu-{cpu}")
}

/// A socket by the name of `cpu`; none where another user has it.
fn bound(cpu: CpuId) -> Result<Option<UnixListener>> {
    let address = SocketAddr::from_abstract_name(name(cpu));
    match address.and_then(|address| UnixListener::bind_addr(&address)) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            Err(Error::new(format!("claim CPU {cpu}: {error}"), ""))
        }
        Err(_) if is_of_another_user(cpu) => Ok(None),
        Err(_) => Err(taken(cpu)),
    }
}

/// Whether a user has the socket of `cpu` who is neither root nor this one. Who does not listen is no worstcase.
fn is_of_another_user(cpu: CpuId) -> bool {
    let own = rustix::process::geteuid();
    holder(cpu).map_or(true, |holder| !holder.uid.is_root() && holder.uid != own)
}

/// Who measures `cpu`. A worstcase listens, so that the kernel tells whose the socket is: unix(7), SO_PEERCRED.
fn holder(cpu: CpuId) -> rustix::io::Result<rustix::net::UCred> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name(cpu).as_bytes())?)?;
    rustix::net::sockopt::socket_peercred(&socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(online: &str, allowed: &str, isolated: &str) -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = online.parse().unwrap();
        machine.cpus.allowed = allowed.parse().unwrap();
        machine.cpus.isolated = record::Fact::Value(isolated.parse().unwrap());
        machine
    }

    #[test]
    fn cpus_that_are_not_online_are_named_with_those_that_are() {
        let error =
            check_online(Some(&"0,7".parse().unwrap()), &"0-3".parse().unwrap(), "--cpus").unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.hint.as_str()),
            ("--cpus names CPU 7: not online", "online are 0-3")
        );
        assert!(check_online(Some(&CpuList::new()), &"0-3".parse().unwrap(), "--cpus").is_err());
    }

    #[test]
    fn loads_stay_off_isolated_cpus_and_the_recorder_off_measured_ones() {
        let first = sys::schedule::affinity(0).unwrap().first().unwrap();
        let wanted = CpuList::from_iter([first]);
        let machine = machine("0-9", "0-9", &format!("{first},9"));
        let division = Division::of(&SysRoot::live(), &machine, Some(&wanted), None).unwrap();
        assert_eq!(division.measured, wanted);
        assert!(!division.load.contains(first) && !division.load.contains(CpuId(9)));
        assert!(!division.own.contains(first) && !division.own.contains(CpuId(9)) && !division.shared);
    }

    #[test]
    fn two_claims_on_a_cpu_are_one_too_many() {
        let cpus: CpuList = "8190".parse().unwrap();
        let first = Claims::on(&cpus).unwrap();
        let error = Claims::on(&cpus).unwrap_err();
        assert!(error.message.contains("another worstcase") && !error.hint.is_empty());
        drop(first);
        Claims::on(&cpus).unwrap();
    }

    #[test]
    fn roots_claims_hold_whoever_has_the_names() {
        let directory = tempfile::tempdir().unwrap();
        let cpus: CpuList = "8189".parse().unwrap();
        let first = Claims::held(&cpus, Some(directory.path())).unwrap();
        // The name is free again, the file is not.
        let Claims { _sockets: sockets, _files: files, by_others } = first;
        assert!(by_others.is_empty());
        drop(sockets);
        assert!(
            Claims::held(&cpus, Some(directory.path())).unwrap_err().message.contains("another worstcase")
        );
        drop(files);
        Claims::held(&cpus, Some(directory.path())).unwrap();
    }

    #[test]
    fn a_name_that_nobody_listens_to_stops_no_run() {
        let name = "worstcase-measures-cpu-8188";
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        let claims = Claims::held(&"8188".parse().unwrap(), None).unwrap();
        assert_eq!(claims.by_others.to_string(), "8188");
    }
}
