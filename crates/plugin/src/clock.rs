//! Where the kernel's clock is, from the code that reads it: a kernel without the names of its data does not say.
//!
//! Nothing here asks the emulator, so that it can be tested without one.

/// Instructions that are looked at: `ktime_get` is shorter.
pub const LENGTH: usize = 64;
/// Places that they read, at most.
const MOST: usize = 2 * LENGTH;

/// What arm64 instructions read at addresses that stand in them.
struct Reads {
    /// What is known of registers: an address that the instructions before have made.
    registers: [Option<u64>; 32],
    /// Addresses, and how many bytes are read there.
    all: [(u64, u64); MOST],
    count: usize,
}

impl Reads {
    fn step(&mut self, address: u64, word: u32) {
        let (to, from) = ((word & 0x1f) as usize, (word >> 5 & 0x1f) as usize);
        let known = self.registers[from];
        let unsigned = u64::from(word >> 10 & 0xfff);
        // adrp
        if word & 0x9f00_0000 == 0x9000_0000 {
            let pages = i64::from((word >> 3 & 0x1f_fffc | word >> 29 & 3) as i32) << 43 >> 43;
            self.registers[to] = Some((address & !0xfff).wrapping_add_signed(pages << 12));
        // add, with 12 bits, shifted or not
        } else if word & 0xff80_0000 == 0x9100_0000 {
            let value = if word & 1 << 22 == 0 { unsigned } else { unsigned << 12 };
            self.registers[to] = known.map(|known| known.wrapping_add(value));
        // ldr of 32 or 64 bits
        } else if word & 0xbfc0_0000 == 0xb940_0000 {
            let size = 4 << (word >> 30 & 1);
            self.put(known, unsigned * size, size);
            self.registers[to] = None;
        // ldp of 32 or 64 bits
        } else if word & 0x7fc0_0000 == 0x2940_0000 {
            let size = 4 << (word >> 31 & 1);
            let offset = (i64::from((word >> 15 & 0x7f) as i32) << 57 >> 57) * size as i64;
            self.put(known, offset as u64, size);
            self.put(known, (offset as u64).wrapping_add(size), size);
            self.registers[to] = None;
            self.registers[(word >> 10 & 0x1f) as usize] = None;
        }
    }

    fn put(&mut self, base: Option<u64>, offset: u64, size: u64) {
        if let (Some(base), Some(place)) = (base, self.all.get_mut(self.count)) {
            *place = (base.wrapping_add(offset), size);
            self.count += 1;
        }
    }

    fn has(&self, address: u64, size: u64) -> bool {
        self.all[..self.count].contains(&(address, size))
    }
}

/// Where `struct tk_read_base` is that the arm64 code at `address` reads: nothing else has its fields, `clock`, `mask`,
/// `cycle_last`, `mult` and `shift` (32 bits each), `xtime_nsec` and `base`.
pub fn read_base(address: u64, code: impl IntoIterator<Item = u32>) -> Option<u64> {
    let mut reads = Reads { registers: [None; 32], all: [(0, 0); MOST], count: 0 };
    for (number, word) in (0..LENGTH as u64).zip(code) {
        reads.step(address.wrapping_add(4 * number), word);
    }
    let all = &reads.all[..reads.count];
    let is_base = |start: u64| {
        let has = |offset, size| reads.has(start.wrapping_add(offset), size);
        [0, 8, 16, 32, 40].into_iter().all(|offset| has(offset, 8)) && has(24, 4) && has(28, 4)
    };
    all.iter().map(|(address, _)| *address).find(|&address| is_base(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0xffff_8000_0811_9f80;
    /// `ktime_get` of Debian's 6.1.192 with PREEMPT_RT, assembled.
    const CODE: [u32; 29] = [
        0xd503_201f,
        0xd503_201f,
        0xf000_d360,
        0xd503_233f,
        0xa9bd_7bfd,
        0x9100_03fd,
        0xb94a_dc00,
        0xa901_53f3,
        0xf900_13f5,
        0x3500_03c0,
        0xd000_d853,
        0x9129_0273,
        0x1400_0002,
        0xd503_203f,
        0xb940_0274,
        0x3707_ffd4,
        0xd503_39bf,
        0xf940_0a60,
        0xf940_1e75,
        0xf940_0001,
        0xd63f_0020,
        0xa941_9a65,
        0xf940_1a64,
        0x2945_0e61,
        0xd503_39bf,
        0xb940_0262,
        0x6b14_005f,
        0x54ff_fe61,
        0xcb06_0000,
    ];

    #[test]
    fn the_clock_is_where_its_fields_are_read() {
        assert_eq!(read_base(ADDRESS, CODE), Some(0xffff_8000_09c2_3a50));
    }

    #[test]
    fn code_that_reads_less_is_not_taken_for_it() {
        for missing in [10, 17, 18, 21, 22, 23] {
            let mut code = CODE;
            code[missing] = 0xd503_201f;
            assert_eq!(read_base(ADDRESS, code), None, "{missing}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_code_is_answered(address: u64, code in proptest::collection::vec(proptest::prelude::any::<u32>(), 0..80)) {
            let _ = read_base(address, code);
        }
    }
}
