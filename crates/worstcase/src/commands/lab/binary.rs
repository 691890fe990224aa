//! Which worstcase runs in a guest.

use std::path::{Path, PathBuf};

use lab::kernels::Architecture;

use failure::{Error, Result};

/// The one that was named; for this machine's architecture the one that runs, which is never out of date; for another
/// what `cargo xtask dist` left.
pub fn choose(named: Option<&Path>, architecture: Architecture) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_path_buf());
    }
    let own = std::env::current_exe();
    let own = own.map_err(|error| Error::new(format!("find this program's file: {error}"), ""))?;
    if Architecture::own() == Some(architecture) {
        return Ok(own);
    }
    let name = format!("worstcase-{}-{}", env!("CARGO_PKG_VERSION"), triple(architecture));
    let beside = |directory: &Path| [directory.join(&name), directory.join("dist").join(&name)];
    let mut places = own.ancestors().skip(1).flat_map(beside);
    places.find(|place| place.is_file()).ok_or_else(|| {
        let hint = format!(
            "build it with `cargo xtask dist --target {}`, or name its file with --guest-binary",
            triple(architecture)
        );
        Error::new(format!("there is no static worstcase for {architecture} ({name})"), hint)
    })
}

fn triple(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "x86_64-unknown-linux-gnu",
        Architecture::Arm64 => "aarch64-unknown-linux-gnu",
    }
}
