//! A worker's counters on the board, each with one owner.

use sys::shared::Word;

/// One counter. It cannot be copied, and only its owner adds to it: additions of two threads at once would lose work
/// ([`Word::add`]).
#[derive(Debug)]
pub(super) struct Counter<'a>(&'a Word);

impl Counter<'_> {
    pub fn add(&mut self, amount: u64) {
        self.0.add(amount);
    }
}

/// The counters of one worker: as many as its stressor's [`super::about::About`] says. Work that needs another number does not
/// begin.
#[derive(Debug)]
pub(super) struct Counters<'a>(Vec<Counter<'a>>);

impl<'a> Counters<'a> {
    pub fn of(words: &'a [Word]) -> Self {
        Self(words.iter().map(Counter).collect())
    }

    /// Counts `amount` of work, for a stressor with one counter.
    ///
    /// # Panics
    /// Where the stressor has several: then each of its threads takes its own.
    pub fn count(&mut self, amount: u64) {
        match self.0.as_mut_slice() {
            [counter] => counter.add(amount),
            others => panic!("a worker with {} counters counted as if it had one", others.len()),
        }
    }

    /// All counters, for work in `NUMBER` threads.
    ///
    /// # Errors
    /// Where the stressor's `About` says another number, in words.
    pub fn take<const NUMBER: usize>(&mut self) -> Result<[Counter<'a>; NUMBER], String> {
        self.take_all(NUMBER)?.try_into().map_err(|left: Vec<_>| wrong_number(NUMBER, left.len()))
    }

    /// All counters, for work in `number` processes.
    ///
    /// # Errors
    /// As [`Counters::take`].
    pub fn take_all(&mut self, number: usize) -> Result<Vec<Counter<'a>>, String> {
        if self.0.len() != number {
            return Err(wrong_number(number, self.0.len()));
        }
        Ok(std::mem::take(&mut self.0))
    }
}

fn wrong_number(wanted: usize, own: usize) -> String {
    format!("its work takes {wanted} counters, and its `About` says {own}: make them agree")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<const NUMBER: usize>() -> [Word; NUMBER] {
        std::array::from_fn(|_| Word::default())
    }

    #[test]
    fn each_counter_has_one_owner() {
        let words = words::<2>();
        let mut counters = Counters::of(&words);
        let [mut first, mut second] = counters.take::<2>().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || first.add(3));
            scope.spawn(move || second.add(4));
        });
        assert_eq!([words[0].get(), words[1].get()], [3, 4]);
        assert!(counters.take::<2>().is_err(), "they are taken");
    }

    #[test]
    fn work_that_needs_another_number_does_not_begin() {
        let words = words::<2>();
        for number in [0, 1, 3] {
            let why = Counters::of(&words).take_all(number).unwrap_err();
            assert!(why.contains(&format!("takes {number} counters")) && why.contains("says 2"), "{why}");
        }
        let counted = std::panic::catch_unwind(|| Counters::of(&words).count(1));
        assert!(counted.is_err() && words.iter().all(|word| word.get() == 0));
    }
}
