//! Address space: pages given, taken back, and both.

use sys::mapping::Mapping;

use super::{ALONE, Operation};
use crate::work::{At, Kit, Result, Work};

/// Pages that are touched or given back at once: a kernel gives the first few of them out of a small store of its own, and more
/// at another price.
const PAGES: u64 = 1024;
/// Pages of a mapping that comes and goes.
const FEW: usize = 4;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "page-fault",
        title: "anonymous page fault",
        unit: "1 new page touched",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_pagefault, stress-ng --fault",
        stands_for: "programs that take memory",
        begin: fault,
    },
    Operation {
        name: "munmap-page",
        title: "munmap per page",
        unit: "1 page given back with others",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_mmap",
        stands_for: "programs that give memory back",
        begin: unmap,
    },
    Operation {
        name: "mmap-touch-munmap",
        title: "mmap+touch+munmap",
        unit: "4 pages mapped, touched and given back",
        bytes: 0,
        places: ALONE,
        source: "will-it-scale page_fault, mmap",
        stands_for: "allocators and threads that come and go",
        begin: both,
    },
];

fn pages(count: u64) -> Result<Mapping> {
    Mapping::new(count as usize * rustix::param::page_size()).at("map memory")
}

struct Fault(Option<Mapping>);

impl Work for Fault {
    /// Pages are small whatever the kernel's policy for large mappings: a fault that brings 512 is another operation, which a
    /// sample would do or not as its batches are long. A kernel without huge pages refuses to refuse them.
    fn prepare(&mut self, count: u64) -> Result<()> {
        let mapping = pages(count)?;
        let _ = mapping.refuse_huge_pages();
        self.0 = Some(mapping);
        Ok(())
    }

    fn run(&mut self, _: u64) -> Result<()> {
        self.0.iter_mut().for_each(|mapping| {
            mapping.touch(rustix::param::page_size());
        });
        Ok(())
    }

    fn clear(&mut self) {
        self.0 = None;
    }

    fn batch(&self) -> Option<u64> {
        Some(PAGES)
    }
}

fn fault(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(Fault(None)))
}

struct Unmap(Fault);

impl Work for Unmap {
    fn prepare(&mut self, count: u64) -> Result<()> {
        self.0.prepare(count)?;
        self.0.run(count)
    }

    fn run(&mut self, _: u64) -> Result<()> {
        self.0.clear();
        Ok(())
    }

    fn batch(&self) -> Option<u64> {
        Some(PAGES)
    }
}

fn unmap(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(Unmap(Fault(None))))
}

fn both(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(|| {
        let mut mapping = pages(FEW as u64)?;
        mapping.touch(rustix::param::page_size());
        Ok(())
    }))
}
