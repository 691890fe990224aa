//! What other CPUs have a CPU do, and who of them.

use record::{Certainty, Class, Piece};
use units::Nanos;

use super::{Found, Judge};
use crate::event::{Event, Frame, Kind};

impl Judge<'_> {
    /// A function that another CPU calls, or this one for itself.
    pub(super) fn call(&self, piece: &Piece, function: &str) -> Found {
        let is_it = |kind: &Kind| matches!(kind, Kind::Enter(Frame::Call(name)) if name == function);
        let sender = self.sender(piece, is_it, |kind| match kind {
            Kind::Queue { cpu, from, function: queued } => {
                (*cpu == self.window.cpu && queued == function).then_some(from)
            }
            _ => None,
        });
        Found::new(Class::Call, function, Certainty::Sure, sent_by(sender))
    }

    /// An interrupt that is no timer's.
    pub(super) fn interrupt(&self, piece: &Piece, name: &str) -> Found {
        if !name.starts_with("call_function") && name != "ipi" {
            return Found::new(Class::Interrupt, name, Certainty::Sure, "its events");
        }
        let is_it = |kind: &Kind| matches!(kind, Kind::Enter(Frame::Vector(vector)) if vector == name);
        let sender = self.sender(piece, is_it, |kind| match kind {
            Kind::Ipi { to, from, .. } => to.contains(self.window.cpu).then_some(from),
            _ => None,
        });
        Found::new(Class::Call, name, Certainty::Sure, sent_by(sender))
    }

    /// The last thread that had this CPU do what a piece does, since it last did it before.
    fn sender<'a>(
        &'a self,
        piece: &Piece,
        is_it: impl Fn(&Kind) -> bool,
        from_where: impl Fn(&'a Kind) -> Option<&'a String>,
    ) -> Option<String> {
        let begin = self.begin_of(piece);
        let here = self.window.of(self.window.cpu).iter();
        let mut begun = here.rev().filter(|event| event.at <= begin && is_it(&event.kind));
        let until = begun.next()?.at;
        let since = begun.next().map_or(Nanos::ZERO, |event| event.at);
        let sent = self.window.all().filter(|event| event.at >= since && event.at <= until);
        let sent = sent.filter_map(|event| from_where(&event.kind).map(|from| (event, from)));
        sent.max_by_key(|(event, _)| event.at).map(|(event, from)| self.sender_words(event, from))
    }

    /// A thread that sent something: its name, CPU and where in the kernel it did.
    pub(super) fn sender_words(&self, event: &Event, from: &str) -> String {
        format!("{} [{}] on CPU {} in {from}", self.name_of(event.task), event.task, event.cpu)
    }
}

fn sent_by(sender: Option<String>) -> String {
    sender.map_or("its events".to_owned(), |sender| format!("sent by {sender}"))
}
