//! The device of one guest: VIRTIO 1.2, section 5.18, over vhost-user.

use std::io::{Error, Read, Result, Write};
use std::sync::{Mutex, PoisonError};

use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost_user_backend::{VhostUserBackend, VringRwLock, VringT};
use virtio_bindings::bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_queue::{DescriptorChain, QueueOwnedT};
use vm_memory::{GuestAddressSpace, GuestMemoryLoadGuard, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;

use crate::lines::{Memory, Trigger, Waiting};
use crate::{End, Wires};

/// `VIRTIO_GPIO_F_IRQ`: lines may interrupt.
const INTERRUPTS: u64 = 1;

/// The queues, by number.
const REQUESTS: u16 = 0;
const EVENTS: u16 = 1;

/// `VIRTIO_GPIO_STATUS_*`.
const OK: u8 = 0;
const ERROR: u8 = 1;

/// The lines of a guest, as it sees them.
pub(crate) struct Device {
    wires: Wires,
    guest: usize,
    memory: Mutex<Option<Memory>>,
}

impl Device {
    pub fn new(wires: Wires, guest: usize) -> Self {
        Self { wires, guest, memory: Mutex::new(None) }
    }

    /// Chains of buffers that the guest has made available in a queue.
    fn chains(
        &self,
        ring: &VringRwLock<Memory>,
    ) -> Result<Vec<DescriptorChain<GuestMemoryLoadGuard<GuestMemoryMmap>>>> {
        let memory = self.memory()?.memory();
        let mut state = ring.get_mut();
        let chains = state.get_queue_mut().iter(memory).map_err(Error::other)?;
        Ok(chains.collect())
    }

    fn memory(&self) -> Result<Memory> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.clone().ok_or_else(|| Error::other("the guest has not said where its memory is"))
    }

    /// `struct virtio_gpio_request`, each answered at once.
    fn requests(&self, ring: &VringRwLock<Memory>) -> Result<()> {
        for chain in self.chains(ring)? {
            let memory = self.memory()?.memory();
            let mut request = [0; 8];
            chain.clone().reader(&*memory).map_err(Error::other)?.read_exact(&mut request)?;
            let [kind, line] = [0, 2].map(|at| u16::from_le_bytes([request[at], request[at + 1]]));
            let value = u32::from_le_bytes([request[4], request[5], request[6], request[7]]);
            let (status, answer) =
                self.answer(kind, line.into(), value).map_or((ERROR, 0), |value| (OK, value));
            chain.clone().writer(&*memory).map_err(Error::other)?.write_all(&[status, answer])?;
            ring.add_used(chain.head_index(), 2).map_err(Error::other)?;
        }
        ring.signal_used_queue()
    }

    /// What is answered to a request; none to one that cannot be met. `VIRTIO_GPIO_MSG_*`.
    fn answer(&self, kind: u16, line: usize, value: u32) -> Option<u8> {
        let end = End { guest: self.guest, line };
        let level = value & 1 != 0;
        if line >= self.wires.board().count(self.guest) {
            return None;
        }
        match kind {
            2 => return Some(self.wires.board().line(end).direction),
            3 => {
                let direction = u8::try_from(value).ok().filter(|direction| *direction <= 2)?;
                self.wires.board().line(end).direction = direction;
            }
            4 => return Some(self.wires.board().line(end).level.into()),
            // The level is set before the direction where a line becomes an output.
            5 => self.wires.drive(end, level),
            6 => self.wires.board().line(end).watch(Trigger::new(value)?),
            _ => return None,
        }
        Some(0)
    }

    /// `struct virtio_gpio_irq_request`, each of which waits for its line.
    fn events(&self, ring: &VringRwLock<Memory>) -> Result<()> {
        for chain in self.chains(ring)? {
            let memory = self.memory()?;
            let mut line = [0; 2];
            chain.clone().reader(&*memory.memory()).map_err(Error::other)?.read_exact(&mut line)?;
            let line = usize::from(u16::from_le_bytes(line));
            let status = chain.clone().writable().next().map(|buffer| buffer.addr());
            let mut board = self.wires.board();
            if let Some(status) = status.filter(|_| line < board.count(self.guest)) {
                let waiting = Waiting { ring: ring.clone(), memory, head: chain.head_index(), status };
                board.line(End { guest: self.guest, line }).wait(waiting);
            }
        }
        Ok(())
    }
}

impl VhostUserBackend for Device {
    type Bitmap = ();
    type Vring = VringRwLock<Memory>;

    fn num_queues(&self) -> usize {
        2
    }

    fn max_queue_size(&self) -> usize {
        256
    }

    fn features(&self) -> u64 {
        1 << VIRTIO_F_VERSION_1 | INTERRUPTS | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::CONFIG
    }

    fn set_event_idx(&self, _enabled: bool) {}

    /// `struct virtio_gpio_config`: how many lines, without names.
    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        let mut config = [0; 8];
        let lines = u16::try_from(self.wires.board().count(self.guest)).unwrap_or(u16::MAX);
        config[..2].copy_from_slice(&lines.to_le_bytes());
        config.into_iter().skip(offset as usize).take(size as usize).collect()
    }

    fn update_memory(&self, memory: Memory) -> Result<()> {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
        Ok(())
    }

    fn handle_event(&self, queue: u16, _: EventSet, rings: &[Self::Vring], _: usize) -> Result<()> {
        match queue {
            REQUESTS => self.requests(&rings[0]),
            EVENTS => self.events(&rings[1]),
            _ => Ok(()),
        }
    }
}
