//! bisect
