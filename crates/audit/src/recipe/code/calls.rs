//! Calls found in a program's text, without a parser of the language: a known name, and its arguments up to the bracket that closes.

/// A call as it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its first line, from 1.
    pub line: usize,
    pub name: &'static str,
    pub arguments: Vec<String>,
    /// Where its name begins, and where what follows it begins.
    pub begin: usize,
    pub end: usize,
}

/// Functions of C, and of Python's module `os`, that set what touches latency.
const NAMES: [&str; 32] = [
    "sched_setscheduler",
    "sched_setparam",
    "sched_setaffinity",
    "sched_setattr",
    "sched_param",
    "pthread_setschedparam",
    "pthread_setschedprio",
    "pthread_setaffinity_np",
    "pthread_attr_init",
    "pthread_attr_setschedpolicy",
    "pthread_attr_setschedparam",
    "pthread_attr_setinheritsched",
    "pthread_attr_setaffinity_np",
    "pthread_attr_setstacksize",
    "pthread_attr_setscope",
    "pthread_create",
    "pthread_mutexattr_setprotocol",
    "pthread_mutex_init",
    "mlockall",
    "mlock",
    "munlockall",
    "mallopt",
    "clock_nanosleep",
    "clock_gettime",
    "timerfd_create",
    "timerfd_settime",
    "timer_create",
    "timer_settime",
    "prctl",
    "setrlimit",
    "CPU_SET",
    "CPU_ZERO",
];

/// The same text with blanks for C's comments, and every line where it was. A program's address in a text has `//`, too.
pub fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(line_comment(rest)).min() {
        code += &rest[..at];
        let end = match rest[at..].starts_with("/*") {
            true => rest[at..].find("*/").map_or(rest.len(), |end| at + end + 2),
            false => rest[at..].find('\n').map_or(rest.len(), |end| at + end),
        };
        code.extend(rest[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    code + rest
}

fn line_comment(text: &str) -> Option<usize> {
    text.match_indices("//").map(|(at, _)| at).find(|at| !text[..*at].ends_with(':'))
}

/// All calls with arguments, in their order. A name in a sentence (`call mlockall() first`) has none.
pub fn find(code: &str) -> Vec<Call> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut calls = Vec::new();
    for (begin, _) in code.match_indices('(') {
        let before = code[..begin].trim_end_matches(' ');
        let start = before.trim_end_matches(is_name).len();
        let Some(name) = NAMES.into_iter().find(|name| *name == &before[start..]) else { continue };
        let Some((arguments, end)) = arguments(code, begin + 1) else { continue };
        let line = code[..start].matches('\n').count() + 1;
        if !arguments.is_empty() {
            calls.push(Call { line, name, arguments, begin: start, end });
        }
    }
    calls
}

/// The arguments from behind the bracket that opens, and where the text goes on.
fn arguments(code: &str, from: usize) -> Option<(Vec<String>, usize)> {
    let (mut depth, mut quoted) = (0, None);
    let mut found = vec![String::new()];
    for (at, c) in code[from..].char_indices() {
        match (quoted, c) {
            (Some(quote), c) if c == quote => quoted = None,
            (None, '"' | '\'') => quoted = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                let found: Vec<String> = found.iter().map(|text| text.trim().to_owned()).collect();
                let is_empty = found.iter().all(String::is_empty);
                return Some((if is_empty { Vec::new() } else { found }, from + at + 1));
            }
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut()?.push(c);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_arguments_and_lines() {
        let code = without_comments(
            "/* a\n b(1) */ int x; // mlockall(1)\nif (mlockall(MCL_CURRENT | f(a, b)) < 0)\n",
        );
        let calls = find(&code);
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].line, calls[0].name), (3, "mlockall"));
        assert_eq!(calls[0].arguments, ["MCL_CURRENT | f(a, b)"]);
        assert_eq!(code[calls[0].end..].trim(), "< 0)");
        assert_eq!(find("\u{104d8}("), []);
        assert_eq!(find("call mlockall() first"), []);
        assert_eq!(find("mlockall(MCL_CURRENT"), []);
    }
}
