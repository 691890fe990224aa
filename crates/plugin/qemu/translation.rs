//! Blocks, kept when QEMU translates them.

use core::ffi::{c_uint, c_void};
use core::ptr::NonNull;

use crate::block::Block;
use crate::machine::Kind;
use crate::recorder::Recorder;
use crate::{abi, allocate, layout, recorder};

/// The longest instruction, in bytes.
const LONGEST: usize = 15;

/// A block is translated.
pub extern "C" fn translated(_: abi::Id, handle: abi::Handle) {
    let recorder = recorder();
    // SAFETY: `handle` is a block during this callback, as QEMU says.
    if let Some(block) = unsafe { keep(recorder, handle) } {
        // SAFETY: the block stays for good.
        unsafe {
            abi::qemu_plugin_register_vcpu_tb_exec_cb(
                handle,
                started,
                abi::NO_REGISTERS,
                block.as_ptr().cast::<c_void>(),
            );
        }
    } else {
        recorder.lost();
    }
}

/// A block starts.
extern "C" fn started(_: c_uint, data: *mut c_void) {
    // SAFETY: `translated` gave the address of a block, which stays.
    recorder().started(unsafe { &mut *data.cast::<Block>() });
}

/// # Safety
/// `handle` is a block that is being translated.
unsafe fn keep(recorder: &mut Recorder, handle: abi::Handle) -> Option<NonNull<Block>> {
    // SAFETY: the caller says so; instructions are asked for by numbers below their count, and their bytes are as many as QEMU
    // says and stay during the callback.
    unsafe {
        let count = abi::qemu_plugin_tb_n_insns(handle).min(layout::LONGEST_BLOCK);
        let address = abi::qemu_plugin_tb_vaddr(handle);
        let text: NonNull<u8> = allocate(count * (LONGEST + 1))?;
        let (mut length, mut until_off, mut last) = (0, 0, Kind::Other);
        for number in 0..count {
            let instruction = abi::qemu_plugin_tb_get_insn(handle, number);
            let counter = recorder.counter();
            abi::qemu_plugin_register_vcpu_insn_exec_inline(instruction, abi::ADD, counter.cast(), 1);
            if number == 0 {
                recorder.learn(address, abi::qemu_plugin_insn_haddr(instruction).cast());
            }
            let size = abi::qemu_plugin_insn_size(instruction).min(LONGEST);
            let bytes = core::slice::from_raw_parts(abi::qemu_plugin_insn_data(instruction), size);
            last = recorder.kind(bytes);
            if last == Kind::Off && until_off == 0 {
                until_off = number as u32 + 1;
            }
            text.add(number).write(size as u8);
            text.add(count + length).copy_from_nonoverlapping(NonNull::from(bytes).cast(), size);
            length += size;
        }
        let block: NonNull<Block> = allocate(1)?;
        block.write(Block {
            id: recorder.new_id(),
            address,
            counter: if let Kind::Counter(counter) = last { Some(counter) } else { None },
            is_call: last == Kind::Call,
            until_off,
            is_entry: recorder.is_entry(address),
            note: recorder.note_of(address),
            is_written: false,
            instructions: count as u32,
            length: length as u32,
            text: text.as_ptr(),
        });
        Some(block)
    }
}
