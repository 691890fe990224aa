//! Named sets of options: measurements as papers and projects published them, to the letter where they say.

use serde::Deserialize;
use units::{Nanos, Priority};

use failure::{Error, Result};

/// What a published measurement prescribes; what is absent it leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// By which it is called.
    pub name: String,
    /// By which it was called before.
    #[serde(default)]
    pub former: Option<String>,
    /// Where it comes from.
    pub source: String,
    /// What it leaves open, and what stands in for it here.
    pub leaves_open: String,
    /// The loads.
    pub loads: Vec<String>,
    /// Length of a scenario.
    #[serde(default, deserialize_with = "length")]
    pub duration: Option<Nanos>,
    /// Activations of a CPU in a scenario.
    pub samples: Option<u64>,
    /// Period.
    #[serde(deserialize_with = "length")]
    pub interval: Option<Nanos>,
    /// Priority.
    pub priority: Priority,
    /// C-state policy: `as-is`, `restrict`, `both`.
    pub cstates: String,
}

fn length<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Nanos>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
struct File {
    preset: Vec<Preset>,
}

fn shipped() -> Result<Vec<Preset>> {
    let file: File = record::json::read(include_bytes!(concat!(env!("OUT_DIR"), "/presets.json")))
        .map_err(|error| Error::new(format!("the presets shipped with this program: {error}"), ""))?;
    Ok(file.preset)
}

/// The preset called `name`.
pub fn get(name: &str) -> Result<Preset> {
    let presets = shipped()?;
    let names: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
    let hint = format!("there are {}", names.join(", "));
    presets
        .iter()
        .find(|preset| preset.name == name || preset.former.as_deref() == Some(name))
        .cloned()
        .ok_or_else(|| Error::new(format!("there is no preset `{name}`"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_names_loads_that_exist() {
        let catalogue = load::Catalogue::shipped().unwrap();
        for preset in shipped().unwrap() {
            for load in &preset.loads {
                assert!(catalogue.get(load).is_ok(), "{} {load}", preset.name);
            }
            assert!(preset.duration.is_some() != preset.samples.is_some(), "{}", preset.name);
        }
    }
}
