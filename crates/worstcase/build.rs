//! Turns tables of TOML into JSON, so that no program carries a parser of TOML for them, and finds out which commit is built.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};
use serde_json::{Map, Value};

fn main() -> io::Result<()> {
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&target).join("presets.json"), json("src/presets.toml")?)?;
    fs::write(Path::new(&target).join("ways.json"), json("src/commands/ways/ways.toml")?)?;
    pack(&target, "schemas.gz", &schemas()?)?;
    pack(&target, "doubts.gz", &json("src/commands/why/doubts.toml")?)?;
    println!("cargo::rustc-env=WORSTCASE_VERSION={} ({})", env!("CARGO_PKG_VERSION"), origin());
    Ok(())
}

/// A file of TOML as JSON.
fn json(path: &str) -> io::Result<String> {
    println!("cargo::rerun-if-changed={path}");
    let table: toml::Value = toml::from_str(&fs::read_to_string(path)?).map_err(io::Error::other)?;
    Ok(serde_json::to_string(&table)?)
}

/// The forms whose schemas are made from their types, and the directories of these numbered files.
const NUMBERED: [(&str, &str); 7] = [
    ("record", "../record/schema"),
    ("journal", "../record/schema"),
    ("cost", "../record/schema"),
    ("monitor", "../record/schema"),
    ("wake-paths", "../record/schema"),
    ("ways", "../record/schema"),
    ("findings", "../audit/schema"),
];

/// The newest schema of that name.
fn newest(name: &str, directory: &Path) -> io::Result<Value> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let files = (1..).map(|number| directory.join(format!("{name}-{number}.json")));
    let newest = files.take(99).filter(|file| file.exists()).last();
    read(&newest.ok_or_else(|| io::Error::other(format!("no schema of {name}")))?)
}

/// All schemas in one text. First the definitions of the record's schema, a line each: name, blank, JSON. Then, behind an empty
/// line, a line for each form, with tabs between its name, the definitions that it shares with the record, its own as members
/// of an object, and the rest of its object.
fn schemas() -> io::Result<String> {
    let record = newest("record", Path::new("../record/schema"))?;
    let shared =
        record["$defs"].as_object().ok_or_else(|| io::Error::other("a record has no definitions"))?;
    let mut text: String = shared.iter().map(|(name, definition)| format!("{name} {definition}\n")).collect();
    text.push('\n');
    for (name, place) in NUMBERED {
        text += &line(name, newest(name, Path::new(place))?, shared);
    }
    println!("cargo::rerun-if-changed=schema");
    let mut files = fs::read_dir("schema")?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        let path = file.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        text += &line(&name, read(&path)?, shared);
    }
    Ok(text)
}

/// The line of a form in [`schemas`].
fn line(name: &str, mut schema: Value, shared: &Map<String, Value>) -> String {
    complete(&mut schema, shared);
    let own = schema.as_object_mut().and_then(|fields| fields.remove("$defs"));
    let own = own.as_ref().and_then(Value::as_object).into_iter().flatten();
    let (same, own): (Vec<_>, Vec<_>) =
        own.partition(|(name, definition)| shared.get(*name) == Some(definition));
    let same: Vec<&str> = same.into_iter().map(|(name, _)| name.as_str()).collect();
    let own: Vec<String> =
        own.into_iter().map(|(name, definition)| format!("\"{name}\":{definition}")).collect();
    let rest = schema.to_string();
    format!("{name}\t{}\t{}\t{}\n", same.join(" "), own.join(","), rest.trim_start_matches('{'))
}

fn read(file: &Path) -> io::Result<Value> {
    serde_json::from_str(&fs::read_to_string(file)?)
        .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))
}

/// Adds definitions of `others` until all that are named are there.
fn complete(schema: &mut Value, others: &Map<String, Value>) {
    let mut names = Vec::new();
    named(schema, &mut names);
    let missing: Vec<String> = names.into_iter().filter(|name| schema["$defs"].get(name).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    for name in missing {
        let definition =
            others.get(&name).unwrap_or_else(|| panic!("a schema names {name}, which is nowhere"));
        schema["$defs"][&name] = definition.clone();
    }
    complete(schema, others);
}

/// The definitions that `schema` refers to.
fn named(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let own =
                fields.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
            names.extend(own.map(str::to_owned));
            fields.values().for_each(|field| named(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, names)),
        _ => {}
    }
}

fn pack(target: &str, name: &str, text: &str) -> io::Result<()> {
    let file = fs::File::create(Path::new(target).join(name))?;
    let mut packed = GzBuilder::new().write(file, Compression::best());
    packed.write_all(text.as_bytes())?;
    packed.finish().map(drop)
}

/// Abbreviated commit and its date: the same for everyone who builds it. A debug build names none, so that a commit does
/// not have it built anew.
fn origin() -> String {
    println!("cargo::rerun-if-env-changed=WORSTCASE_COMMIT");
    if let Ok(given) = env::var("WORSTCASE_COMMIT") {
        return given;
    }
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return "debug build".to_owned();
    }
    commit().unwrap_or_else(|| "commit unknown: not built from a git repository".to_owned())
}

/// None outside a repository of ours: in an unpacked archive, git would find whatever repository is around it.
fn commit() -> Option<String> {
    let root = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if root != Path::new("../..").canonicalize().ok()? {
        return None;
    }
    // A commit and a checkout change the first, a change of the sources the others.
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [&head, "../../crates", "../../rules", "../../loads", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit = git(&["log", "-1", "--abbrev=12", "--format=%h, %cs"])?;
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|files| !files.is_empty());
    Some(if is_changed { format!("{commit}, changed") } else { commit })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
