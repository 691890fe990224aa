//! Locked memory, mutexes, and the request for short exit latencies.

use super::super::{Remark, RemarkId};
use super::Program;

/// What is wrong with them.
pub fn remarks(program: &Program) -> Vec<Remark> {
    let found =
        [flags(program), later(program), executed(program), forked(program), slack(program), mutex(program)];
    found.into_iter().flatten().chain(request(program)).collect()
}

/// Flags of mlockall() (mlockall(2)).
fn flags(program: &Program) -> Option<Remark> {
    let with = |flags: &'static [&str]| {
        program.all("mlockall").find(move |call| flags.contains(&call.arguments[0].as_str()))
    };
    let (line, message) = match (with(&["0", "MCL_ONFAULT"]), with(&["MCL_FUTURE"])) {
        (Some(call), _) => (call.line, "is refused: MCL_CURRENT or MCL_FUTURE belongs to it"),
        (None, Some(call)) => (call.line, "locks what will be mapped, and nothing that is mapped now"),
        (None, None) => return None,
    };
    Some(program.error(line, RemarkId::Malformed, message).instead("mlockall(MCL_CURRENT | MCL_FUTURE)"))
}

/// What is allocated behind mlockall(MCL_CURRENT) alone.
fn later(program: &Program) -> Option<Remark> {
    let call = program.all("mlockall").find(|call| call.arguments[0] == "MCL_CURRENT")?;
    let behind = &program.code[call.end..];
    let allocates =
        ["malloc(", "calloc(", "mmap(", "pthread_create("].iter().any(|name| behind.contains(name));
    let before: Vec<&str> = program.text.lines().take(call.line).collect();
    let lower = before.join(" ").to_lowercase();
    let is_promised = ["later", "from now on", "future allocation", "all future", "malloc() after"]
        .iter()
        .any(|word| lower.contains(word));
    ((allocates || is_promised) && !program.code.contains("MCL_FUTURE")).then(|| {
        let message = "locks what is mapped now: what the program maps below is not locked";
        program.error(call.line, RemarkId::NoEffect, message).instead("mlockall(MCL_CURRENT | MCL_FUTURE)")
    })
}

/// Locks end with execve() and do not pass to children (mlockall(2)).
fn executed(program: &Program) -> Option<Remark> {
    let call = program.all("mlockall").next()?;
    let behind = &program.code[call.end..];
    let executes =
        ["execv(", "execvp(", "execve(", "execl(", "execlp("].iter().any(|name| behind.contains(name));
    executes.then(|| {
        let message =
            "locks end when the process executes another program: that one has to lock its own memory";
        program.error(call.line, RemarkId::NoEffect, message)
    })
}

/// daemon() and fork() leave a child that has locked nothing (mlockall(2), daemon(3)).
fn forked(program: &Program) -> Option<Remark> {
    let call = program.all("mlockall").last()?;
    let behind = &program.code[call.end..];
    let at = behind
        .find("daemon(")
        .filter(|at| !behind[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))?;
    let goes_on = behind[at..].len() > "daemon(0, 0);".len();
    goes_on.then(|| {
        let message = "locks do not pass to a child: daemon() goes on in one, which has locked nothing";
        program.error(call.line, RemarkId::NoEffect, message).instead("mlockall() behind daemon()")
    })
}

/// A timer slack of 0 stands for the default (PR_SET_TIMERSLACK(2const)).
fn slack(program: &Program) -> Option<Remark> {
    let is_slack = |arguments: &[String]| {
        arguments[0] == "PR_SET_TIMERSLACK"
            && arguments.get(1).is_some_and(|text| matches!(text.as_str(), "0" | "0UL" | "0L"))
    };
    let call = program.all("prctl").find(|call| is_slack(&call.arguments))?;
    let message = "0 puts the default back, 50 us: the least slack is 1 ns";
    Some(program.error(call.line, RemarkId::NoEffect, message).instead("prctl(PR_SET_TIMERSLACK, 1)"))
}

/// An attribute with priority inheritance that the mutex is made without.
fn mutex(program: &Program) -> Option<Remark> {
    program.all("pthread_mutexattr_setprotocol").next()?;
    let is_null =
        |text: Option<&String>| text.is_some_and(|text| matches!(text.as_str(), "NULL" | "nullptr" | "0"));
    let mut inits = program.all("pthread_mutex_init");
    let call = inits.next().filter(|call| is_null(call.arguments.get(1)))?;
    let message = "the mutex is made without the attribute: it does not inherit priorities";
    Some(program.error(call.line, RemarkId::NoEffect, message))
}

/// /dev/cpu_dma_latency: the request lasts as long as the file is open.
fn request(program: &Program) -> Option<Remark> {
    let lines: Vec<&str> = program.code.lines().collect();
    let at = lines.iter().position(|line| line.contains("open(") && line.contains("cpu_dma_latency"))?;
    let error = |line: usize, message: &str| Some(program.error(line + 1, RemarkId::NoEffect, message));
    if lines[at].contains("O_RDONLY") {
        return error(at, "the file is opened for reading: writing the request is refused");
    }
    if lines[at].contains(").write(") {
        return error(at, "the request lasts as long as the file is open: nothing keeps it here");
    }
    let statements =
        lines.iter().enumerate().skip(at + 1).filter(|(_, line)| !matches!(line.trim(), "" | "}"));
    let mut statements = statements.skip_while(|(_, line)| !line.contains("write("));
    statements.next()?;
    let is_block = lines[at].trim_start().starts_with("with ");
    let ended = "the request ends with the block: it lasts as long as the file is open";
    let Some((index, next)) = statements.next() else { return is_block.then(|| error(at, ended))? };
    // A way out where something has failed gives the request up.
    let fails =
        lines.iter().skip(index + 1).take(2).any(|line| line.contains("return -") || line.contains("exit("));
    let is_failure =
        fails && lines[..index].iter().rev().take(2).any(|line| line.trim_start().starts_with("if"));
    if is_failure {
        return None;
    }
    let is_closed = next.trim_start().starts_with("close(") || next.trim().ends_with(".close()");
    if is_closed {
        return error(index, "the request ends here: it lasts as long as the file is open");
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let ends_block = is_block && indent(next) <= indent(lines[at]);
    if ends_block { error(at, ended) } else { None }
}
