//! Commands: what programs take for their arguments, and which of these are for the kernel.

use machine::grammar::Kind;

use super::containers::container;
use super::script::{Simple, program, value_of};
use super::statements::{Statement, Symbol, Write, command_words};
use super::{Remark, RemarkId};
use super::{administration, ethtool, measuring, services, tools};
use crate::Severity;

/// What a command comes to.
#[derive(Default)]
pub struct Outcome {
    pub statements: Vec<Statement>,
    pub remarks: Vec<Remark>,
    /// A script that it hands to a shell.
    pub script: Option<String>,
}

/// What one command comes to: its writes, kernel parameters in its arguments, and what is wrong with it.
pub fn outcome(simple: &Simple) -> Outcome {
    let mut outcome = Outcome::default();
    let words = simple.command();
    outcome.statements.extend(writes(simple));
    outcome.remarks.extend(redirection(simple));
    outcome.script = script(words);
    let fault = |message: String| {
        Remark::new(simple.line, RemarkId::Malformed, Severity::Error, shown(words), message)
    };
    let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let message = match program(words) {
        "chrt" => chrt(&arguments),
        "taskset" => taskset(&arguments).or_else(|| bound_thread(&arguments)),
        "cyclictest" => measuring::affinity_of_smp(&arguments).or_else(|| measuring::unit_apart(&arguments)),
        "cpupower" => administration::one_idle_state(&arguments)
            .or_else(|| administration::frequency_without_unit(&arguments)),
        "swapoff" if arguments.is_empty() => Some("names no device: -a ends all swapping".to_owned()),
        "jackd" => administration::jackd(&arguments),
        "tc" => {
            administration::clock_of_etf(&arguments).or_else(|| administration::flags_of_taprio(&arguments))
        }
        "phc2sys" => administration::offset_of_clock(&arguments),
        "ovs-vsctl" => administration::vswitch(&arguments),
        "setcap" => administration::setcap(&arguments),
        "sysctl" => {
            let (statements, message) = sysctl(simple.line, &arguments);
            outcome.statements.extend(statements);
            message
        }
        "docker" | "podman" | "nerdctl" => container(program(words), &arguments),
        "tuned-adm" => administration::tuned(&arguments),
        "ethtool" => ethtool::fault(&arguments),
        "rtla" => measuring::tracer_policy(&arguments).or_else(|| measuring::of_other_view(&arguments)),
        "trace-cmd" => measuring::filter_before_event(&arguments),
        "qemu-system-x86_64" | "qemu-system-aarch64" if arguments.contains(&"-realtime") => {
            Some("-realtime is gone since QEMU 6.0: -overcommit mem-lock=on".to_owned())
        }
        "config" if words[0].ends_with("scripts/config") => {
            let (statements, message) = kernel_config(simple.line, &arguments);
            outcome.statements.extend(statements);
            message
        }
        "grubby" => administration::grubby(&arguments),
        "grub-mkconfig" | "grub2-mkconfig" if simple.targets.is_empty() => {
            administration::unwritten(&arguments)
        }
        "pro" | "ua" => administration::subscription(&arguments),
        "rpm-ostree" => administration::ostree(&arguments),
        "stress-ng" | "timeout" | "hwlatdetect" => measuring::unit_apart(&arguments),
        _ => None,
    };
    outcome.remarks.extend(message.map(fault));
    outcome.remarks.extend(tools::remarks(simple.line, words));
    outcome.remarks.extend(services::remarks(simple.line, words));
    outcome.remarks.extend(services::misspelt_service(simple.line, words));
    outcome.statements.extend(kernel_words(simple.line, words));
    outcome.statements.extend(module_words(simple.line, words));
    if let Some(inner) = tools::wrapped(words) {
        let is_deadline = inner
            .iter()
            .skip(1)
            .take_while(|word| word.starts_with('-'))
            .any(|word| word == "-d" || word == "--deadline");
        if program(words) == "taskset" && program(inner) == "chrt" && is_deadline {
            let message = "SCHED_DEADLINE is refused to a thread that is pinned to some CPUs of its root domain: set apart a partition".to_owned();
            outcome.remarks.push(Remark::new(
                simple.line,
                RemarkId::Contradiction,
                Severity::Error,
                shown(words),
                message,
            ));
        }
        let inner = self::outcome(&Simple { line: simple.line, words: inner.to_vec(), ..Simple::default() });
        outcome.statements.extend(inner.statements);
        outcome.remarks.extend(inner.remarks);
        outcome.script = outcome.script.or(inner.script);
    }
    outcome
}

/// `modprobe MODULE NAME=VALUE`, `insmod PATH.ko NAME=VALUE`: the same parameters as on the kernel command line.
fn module_words(line: usize, words: &[String]) -> Vec<Statement> {
    let is_loader = matches!(program(words), "modprobe" | "insmod");
    let operands: Vec<&String> = words.iter().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (true, Some((module, settings))) = (is_loader, operands.split_first()) else { return Vec::new() };
    let module = module.rsplit('/').next().unwrap_or(module).split(".ko").next().unwrap_or(module);
    let named: Vec<String> =
        settings.iter().filter(|word| word.contains('=')).map(|word| format!("{module}.{word}")).collect();
    command_words(line, &named.join(" "))
}

/// A command in a few words.
fn shown(words: &[String]) -> String {
    let text = words.join(" ");
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['\u{2026}']).collect() }
}

/// `echo VALUE > FILE`, `echo VALUE | tee FILE...`, for files of the kernel.
fn writes(simple: &Simple) -> Vec<Statement> {
    let words = simple.command();
    let (value, files): (_, Vec<&str>) = match (program(words), &simple.reads) {
        ("tee", Some(reads)) => (
            echoed(reads),
            words.iter().skip(1).filter(|word| !word.starts_with('-')).map(String::as_str).collect(),
        ),
        _ => (echoed(words), simple.targets.iter().map(|(path, _)| path.as_str()).collect()),
    };
    let Some(value) = value else { return Vec::new() };
    let is_kernels = |path: &&str| path.starts_with("/proc/") || path.starts_with("/sys/");
    let of = |path: &str| {
        Statement::Write(Write {
            line: simple.line,
            path: path.to_owned(),
            value: value.clone(),
            shown: format!("echo {value} > {path}"),
        })
    };
    files.into_iter().filter(is_kernels).map(of).collect()
}

/// What echo writes into a file of settings, by a redirection or tee.
pub fn configured(simple: &Simple) -> Option<String> {
    const PLACES: [&str; 6] = [
        "/etc/sysctl.conf",
        "/etc/sysctl.d/",
        "/etc/modprobe.d/",
        "/etc/security/limits",
        "/etc/udev/rules.d/",
        "/etc/tmpfiles.d/",
    ];
    let words = simple.command();
    let is_place = |path: &str| PLACES.iter().any(|place| path.starts_with(place));
    match (program(words), &simple.reads) {
        ("tee", Some(reads)) => echoed(reads).filter(|_| words.iter().any(|word| is_place(word))),
        _ => echoed(words).filter(|_| simple.targets.iter().any(|(path, _)| is_place(path))),
    }
}

/// What echo or printf prints.
fn echoed(words: &[String]) -> Option<String> {
    let is_printer = matches!(program(words), "echo" | "printf");
    let arguments = words.iter().skip(1).skip_while(|word| matches!(word.as_str(), "-n" | "-e" | "-ne"));
    is_printer.then(|| {
        let text = arguments.map(String::as_str).collect::<Vec<_>>().join(" ");
        text.trim_end_matches("\\n").to_owned()
    })
}

/// Who opens the file that is written to.
fn redirection(simple: &Simple) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let is_many =
        simple.reads.as_ref().is_some_and(|reads| matches!(program(reads), "pgrep" | "pidof" | "ps" | "awk"));
    let mut words = simple.words.iter().skip_while(|word| *word == "sudo");
    let is_xargs = words.next().is_some_and(|word| word == "xargs");
    let one = |word: &String| {
        word.starts_with("-n")
            || word.starts_with("-I")
            || word.starts_with("-L")
            || word.starts_with("-i")
            || word == "--max-args=1"
    };
    if is_many
        && is_xargs
        && matches!(program(simple.command()), "chrt" | "taskset")
        && !simple.words.iter().any(one)
    {
        let message = "takes one process: xargs hands it all of them, and needs -n 1";
        remarks.push(Remark::new(
            simple.line,
            RemarkId::Malformed,
            Severity::Error,
            shown(&simple.words),
            message,
        ));
    }
    let of = |id, path: &str, message: &str| {
        Remark::new(simple.line, id, Severity::Error, format!("{} > {path}", shown(&simple.words)), message)
    };
    for (path, pattern) in &simple.targets {
        let is_roots =
            ["/proc/", "/sys/", "/etc/", "/boot/", "/dev/cpu"].iter().any(|start| path.starts_with(start));
        if simple.is_run_as_other() && is_roots {
            let message = "the shell opens the file before sudo runs, with the rights of who typed it";
            let value = echoed(simple.command()).unwrap_or_else(|| "...".to_owned());
            remarks.push(
                of(RemarkId::NoEffect, path, message).instead(format!("echo {value} | sudo tee {path}")),
            );
        }
        if *pattern && is_roots {
            let message = "a redirection goes to one file: a shell refuses a pattern that fits several";
            remarks.push(of(RemarkId::Malformed, path, message).instead("a loop over the files, or tee"));
        }
    }
    let reads_value = simple.reads.as_deref().is_some_and(|words| echoed(words).is_some());
    let keeps =
        program(simple.command()) == "tee" && simple.words.iter().any(|word| word == "/dev/cpu_dma_latency");
    if keeps && reads_value {
        let message = "the request lasts as long as the file is open: tee closes it at once";
        remarks.push(of(RemarkId::NoEffect, "/dev/cpu_dma_latency", message).instead(
            "a process that opens the file, writes and stays, or cpu*/power/pm_qos_resume_latency_us",
        ));
    }
    remarks
}

/// The script of `sh -c SCRIPT`, also where find runs it.
fn script(words: &[String]) -> Option<String> {
    if program(words) == "find" {
        let at = words.iter().position(|word| word.starts_with("-exec"))?;
        return script(&words[at + 1..]);
    }
    let is_shell = matches!(program(words), "sh" | "bash" | "dash" | "ash" | "zsh");
    let at = words.iter().position(|word| word.starts_with('-') && word.ends_with('c'))?;
    words.get(at + 1).filter(|_| is_shell).cloned()
}

/// Options of programs whose value is a kernel command line, or words of one.
const KERNEL_WORDS: [(&str, &[&str]); 6] = [
    ("grubby", &["--args"]),
    ("rpm-ostree", &["--append", "--append-if-missing"]),
    ("kernelstub", &["-a", "--add-options"]),
    ("kexec", &["--append", "--command-line"]),
    ("bootloader", &["--append"]),
    ("qemu-system", &["-append"]),
];

fn kernel_words(line: usize, words: &[String]) -> Vec<Statement> {
    let name = program(words);
    let Some((_, options)) = KERNEL_WORDS.iter().find(|(known, _)| name.starts_with(known)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let (option, value) =
            word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value)));
        if options.contains(&option) {
            let text = value.or_else(|| words.get(index + 1).map(String::as_str)).unwrap_or_default();
            found.push(text);
        }
    }
    command_words(line, &found.join(" "))
}

/// chrt(1): the priority is the first operand.
fn chrt(arguments: &[&str]) -> Option<String> {
    const VALUED: [&str; 6] = ["--sched-runtime", "--sched-deadline", "--sched-period", "-T", "-P", "-D"];
    let (own, operands) = own_options(arguments, &VALUED);
    if let Some(message) = late_option(operands, "the priority") {
        return Some(message);
    }
    let has = |short: char, long: &str| has_option(own, short, long);
    let time = |name: &str| value_of(own, &[name]).and_then(|text| text.parse::<u64>().ok());
    let first = operands.first()?;
    let is_search = ["$(pidof", "$(pgrep", "`pidof", "`pgrep"].iter().any(|search| first.starts_with(search));
    let has_more = operands.last().is_some_and(|last| last.parse::<u32>().is_ok());
    if has('p', "--pid") && is_search && has_more {
        return Some("the priority stands before the process: -p PRIORITY PID".to_owned());
    }
    let is_open = first.contains(['$', '<', '{', '`']) || first.chars().all(|c| c.is_ascii_uppercase());
    let target = operands.last().copied().filter(|_| has('p', "--pid")).unwrap_or_default();
    let is_named = target.starts_with(|c: char| c.is_ascii_lowercase()) && !target.contains(['$', '<', '`']);
    if is_named {
        return Some(format!("-p takes a process's number, not `{target}`"));
    }
    let needs = has('f', "--fifo") || has('r', "--rr");
    if needs && !is_open && first.parse::<i64>().is_err() {
        return Some(format!("the priority is missing: `{first}` is none"));
    }
    let priority: i64 = first.parse().ok()?;
    if operands.len() == 1 && has('p', "--pid") {
        return None; // it reads
    }
    if has('d', "--deadline") {
        let time = |long: &str, short: &str| time(long).or_else(|| time(short));
        let (runtime, period) = (time("--sched-runtime", "-T"), time("--sched-period", "-P"));
        let deadline = time("--sched-deadline", "-D").or(period);
        if deadline.zip(period).is_some_and(|(deadline, period)| deadline > period) {
            return Some("the deadline is above the period: the kernel refuses it".to_owned());
        }
        if runtime.zip(deadline).is_some_and(|(runtime, deadline)| runtime > deadline) {
            return Some("the runtime is above the deadline: the kernel refuses it".to_owned());
        }
        return (priority != 0).then(|| "SCHED_DEADLINE has the priority 0 only".to_owned());
    }
    let range = if has('o', "--other") || has('b', "--batch") || has('i', "--idle") { 0..=0 } else { 1..=99 };
    (!range.contains(&priority)).then(|| match range.end() {
        0 => "this policy has the priority 0 only".to_owned(),
        _ => "priorities of SCHED_FIFO and SCHED_RR are 1 to 99".to_owned(),
    })
}

/// A program's own options with their values, and what stands behind: operands, and what is for the program that it runs.
fn own_options<'a, 'b>(arguments: &'a [&'b str], valued: &[&str]) -> (&'a [&'b str], &'a [&'b str]) {
    let mut count = 0;
    while let Some(argument) = arguments.get(count).filter(|argument| argument.starts_with('-')) {
        count += if valued.contains(argument) { 2 } else { 1 };
    }
    arguments.split_at(count.min(arguments.len()))
}

fn has_option(own: &[&str], short: char, long: &str) -> bool {
    own.iter().any(|argument| {
        *argument == long
            || argument.starts_with('-') && !argument.starts_with("--") && argument.contains(short)
    })
}

/// chrt and taskset read their options up to the first operand: an option right behind it would be the command to run.
fn late_option(operands: &[&str], operand: &str) -> Option<String> {
    let option = operands.get(1).filter(|next| next.starts_with('-') && next.len() > 1)?;
    Some(format!("options stand before {operand}: {option} is taken for what to run, or for its number"))
}

/// taskset(1): a mask, with -c a list.
fn taskset(arguments: &[&str]) -> Option<String> {
    let (own, operands) = own_options(arguments, &[]);
    if let Some(message) = late_option(operands, "the CPUs") {
        return Some(message);
    }
    let first = operands.first()?;
    if operands.len() == 1 && has_option(own, 'p', "--pid") {
        return None; // it reads
    }
    if has_option(own, 'p', "--pid") && has_option(own, 'c', "--cpu-list") {
        let numbers: Vec<u32> = operands.iter().filter_map(|word| word.parse().ok()).collect();
        // No kernel of today is built for more CPUs, and processes above the kernel's own have larger numbers.
        if matches!(numbers[..], [first, second] if first >= 1024 && second < 1024) {
            return Some("the CPUs stand before the process: -cp CPUS PID".to_owned());
        }
    }
    if has_option(own, 'c', "--cpu-list") {
        return Kind::Cpus { optional: false }
            .fault(Some(&without_strides(first)), None)
            .map(|fault| format!("-c takes a list: {}", fault.message));
    }
    if lacks_digits(first) {
        return Some(format!("without -c taskset takes `{first}` for a mask: a list of CPUs needs -c"));
    }
    let digits = first.strip_prefix("0x").unwrap_or(first);
    Kind::Mask.fault(Some(digits), None).map(|fault| format!("without -c taskset {}", fault.message))
}

/// taskset(1): `0-6:2` is each second of them.
fn without_strides(list: &str) -> String {
    let range = |item: &str| match item.split_once(':') {
        Some((range, stride)) if stride.parse::<u32>().is_ok() && range.contains('-') => range.to_owned(),
        _ => item.to_owned(),
    };
    list.split(',').map(range).collect::<Vec<_>>().join(",")
}

/// A mask's groups behind the first have eight digits: `2,3` was to be a list.
fn lacks_digits(mask: &str) -> bool {
    mask.split(',').skip(1).any(|group| group.len() < 8 && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Threads of the kernel that belong to a CPU (kthread_create_on_cpu, smpboot): sched_setaffinity refuses them.
fn bound_thread(arguments: &[&str]) -> Option<String> {
    const BOUND: [&str; 7] =
        ["ksoftirqd/", "migration/", "cpuhp/", "ktimers/", "rcuc/", "irq_work/", "idle_inject/"];
    let text = arguments.join(" ");
    let is_search = text.contains("pgrep") || text.contains("pidof");
    let name = BOUND.iter().find(|name| is_search && text.contains(*name))?;
    Some(format!("{name}N is bound to CPU N: the kernel refuses to move it"))
}

/// sysctl(8): each operand is `name=value` in one word.
fn sysctl(line: usize, arguments: &[&str]) -> (Vec<Statement>, Option<String>) {
    let operands: Vec<&&str> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let reads_files =
        arguments.iter().any(|argument| matches!(*argument, "-p" | "--load" | "--system" | "-a"));
    if reads_files {
        return (Vec::new(), None);
    }
    if operands.iter().any(|operand| **operand == "=") {
        let message = "blanks around the = make three arguments of one setting".to_owned();
        return (Vec::new(), Some(message));
    }
    let writes = arguments.iter().any(|argument| matches!(*argument, "-w" | "--write"));
    if let Some(bare) = operands.iter().find(|operand| writes && !operand.contains('=')) {
        let message = format!("{bare} is given no value: a setting is one word, {bare}=VALUE");
        return (Vec::new(), Some(message));
    }
    let settings = operands.iter().filter_map(|operand| operand.split_once('='));
    let statement = |(name, value): (&str, &str)| Statement::Sysctl {
        line,
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let wrong = operands.iter().find(|operand| operand.contains('=') && !operand.contains(['.', '/']));
    let message =
        wrong.map(|_| "a setting begins with its directory, as in kernel.sched_rt_runtime_us".to_owned());
    (settings.map(statement).collect(), message)
}

/// Options of the kernel's scripts/config: what each makes of the symbol behind it, and how many words follow.
const CONFIG_OPTIONS: [(&[&str], Option<&str>, usize); 12] = [
    (&["-e", "--enable"], Some("y"), 1),
    (&["-d", "--disable"], Some("n"), 1),
    (&["-m", "--module"], Some("m"), 1),
    (&["--set-val"], None, 2),
    (&["--set-str"], None, 2),
    (&["-u", "--undefine"], None, 1),
    (&["-s", "--state"], None, 1),
    (&["-E", "--enable-after", "-D", "--disable-after", "-M", "--module-after"], None, 2),
    (&["-k", "--keep-case"], None, 0),
    (&["--refresh"], None, 0),
    (&["--file"], None, 1),
    (&["-h", "--help"], None, 0),
];

/// The symbols that scripts/config sets, or what is wrong with its options.
fn kernel_config(line: usize, arguments: &[&str]) -> (Vec<Statement>, Option<String>) {
    let mut statements = Vec::new();
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let Some((names, value, count)) = CONFIG_OPTIONS.iter().find(|(names, ..)| names.contains(option))
        else {
            return (
                statements,
                Some(format!(
                    "scripts/config has no {option}: --enable, --disable, --module, --set-val, --set-str"
                )),
            );
        };
        let words: Vec<&str> = rest.by_ref().take(*count).copied().collect();
        let value = match (names[0], words.as_slice()) {
            ("--set-val", [_, value]) => Some((*value).to_owned()),
            ("--set-str", [_, value]) => Some(format!("\"{value}\"")),
            _ => value.map(str::to_owned),
        };
        if let Some((symbol, value)) = words.first().zip(value) {
            let name = symbol.strip_prefix("CONFIG_").unwrap_or(symbol).to_owned();
            statements.push(Statement::Symbol(Symbol { line, name, value: Some(value) }));
        }
    }
    (statements, None)
}
