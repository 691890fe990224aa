//! What the supervisor and its workers tell the parent: JSON, one line each, short enough to be written whole.

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::Containment;

/// The longest text sent: a line stays below PIPE_BUF (4096 at least, pipe(7)), so that lines of several writers do not mix.
const LONGEST_TEXT: usize = 1000;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Message {
    /// Workers are being started, contained in this way.
    Contained(Containment),
    /// A worker of this stressor met an error.
    Failure { stressor: usize, text: String },
    /// A program has been started, at this step of its sequence.
    Step { stressor: usize, step: usize },
    /// The supervisor cannot go on.
    Fatal(String),
}

/// The pipe up. Never blocks: what a parent that has stopped reading leaves no room for is lost.
#[derive(Debug)]
pub(crate) struct Reporter(OwnedFd);

impl Reporter {
    pub fn new(pipe: OwnedFd) -> Self {
        // A pipe that cannot be made non-blocking still works.
        let _ = rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK);
        Self(pipe)
    }

    pub fn tell(&self, message: &Message) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            // The parent may be gone; there is nobody else to tell.
            let _ = rustix::io::write(&self.0, &line);
        }
    }

    pub fn failure(&self, stressor: usize, text: &str) {
        let text: String = printable::line(text).chars().take(LONGEST_TEXT).collect();
        self.tell(&Message::Failure { stressor, text });
    }
}

/// Takes the whole lines out of `bytes`; lines that are no messages are left out.
pub(crate) fn take_messages(bytes: &mut Vec<u8>) -> Vec<Message> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let lines: Vec<u8> = bytes.drain(..whole).collect();
    lines.split(|&byte| byte == b'\n').filter_map(|line| record::json::read(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::pipe::{pipe, read_available};

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (read, write) = pipe().unwrap();
        let reporter = Reporter::new(write);
        let mut bytes = Vec::new();
        reporter.tell(&Message::Contained(Containment::Walk));
        reporter.failure(3, "a\nb");
        assert!(!read_available(read.as_fd(), &mut bytes));
        bytes.extend_from_slice(b"{\"fatal\":\"half");
        let messages = take_messages(&mut bytes);
        assert_eq!(messages[0], Message::Contained(Containment::Walk));
        assert_eq!(messages[1], Message::Failure { stressor: 3, text: "a b".into() });
        assert_eq!(bytes, b"{\"fatal\":\"half");
        drop(reporter);
        assert!(read_available(read.as_fd(), &mut bytes));
    }

    #[test]
    fn a_parent_that_does_not_read_does_not_hold_up_a_worker() {
        let (_read, write) = pipe().unwrap();
        let reporter = Reporter::new(write);
        (0..2000).for_each(|_| reporter.failure(0, &"x".repeat(5000)));
    }
}
