//! Data to standard output, words to standard error, and a closed pipe in silence.
#![allow(clippy::print_stderr)]

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use record::verdict::Verdict;
use report::Style;
use runner::Outcome;

use clap::error::{ContextKind, ContextValue};
use failure::Error;

/// JSON as it leaves the program, whoever made it: names of others in it are obeyed by no viewer. Other text as it is.
fn exported(text: &str) -> Cow<'_, str> {
    let is_json = text.starts_with(['{', '[']) && !text.is_ascii();
    if is_json { printable::json(text).into() } else { text.into() }
}

/// Writes data, for a terminal without what it would obey but our own colours. A reader that has gone away is no error:
/// returns `false`.
pub fn data(text: &str) -> io::Result<bool> {
    let text = exported(text);
    let text = if is_terminal(Stream::Output) { printable::coloured(&text) } else { Cow::Borrowed(&*text) };
    passed_on(text.as_bytes())
}

/// To standard output, all of it. One that was closed before we began takes nothing, whatever the standard library says.
fn put(bytes: &[u8]) -> io::Result<()> {
    if sys::standard::output_was_closed() && !bytes.is_empty() {
        return Err(sys::Errno::BADF.into());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Where output was lost, and what to do.
pub fn lost(error: &io::Error) -> Error {
    let hint = match files::hint(error) {
        "" if sys::standard::output_was_closed() => {
            "standard output is closed: send it to a file, or to /dev/null"
        }
        "" => "what was measured is in the record, if one was written: worstcase report DIR",
        hint => hint,
    };
    Error::new(format!("write to standard output: {error}"), hint)
}

fn passed_on(bytes: &[u8]) -> io::Result<bool> {
    match put(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Draws lines over the last `back` of those that were drawn, on a terminal: what was longer goes. As [`data`] otherwise.
pub fn redraw(back: usize, text: &str) -> io::Result<bool> {
    let up = if back > 0 { format!("\x1b[{back}A") } else { String::new() };
    let lines = printable::coloured(text).lines().map(|line| format!("{line}\x1b[K\n")).collect::<String>();
    passed_on((up + &lines).as_bytes())
}

/// Writes what another program printed: as it is, or printable where it goes to a terminal. A reader that has gone away
/// is no error.
pub fn bytes(stream: Stream, bytes: &[u8]) -> Result<(), Error> {
    let text = is_terminal(stream).then(|| String::from_utf8_lossy(bytes));
    let text = text.as_ref().map(|text| printable::lines(text));
    let bytes = text.as_ref().map_or(bytes, |text| text.as_bytes());
    match stream {
        Stream::Output => passed_on(bytes).map(drop).map_err(|error| lost(&error)),
        // Words that nobody reads change nothing.
        Stream::Error => {
            let _ = io::stderr().lock().write_all(bytes);
            Ok(())
        }
    }
}

/// Writes data at the end of a command; output that is lost is an error.
pub fn final_data(text: &str) -> Result<(), Error> {
    data(text).map(drop).map_err(|error| lost(&error))
}

/// Writes a file that the user named. One that the command reads, or that lies in a directory which it reads and holds what was
/// measured, is refused: `read` are the paths that it was given.
pub fn named_file(path: &Path, bytes: &[u8], read: &[&Path]) -> Result<(), Error> {
    check_file(path, read)?;
    files::write_named(path, bytes).map_err(|error| unwritable(path, &error.source))
}

/// As far as can be seen before it is written, whether [`named_file`] can: for commands that take long.
pub fn check_file(path: &Path, read: &[&Path]) -> Result<(), Error> {
    let Ok(there) = std::fs::metadata(path) else {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return std::fs::metadata(above).map(drop).map_err(|error| unwritable(path, &error));
    };
    if there.is_dir() {
        return Err(unwritable(path, &ErrorKind::IsADirectory.into()));
    }
    if there.is_file() && read.iter().any(|read| holds(read, path)) {
        let message = format!("write {}: this file is read, and would be lost", path.display());
        return Err(Error::new(message, "name another file: what was measured is never overwritten"));
    }
    Ok(())
}

/// Files of a directory that hold what was measured. Pages are made from them.
const MEASURED: [&str; 6] = [
    record::store::RECORD,
    record::store::JOURNAL,
    record::cost::FILE,
    record::ways::FILE,
    lab::state::FILE,
    "samples",
];

/// Whether `file` is `read`, or holds what was measured in that directory or in one below it, by whatever name or link.
fn holds(read: &Path, file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let identity = |file: &Path| std::fs::metadata(file).ok().map(|of| (of.dev(), of.ino()));
    let is_it = |other: &Path| identity(other).is_some_and(|other| Some(other) == identity(file));
    let directory = if read.is_dir() { Some(read) } else { read.parent() };
    let is_below = || {
        let real = std::fs::canonicalize(file).ok()?;
        let name = real.file_name()?.to_str()?;
        Some(MEASURED.contains(&name) && real.starts_with(std::fs::canonicalize(directory?).ok()?))
    };
    let beside = |directory: &Path| MEASURED.iter().any(|name| is_it(&directory.join(name)));
    is_it(read) || directory.is_some_and(beside) || is_below() == Some(true)
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::NotFound => "make its directory first, or name a file in one that is there",
        ErrorKind::NotADirectory => "name a file in a directory",
        ErrorKind::IsADirectory => "name a file, not a directory",
        _ => files::hint(error),
    };
    let reason = error.raw_os_error().map_or_else(|| error.kind().to_string(), |_| error.to_string());
    Error::new(format!("write {}: {reason}", path.display()), hint)
}

/// Writes a page. One that nobody named a place for is no error where it cannot be written: what it shows is kept elsewhere.
/// `read` is what it was made from.
pub fn page(path: &Path, page: &str, is_named: bool, read: &[&Path]) -> Result<(), Error> {
    if is_named {
        named_file(path, page.as_bytes(), read)?;
    } else if let Err(why) = beside(path, page) {
        words(&format!("note: no page written, {why}: worstcase report DIR --html FILE"));
        return Ok(());
    }
    words(&format!("Report  {}", path.display()));
    Ok(())
}

/// Writes a page beside what it shows, unless that is another user's, who did not ask for it.
fn beside(path: &Path, page: &str) -> Result<(), String> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(record::store::PAGE);
    let opened = files::Directory::open(directory).map_err(|error| error.to_string())?;
    match opened.is_ours() {
        Ok(true) => opened.write_whole(name, page.as_bytes()).map_err(|error| error.to_string()),
        Ok(false) => Err(format!("{} belongs to another user", directory.display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether [`news`] and [`progress`] are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only results, warnings and errors are written, if `quiet`.
pub fn quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether the user wants results only.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes what a user may do without: announcements, progress, where things lie.
pub fn news(text: &str) {
    if !is_quiet() {
        words(text);
    }
}

/// News of some length, in lines that the terminal holds.
pub fn paragraph(text: &str) {
    news(report::text::paragraph(text, 0, style(Stream::Error).width).trim_end());
}

/// Writes words, whoever they are from.
pub fn words(text: &str) {
    styled(&printable::lines(text));
}

/// Says what a user must know, in lines that the terminal holds.
pub fn warning(text: &str) {
    words(&folded(&format!("warning: {text}"), stated_width(Stream::Error)));
}

/// Text whose lines are as wide as the terminal at most: longer ones go on below. As it is where nobody said how wide one is: a
/// program may read it.
fn folded(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let fitting = |line: &str| match line.chars().count() <= width {
        true => format!("{line}\n"),
        false => report::text::paragraph(line, 0, width),
    };
    text.lines().map(fitting).collect::<String>().trim_end().to_owned()
}

/// The width of the terminal, or that COLUMNS names: none for a pipe of which nobody said one.
pub fn stated_width(stream: Stream) -> Option<usize> {
    is_terminal(stream).then(|| style(stream).width).or_else(asked_width)
}

/// The width that COLUMNS names.
fn asked_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.parse().ok().filter(|&columns| columns >= 20)
}

/// Writes words of our own, with colours. Names of others may stand among them: of what a terminal obeys, colours alone pass.
pub fn styled(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable::coloured(text));
}

/// Whether lines can be drawn over: on a terminal that knows how (`TERM=dumb` says it does not).
pub fn can_redraw(stream: Stream) -> bool {
    is_terminal(stream) && !is_dumb()
}

fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

/// Draws over the line that was drawn last: where [`can_redraw`].
pub fn progress(text: &str) {
    if is_quiet() {
        return;
    }
    let width = style(Stream::Error).width.saturating_sub(1);
    let text: String = printable::line(text).chars().take(width).collect();
    let _ = write!(io::stderr(), "\r{text}\x1b[K");
}

/// Takes away the line that [`progress`] drew.
pub fn end_progress() {
    if is_quiet() {
        return;
    }
    let _ = write!(io::stderr(), "\r\x1b[K");
}

/// Says what went wrong and what to do.
pub fn error(error: &Error) {
    let width = is_terminal(Stream::Error).then(|| style(Stream::Error).width);
    words(&folded(&format!("error: {}", error.message), width));
    hint(&error.hint);
}

/// Says what to do about what was said before. Commands in it stay whole.
pub fn hint(hint: &str) {
    let hint = fitting(hint, rustix::process::geteuid().is_root());
    if !hint.is_empty() {
        words(&format!("  hint: {hint}"));
    }
}

/// The hint for who reads it: what root was refused, root is not asked to try as root.
fn fitting(hint: &str, is_root: bool) -> String {
    const AS_ROOT: [&str; 2] = ["run as root", "run it as root"];
    const TO_ROOT: &str =
        "root was refused: a capability is missing, or a security module or the kernel's lockdown forbids it";
    let rest = AS_ROOT.iter().find_map(|words| hint.strip_prefix(words)).filter(|_| is_root);
    rest.map_or_else(|| hint.to_owned(), |rest| format!("{TO_ROOT}{rest}"))
}

/// Says what went wrong in a run, has it shown, and gives its exit code. Output that was lost is an error, unless the run
/// has failed anyway.
pub fn conclude(outcome: &Outcome, show: impl FnOnce() -> Result<(), Error>) -> ExitCode {
    let verdict = outcome.record.judgement.verdict;
    outcome.failure.iter().for_each(error);
    let shown = show();
    // Both change no figure, and would scroll away above the tables.
    outcome.stop_failure.iter().for_each(|failure| warning(&failure.to_string()));
    outcome.explanation_failure.iter().for_each(|failure| {
        warning(&failure.message);
        hint(&failure.hint);
    });
    ExitCode::from(match shown {
        Ok(()) => outcome.exit_code(),
        Err(lost) => {
            error(&lost);
            verdict.max(Verdict::Error).exit_code()
        }
    })
}

/// The exit code of a command, after it said what went wrong.
pub fn ended(result: Result<ExitCode, Error>) -> ExitCode {
    result.unwrap_or_else(|wrong| {
        error(&wrong);
        ExitCode::from(2)
    })
}

/// Help and version go to standard output; a wrong argument is exit code 2, and so is help that is lost.
pub fn usage(mut error: clap::Error) -> ExitCode {
    without_tip_of_values(&mut error);
    let is_wrong = error.use_stderr();
    let printed = match !is_wrong && sys::standard::output_was_closed() {
        true => Err(sys::Errno::BADF.into()),
        false => error.print(),
    };
    match printed {
        // Where words cannot be written, this cannot be said either.
        Err(error) if !is_wrong && error.kind() != ErrorKind::BrokenPipe => ended(Err(lost(&error))),
        _ => ExitCode::from(if is_wrong { 2 } else { 0 }),
    }
}

/// Takes away the advice to write a mistyped option behind `--`: nothing here takes a value that begins with dashes so.
fn without_tip_of_values(error: &mut clap::Error) {
    let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) else { return };
    let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value")).collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Where text goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Data.
    Output,
    /// Words.
    Error,
}

/// Whether a person reads the stream as it is written.
pub fn is_terminal(stream: Stream) -> bool {
    match stream {
        Stream::Output => io::stdout().is_terminal(),
        Stream::Error => io::stderr().is_terminal(),
    }
}

/// What the stream can show: colours only on a terminal and without NO_COLOR, characters beyond ASCII only where the
/// locale says UTF-8.
pub fn style(stream: Stream) -> Style {
    const PIPE_WIDTH: usize = 120;
    let terminal = is_terminal(stream);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    let width = window(stream).map(|size| usize::from(size.ws_col)).filter(|&width| width >= 20);
    Style {
        colour: terminal && variable("NO_COLOR").is_none() && !is_dumb(),
        width: width.or_else(asked_width).unwrap_or(if terminal { 80 } else { PIPE_WIDTH }),
        unicode: locale.to_uppercase().replace('-', "").contains("UTF8"),
    }
}

/// Lines of the terminal; as many as there may be where it does not say.
pub fn height(stream: Stream) -> usize {
    window(stream).map(|size| usize::from(size.ws_row)).filter(|&rows| rows > 0).unwrap_or(usize::MAX)
}

fn window(stream: Stream) -> Option<rustix::termios::Winsize> {
    let size = match stream {
        Stream::Output => rustix::termios::tcgetwinsize(io::stdout()),
        Stream::Error => rustix::termios::tcgetwinsize(io::stderr()),
    };
    size.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_asked_to_run_it_as_root() {
        let hint = "run as root, or name a place that you may use";
        assert_eq!(fitting(hint, false), hint);
        let to_root = fitting(hint, true);
        assert!(to_root.starts_with("root was refused: a capability is missing"), "{to_root}");
        assert!(to_root.ends_with(", or name a place that you may use"), "{to_root}");
        assert_eq!(fitting("give another file", true), "give another file");
    }

    #[test]
    fn lines_longer_than_the_terminal_go_on_below_and_others_stay_as_they_are() {
        let text = "error: cannot read it\n  | a mark below\nand a line that is longer than that";
        assert_eq!(folded(text, None), text, "in a pipe");
        assert_eq!(
            folded(text, Some(24)),
            "error: cannot read it\n  | a mark below\nand a line that is\nlonger than that"
        );
    }

    #[test]
    fn json_leaves_without_what_a_viewer_obeys() {
        let json = "{\"name\":\"a\u{9b}2Jb\u{202e}c\u{e9}\"}";
        assert_eq!(exported(json), "{\"name\":\"a\\u009b2Jb\\u202ec\u{e9}\"}");
        assert_eq!(exported("words \u{e9}"), "words \u{e9}");
    }
}
