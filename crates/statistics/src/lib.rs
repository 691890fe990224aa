//! Tails, intervals and comparisons of latency distributions: pure functions of histograms and numbers.
