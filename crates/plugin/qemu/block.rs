//! A block of instructions.

use crate::guest::USER_END;

/// A block of instructions. It is never freed: translated code has its address.
pub struct Block {
    pub id: u32,
    pub address: u64,
    /// It ends with an instruction that reads the time-stamp counter.
    pub reads_counter: bool,
    /// It ends with a call.
    pub is_call: bool,
    /// Instructions up to the first `cli`, with it; 0: it has none.
    pub until_off: u32,
    /// What is noted at its start.
    pub note: u32,
    /// It stands in the stream.
    pub is_written: bool,
    pub instructions: u32,
    pub length: u32,
    /// The length of each instruction, and behind them their bytes.
    pub text: *mut u8,
}

impl Block {
    pub fn is_of_user(&self) -> bool {
        self.address < USER_END
    }
}
