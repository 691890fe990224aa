//! GRUB (its manual, 2.12): `/etc/default/grub` with its drop-ins, which a shell sources; the menu that update-grub
//! makes of them, by the entry that will be booted; and its environment block.

use record::Fact;
use sysroot::SysRoot;
use sysroot::without_machine_ids;
use units::InOrder;

use super::shell::{Lexer, ShellWord};
use super::{
    Piece, Place, Request, Requested, Variables, bls, first_of, joined, numbered, place_at, source, text,
    words_of,
};
use crate::command_line::Word;

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "grub";

const MENUS: [&str; 2] = ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"];
const ENVIRONMENTS: [&str; 2] = ["/boot/grub/grubenv", "/boot/grub2/grubenv"];
const DEFAULTS: &str = "/etc/default/grub";
const DROP_INS: &str = "/etc/default/grub.d";

/// GRUB always says which image it loaded: a line without that did not come from it, whatever lies on the disk.
pub(super) fn has_booted(root: &SysRoot) -> bool {
    root.read("/proc/cmdline").value().is_none_or(|line| line.contains("BOOT_IMAGE="))
}

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    let environment = match environment(root) {
        Fact::Value(environment) => environment,
        other => return other.map(|_| Request::new(NAME, "", Vec::new())),
    };
    let variables = variables(root);
    let sources = variables.as_ref().and_then(defaults);
    match first_of(root, &MENUS) {
        Fact::Value((path, text)) => {
            let choice = menu(&path, &text, &environment);
            // Entries of the specification are changed by grubby, not made anew of the defaults.
            let sources = sources.filter(|_| matches!(choice, Choice::Entry(_)));
            of_menu(root, &choice, &environment).map(|(file, words)| Request {
                generator: if sources.is_some() { "update-grub" } else { "" },
                sources: sources.unwrap_or_default(),
                ..Request::new(NAME, file.as_deref().unwrap_or(&path), words)
            })
        }
        Fact::Unreadable(errno) => match (sources, variables.and_then(|of| of.text("GRUB_ENABLE_BLSCFG"))) {
            (Some(words), Some(entries)) if entries != "true" && !words.is_empty() => {
                Fact::Value(Request { is_whole: false, ..Request::new(NAME, "", words) })
            }
            _ => Fact::Unreadable(errno),
        },
        other => other.map(|_| Request::new(NAME, "", Vec::new())),
    }
}

/// What the shell makes of the defaults and their drop-ins, in the order in which they are read.
pub fn variables(root: &SysRoot) -> Option<Variables> {
    let mut variables = Variables::default();
    let drop_ins = root.list(DROP_INS).value().cloned().unwrap_or_default();
    let drop_ins = drop_ins.iter().filter(|name| name.ends_with(".cfg"));
    let paths = drop_ins.map(|name| format!("{DROP_INS}/{name}"));
    let mut is_any = false;
    for path in std::iter::once(DEFAULTS.to_owned()).chain(paths) {
        match text(root, &path) {
            Fact::Value(text) => source(&path, &text, &mut variables),
            Fact::Absent => continue,
            _ => return None,
        }
        is_any = true;
    }
    is_any.then_some(variables)
}

/// The words that the next update-grub will put into an ordinary entry; none if only running the files would tell.
pub fn defaults(variables: &Variables) -> Option<Vec<Requested>> {
    let names = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
    let pieces: Option<Vec<Vec<Piece>>> = names.iter().map(|name| variables.get(name)).collect();
    let words: Option<Vec<Vec<Requested>>> = pieces?.iter().map(|pieces| scripted(pieces)).collect();
    Some(words?.into_iter().flatten().collect())
}

/// The words of a text that becomes a part of GRUB's script, which takes quotes off once more.
fn scripted(pieces: &[Piece]) -> Option<Vec<Requested>> {
    let text = joined(pieces);
    if !text.contains(['\'', '"', '\\', '$', ';']) {
        return Some(words_of(pieces));
    }
    let statement = Lexer::new("", &text).statement(&Variables::default()).unwrap_or_default();
    let words: Option<Vec<Vec<Requested>>> = statement.iter().map(argument).collect();
    let placed = |of: Requested| Some(Requested { place: place_at(pieces, of.place.span.start)?, ..of });
    Some(words?.into_iter().flatten().filter_map(placed).collect())
}

/// The environment block: `saved_entry`, `next_entry`, `kernelopts`. One that may not be read hides what is chosen.
pub fn environment(root: &SysRoot) -> Fact<Variables> {
    let (path, text) = match first_of(root, &ENVIRONMENTS) {
        Fact::Value(found) => found,
        Fact::Absent => return Fact::Value(Variables::default()),
        other => return other.map(|_| Variables::default()),
    };
    let mut variables = Variables::default();
    for line in numbered(&text).filter(|(_, _, line)| !line.starts_with('#')) {
        if let Some((name, value)) = line.2.split_once('=') {
            variables.set(name, Some(vec![super::piece(&path, line, value)]));
        }
    }
    Fact::Value(variables)
}

/// An entry of the menu, or a menu below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MenuEntry {
    /// What is shown.
    pub title: String,
    /// Its id; may be empty.
    pub id: String,
    /// The words behind the kernel's image; none for an entry that boots none.
    pub words: Option<Vec<Requested>>,
    /// Where those words stand: from the first to the end of the statement.
    pub place: Option<Place>,
    /// Of a submenu.
    pub entries: Vec<MenuEntry>,
}

/// What a menu boots by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This entry.
    Entry(MenuEntry),
    /// An entry of the boot loader specification, by its id; the first one where it is empty.
    Specified(String),
    /// Nothing that can be read here.
    Unknown,
}

/// The entry that grub.cfg will boot, with what its environment block remembers.
pub fn menu(path: &str, text: &str, environment: &Variables) -> Choice {
    let mut variables = environment.clone();
    let id_option = Place { path: path.to_owned(), line: 0, span: 0..0 };
    let id_option = Piece { text: "--id".to_owned(), place: id_option };
    variables.set("menuentry_id_option", Some(vec![id_option]));
    let mut lexer = Lexer::new(path, text);
    let (mut open, mut default, mut is_specified) = (vec![MenuEntry::default()], String::new(), false);
    while let Some(statement) = lexer.statement(&variables) {
        let Some(first) = statement.first() else { continue };
        match first.raw {
            "menuentry" | "submenu" => open.push(entry(&statement)),
            "linux" | "linux16" | "linuxefi" => {
                if let Some(entry) = open.last_mut() {
                    entry.words = arguments(&statement);
                    entry.place = entry.words.as_deref().and_then(span);
                }
            }
            "blscfg" => is_specified = true,
            "set" => default = chosen(&statement).unwrap_or(default),
            "}" => close(&mut open),
            _ if statement.last().is_some_and(|last| last.raw == "{") => open.push(MenuEntry::default()),
            _ => {}
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let next = environment.text("next_entry").filter(|entry| !entry.is_empty());
    let wanted = next.unwrap_or(default);
    let entries = open.pop().map(|root| root.entries).unwrap_or_default();
    if is_specified {
        return Choice::Specified(wanted);
    }
    select(&entries, &wanted).map_or(Choice::Unknown, |entry| Choice::Entry(entry.clone()))
}

fn entry(statement: &[ShellWord<'_>]) -> MenuEntry {
    let texts: Vec<String> = statement.iter().map(ShellWord::text).collect();
    let id = texts.iter().position(|text| text == "--id").and_then(|at| texts.get(at + 1));
    MenuEntry {
        title: texts.get(1).cloned().unwrap_or_default(),
        id: id.cloned().unwrap_or_default(),
        ..MenuEntry::default()
    }
}

/// The words behind the kernel's image; none if one of them is not known.
fn arguments(statement: &[ShellWord<'_>]) -> Option<Vec<Requested>> {
    let arguments = statement.get(2..).unwrap_or_default().iter();
    let words: Option<Vec<Vec<Requested>>> = arguments.map(argument).collect();
    Some(words?.into_iter().flatten().collect())
}

/// One argument: where quotes keep blanks in it, GRUB hands it on as one word.
fn argument(word: &ShellWord<'_>) -> Option<Vec<Requested>> {
    let pieces = word.pieces()?;
    let text = joined(pieces);
    match pieces.first() {
        Some(first) if word.raw.contains(['\'', '"']) && text.contains(' ') => {
            Some(vec![Requested { word: Word::parse(&format!("\"{text}\"")), place: first.place.clone() }])
        }
        _ => Some(words_of(pieces)),
    }
}

fn span(words: &[Requested]) -> Option<Place> {
    let (first, last) = (words.first()?, words.last()?);
    let span = first.place.span.start..last.place.span.end;
    Some(Place { span, ..first.place.clone() })
}

/// What `set default=` names. What is set for one boot only is in the environment block.
fn chosen(statement: &[ShellWord<'_>]) -> Option<String> {
    let word = statement.get(1)?;
    let is_for_once = word.raw.contains("next_entry");
    word.text().strip_prefix("default=").filter(|_| !is_for_once).map(str::to_owned)
}

/// Puts what is open into what it stands in. Braces of functions and conditions hold entries of their menu.
fn close(open: &mut Vec<MenuEntry>) {
    if open.len() < 2 {
        return;
    }
    let Some(entry) = open.pop() else { return };
    let Some(parent) = open.last_mut() else { return };
    if entry.title.is_empty() { parent.entries.extend(entry.entries) } else { parent.entries.push(entry) }
}

/// By `a>b`, each an id, a title or a number from 0; without any of them the first, as GRUB falls back to it.
fn select<'a>(entries: &'a [MenuEntry], wanted: &str) -> Option<&'a MenuEntry> {
    let (name, below) = wanted.split_once('>').unwrap_or((wanted, ""));
    let by_name = entries.iter().find(|entry| !name.is_empty() && (entry.id == name || entry.title == name));
    let by_number = || name.parse().ok().and_then(|number: usize| entries.get(number));
    let found = by_name.or_else(by_number).or_else(|| entries.first())?;
    if found.entries.is_empty() { Some(found) } else { select(&found.entries, below) }
}

/// The words, and the file of the entry where that is not the menu itself.
fn of_menu(
    root: &SysRoot,
    choice: &Choice,
    environment: &Variables,
) -> Fact<(Option<String>, Vec<Requested>)> {
    match choice {
        Choice::Entry(entry) => {
            entry.words.clone().map_or(Fact::Unsupported, |words| Fact::Value((None, words)))
        }
        Choice::Unknown => Fact::Unsupported,
        Choice::Specified(id) => bls::entries(root, &["/boot/loader/entries"]).and_then(|mut entries| {
            entries.order_by(|a, b| bls::natural_order(&b.id, &a.id));
            let wanted = without_machine_ids(id);
            let entry = entries.iter().find(|entry| without_machine_ids(&entry.id) == wanted);
            let by_number = || wanted.parse().ok().and_then(|number: usize| entries.get(number));
            let entry = entry.or_else(by_number).or_else(|| entries.first());
            let words = entry.and_then(|entry| Some((Some(entry.path.clone()), entry.words(environment)?)));
            words.map_or(Fact::Unsupported, Fact::Value)
        }),
    }
}
