//! page

use record::Record;

/// The page.
///
/// # Errors
/// None in practice.
pub fn page(records: &[Record]) -> Result<String, std::fmt::Error> {
    Ok(format!("{}", records.len()))
}
