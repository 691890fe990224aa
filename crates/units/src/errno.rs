//! The kernel's answers in words.

/// What an errno says (errno(3)), without the number that the standard library adds: `Permission denied`.
pub fn errno_in_words(errno: i32) -> String {
    without_errno(&std::io::Error::from_raw_os_error(errno).to_string()).to_owned()
}

/// The words of a [`std::io::Error`], without the number that the standard library adds to an errno's.
pub fn without_errno(words: &str) -> &str {
    words.split(" (os error").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_its_words_alone() {
        assert_eq!(errno_in_words(13), "Permission denied");
        assert_eq!(without_errno("not a file"), "not a file");
    }
}
