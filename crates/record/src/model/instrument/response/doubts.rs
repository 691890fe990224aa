//! What harms the figures of the response probe.

use units::Nanos;

use crate::WarningId as Id;
use crate::{Scenario, Warning};

use super::{PartName, ResponseSeries, ResponseSetup};

/// A peer that has not answered for so long at the end of a run is gone.
const GONE: Nanos = Nanos::from_millis(500);
/// And for so many cycles.
const GONE_CYCLES: u64 = 5;

/// Warnings about each thread that sent frames.
pub(super) fn of_scenario(setup: &ResponseSetup, scenario: &Scenario) -> Vec<Warning> {
    let series = scenario.series.iter().enumerate();
    let responses =
        series.filter_map(|(index, series)| Some((scenario.thread_name(index), series.response()?)));
    responses
        .flat_map(|(who, response)| {
            [
                peer_left(&who, setup, response),
                frames_lost(&who, response),
                frames_astray(&who, response),
                cycles_skipped(&who, response),
                parts_unknown(&who, response),
                not_stamped_by_card(&who, setup, response),
            ]
        })
        .flatten()
        .collect()
}

fn peer_left(who: &str, setup: &ResponseSetup, response: &ResponseSeries) -> Option<Warning> {
    let silent = response.frames.silent_cycles;
    let length = setup.interval.saturating_mul(silent);
    let refused = match response.frames.refused {
        0 => String::new(),
        refused => format!("; {refused} times its host said that nobody listens there"),
    };
    (silent >= GONE_CYCLES && length >= GONE).then(|| {
        Warning::inconclusive(
            Id::PeerLeft,
            format!("{who}: {} answered nothing in the last {}{refused}", setup.peer, length.rounded()),
            "is `worstcase echo` still running there, and the link up? start it again, and measure again",
        )
    })
}

fn frames_lost(who: &str, response: &ResponseSeries) -> Option<Warning> {
    let frames = &response.frames;
    (frames.lost > 0 || frames.not_sent > 0).then(|| {
        Warning::note(
            Id::FramesLost,
            format!(
                "{who}: {} of {} frames were never answered, and the kernel did not send {} more",
                frames.lost, frames.sent, frames.not_sent
            ),
            "look for drops (`ip -s link`, `ethtool -S`, `nstat -az`) on both hosts; longer queues or fewer frames a cycle",
        )
    })
}

fn frames_astray(who: &str, response: &ResponseSeries) -> Option<Warning> {
    let frames = &response.frames;
    let kinds = [
        (frames.late, "came after their cycle"),
        (frames.reordered, "came after an answer to a later frame"),
        (frames.duplicated, "came again"),
        (frames.foreign, "were answers to nothing that was sent"),
    ];
    let seen: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    (!seen.is_empty()).then(|| {
        Warning::note(
            Id::FramesAstray,
            format!("{who}: of the frames that came in, {}", seen.join(", ")),
            "late ones: a longer --patience shows how late; the others: two ways through the network, or another sender",
        )
    })
}

fn cycles_skipped(who: &str, response: &ResponseSeries) -> Option<Warning> {
    (response.skipped > 0).then(|| {
        Warning::note(
            Id::CyclesSkipped,
            format!(
                "{who}: {} of {} cycles were over before it got its CPU, and no frame of theirs was sent",
                response.skipped, response.expected
            ),
            "this host was late, not the network: `worstcase bench` shows how late its threads wake up",
        )
    })
}

fn parts_unknown(who: &str, response: &ResponseSeries) -> Option<Warning> {
    let unsplit = &response.unsplit;
    let reasons = [
        (unsplit.clock_set, "CLOCK_REALTIME, the clock of the time stamps, was set meanwhile"),
        (unsplit.not_stamped_sent, "the driver did not stamp the frame when it was sent"),
        (unsplit.not_stamped_received, "the answer was not stamped"),
        (unsplit.contradictory, "the stamps lie outside the response"),
    ];
    let seen: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count}: {why}"))
        .collect();
    (!seen.is_empty()).then(|| {
        let all = response.split.count.saturating_add(unsplit.count());
        Warning::note(
            Id::PartsUnknown,
            format!("{who}: {} of {all} responses have no parts ({})", unsplit.count(), seen.join("; ")),
            "the responses themselves stand; parts need a driver with software time stamps (`ethtool -T`) and a clock that is not set",
        )
    })
}

/// A card that does not stamp all that it was asked to: what it did not stamp is part of the wire.
fn not_stamped_by_card(who: &str, setup: &ResponseSetup, response: &ResponseSeries) -> Option<Warning> {
    let all = response.split.count;
    let stamped = |name| response.part(name).map_or(0, |part| part.summary().count);
    let (sent, received) = (stamped(PartName::Transmit), stamped(PartName::Deliver));
    (setup.hardware_stamps && sent.min(received) < all).then(|| {
        Warning::note(
            Id::PartsUnknown,
            format!("{who}: of {all} responses that have parts, the card stamped {sent} frames and {received} answers"),
            "the rest of its share is in the part wire; `ethtool -T` shows what the card can stamp: some only PTP (--ptp-frames), some one frame at a time (--frames 1); `hwstamp_ctl -i NAME`, what it is set to",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::response::{Frames, Part, Unsplit};
    use crate::verdict::tests::{doubts, scenario};
    use crate::{Effect, Own, Setup};

    fn ids(response: ResponseSeries) -> Vec<(Id, Effect)> {
        let mut scenario = scenario(&[5_000]);
        scenario.head.planned.setup = Setup::Response(ResponseSetup {
            interval: Nanos::from_millis(1),
            ..crate::instrument::response::tests::setup()
        });
        scenario.series[0].own = Own::Response(response);
        doubts(&scenario)
    }

    #[test]
    fn a_card_that_stamped_less_than_it_was_asked_to_is_a_note() {
        let setup = ResponseSetup { hardware_stamps: true, ..crate::instrument::response::tests::setup() };
        let stamped = |sent: u64, received: u64| {
            let took = |count| {
                let mut took = histogram::Histogram::default();
                (0..count).for_each(|_| took.record(Nanos(7)));
                took
            };
            let parts = vec![
                Part { name: PartName::Transmit, took: took(sent) },
                Part { name: PartName::Deliver, took: took(received) },
            ];
            let split = histogram::Summary { count: 3, ..histogram::Summary::default() };
            let series = ResponseSeries { parts, split, ..ResponseSeries::default() };
            not_stamped_by_card("it", &setup, &series).map(|warning| warning.evidence)
        };
        assert_eq!(stamped(3, 3), None);
        let evidence = stamped(3, 0).unwrap();
        assert!(evidence.ends_with("the card stamped 3 frames and 0 answers"), "{evidence}");
        assert!(stamped(2, 3).is_some());
    }

    #[test]
    fn each_sort_of_trouble_on_the_wire_has_its_doubt() {
        let frames = Frames { sent: 9, answered: 9, ..Frames::default() };
        let of = |frames| ids(ResponseSeries { frames, ..ResponseSeries::default() });
        assert_eq!(of(frames), []);
        assert_eq!(of(Frames { lost: 1, ..frames }), [(Id::FramesLost, Effect::Note)]);
        assert_eq!(of(Frames { not_sent: 1, ..frames }), [(Id::FramesLost, Effect::Note)]);
        assert_eq!(of(Frames { reordered: 1, ..frames }), [(Id::FramesAstray, Effect::Note)]);
        assert_eq!(of(Frames { silent_cycles: 499, ..frames }), []);
        assert_eq!(of(Frames { silent_cycles: 500, ..frames }), [(Id::PeerLeft, Effect::Inconclusive)]);
        let skipped = ResponseSeries { skipped: 1, ..ResponseSeries::default() };
        assert_eq!(ids(skipped), [(Id::CyclesSkipped, Effect::Note)]);
        let split = histogram::Summary { count: 5, ..histogram::Summary::default() };
        assert_eq!(ids(ResponseSeries { split, ..ResponseSeries::default() }), [], "no card was asked");
        let unsplit = Unsplit { clock_set: 1, ..Unsplit::default() };
        let set = ResponseSeries { unsplit, ..ResponseSeries::default() };
        assert_eq!(ids(set), [(Id::PartsUnknown, Effect::Note)]);
    }
}
