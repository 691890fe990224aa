//! What the ring is made of: the standard library's atomics and cells, or loom's where a model checker runs it. And one way to
//! take a lock.

#[cfg(all(loom, test))]
pub use loom::cell::UnsafeCell;
#[cfg(all(loom, test))]
pub use loom::sync::Arc;
#[cfg(all(loom, test))]
pub use loom::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(all(loom, test)))]
pub use std::sync::Arc;
#[cfg(not(all(loom, test)))]
pub use std::sync::atomic::{AtomicUsize, Ordering};

/// The standard cell with loom's face.
#[cfg(not(all(loom, test)))]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(loom, test)))]
impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// What a poisoned lock guards is whole: nothing that is held panics between two writes.
pub fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
