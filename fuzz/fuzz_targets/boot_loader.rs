//! Any boot loader's file is answered, and the words that it gives stand in it where they are said to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::boot_loader::{
    Choice, Requested, Variables, cmdline_txt, defaults, entry, environment_text, find, labels, menu, source,
};
use sysroot::{SysRoot, Tree};

fuzz_target!(|text: &str| {
    let mut variables = Variables::default();
    source("a", text, &mut variables);
    let mut words: Vec<Requested> = defaults(&variables).unwrap_or_default();
    if let Choice::Entry(chosen) = menu("a", text, &variables) {
        words.extend(chosen.words.unwrap_or_default());
    }
    words.extend(entry("a", text).words(&variables).unwrap_or_default());
    words.extend(cmdline_txt("a", text));
    words.extend(environment_text("a", text));
    for Requested { place, .. } in &words {
        assert!(text.get(place.span.clone()).is_some(), "{place:?}");
        assert!((1..=text.matches('\n').count() + 1).contains(&place.line), "{place:?}");
    }
    for piece in labels("a", text).into_iter().flat_map(|label| [label.append, label.more]).flatten() {
        assert_eq!(text.get(piece.place.span), Some(piece.text.as_str()));
    }
    let paths = [
        "/etc/default/grub",
        "/boot/grub/grub.cfg",
        "/boot/grub/grubenv",
        "/boot/loader/entries/a+1-2.conf",
        "/boot/loader/loader.conf",
        "/boot/extlinux/extlinux.conf",
        "/boot/uEnv.txt",
        "/boot/firmware/config.txt",
        "/boot/firmware/cmdline.txt",
        "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    ];
    // Each is left out once, so that each loader is asked.
    for left_out in 0..paths.len() {
        let kept = paths.iter().skip(left_out).map(|path| ((*path).to_owned(), text.as_bytes().to_vec()));
        let root = SysRoot::of(Tree::whole(kept));
        assert_eq!(find(&root), find(&root));
        let _ = find(&root.remembering());
    }
});
