//! Wake-ups that are made up: each sort of delay is named, and any stream of events is answered.

mod any_stream;
mod chain;
mod fair;
mod guard;
mod made_up;
mod moved;
mod overview;
mod sorts;
mod unseen;
