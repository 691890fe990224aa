use proptest::prelude::*;
use sysroot::FakeTree;

use super::*;

/// The words, each with its place.
fn shown(words: &[Requested]) -> Vec<String> {
    let word = |of: &Requested| match &of.word.value {
        Some(value) => format!("{}={value} @{}", of.word.name, of.place.line),
        None => format!("{} @{}", of.word.name, of.place.line),
    };
    words.iter().map(word).collect()
}

fn found(files: &[(&str, &str)]) -> Fact<Request> {
    find(&FakeTree::new(files).root)
}

fn words(files: &[(&str, &str)]) -> Vec<String> {
    match found(files) {
        Fact::Value(request) => shown(&request.words),
        other => panic!("{other:?}"),
    }
}

fn sourced(text: &str) -> Option<Vec<String>> {
    let mut variables = Variables::default();
    source("/etc/default/grub", text, &mut variables);
    defaults(&variables).as_deref().map(shown)
}

#[test]
fn the_defaults_of_grub_are_what_a_shell_makes_of_them() {
    let text = "# a comment\nGRUB_DISTRIBUTOR=`( . /etc/os-release; echo ${NAME} )`\n\
                GRUB_CMDLINE_LINUX='audit=0'\"\"\nRT=\"isolcpus=2-3 \\\n  nohz_full=3\"\n\
                export GRUB_CMDLINE_LINUX_DEFAULT=\"quiet ${RT} dyndbg=\\\"file a +p\\\"\" # more\n\
                GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=64M\"\n";
    let expected = [
        "audit=0 @3",
        "quiet @6",
        "isolcpus=2-3 @4",
        "nohz_full=3 @4",
        "dyndbg=file a +p @6",
        "crashkernel=64M @7",
    ];
    assert_eq!(sourced(text).unwrap(), expected);
}

/// The shell takes one level of quotes off, and GRUB's own script another.
#[test]
fn words_are_quoted_for_the_shell_and_for_grub() {
    let text = "A=\"${A-} 'memmap=64K\\$0x18690000' 'dyndbg=file a; +p' x; y\"\nGRUB_CMDLINE_LINUX=\"${A:-} ${B-}\"\n";
    let words = sourced(text).unwrap();
    assert_eq!(words, ["memmap=64K$0x18690000 @1", "dyndbg=file a; +p @1", "x @1"]);
}

#[test]
fn an_argument_that_quotes_keep_together_is_one_word() {
    let menu = "menuentry x {\nlinux /v 'memmap=1$2' \"dyndbg=file a +p\" 'a;b'\n}\n";
    let shown = words(&[("/boot/grub/grub.cfg", menu)]);
    assert_eq!(shown, ["memmap=1$2 @2", "dyndbg=file a +p @2", "a;b @2"]);
}

#[test]
fn what_only_running_the_file_would_tell_is_not_known() {
    for text in [
        "GRUB_CMDLINE_LINUX=\"$(cat /proc/cmdline)\"",
        "GRUB_CMDLINE_LINUX=quiet; GRUB_CMDLINE_LINUX+=\" more\"",
        "if true; then\n GRUB_CMDLINE_LINUX=a\nfi",
        "test -e /x && GRUB_CMDLINE_LINUX=a",
        ". /etc/other",
        "GRUB_CMDLINE_LINUX=\"no end",
        "GRUB_CMDLINE_LINUX=${A:-b}",
    ] {
        assert_eq!(sourced(text), None, "{text}");
    }
    assert_eq!(sourced("if true; then A=1; fi; GRUB_CMDLINE_LINUX=a").unwrap(), ["a @1"]);
    assert_eq!(sourced("GRUB_TIMEOUT=5").unwrap(), Vec::<String>::new());
}

/// Curly quotes are no quotes: the shell keeps them, and so does the kernel.
#[test]
fn a_place_is_where_the_word_stands() {
    let text = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=2-3 \u{201c}splash\u{201d}\"\n";
    let mut variables = Variables::default();
    source("/etc/default/grub", text, &mut variables);
    let words = defaults(&variables).unwrap();
    assert!(text[words[1].place.span.start..].starts_with("isolcpus=2-3"));
    assert_eq!(words[2].word.name, "\u{201c}splash\u{201d}");
}

const MENU: &str = "if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\nelse\n   set default=\"0\"\nfi\n\
    function savedefault {\n  true\n}\nmenuentry 'Debian' --class debian $menuentry_id_option 'simple' {\n\
    \tload_video\n\tlinux\t/boot/vmlinuz-6.1 root=/dev/sda1 ro quiet isolcpus=3\n\tinitrd /boot/initrd\n}\n\
    submenu 'Advanced' $menuentry_id_option 'advanced' {\n\tmenuentry 'Debian 6.12' --id 'new' {\n\
    \t\tlinux /boot/vmlinuz-6.12 root=/dev/sda1 ro rt\n\t}\n}\n";

#[test]
fn the_menu_boots_what_its_environment_says() {
    let cfg = ("/boot/grub/grub.cfg", MENU);
    let first = ["root=/dev/sda1 @11", "ro @11", "quiet @11", "isolcpus=3 @11"];
    assert_eq!(words(&[cfg]), first);
    let once = ("/boot/grub/grubenv", "# GRUB Environment Block\nnext_entry=advanced>new\n####");
    assert_eq!(words(&[cfg, once]), ["root=/dev/sda1 @16", "ro @16", "rt @16"]);
    let gone = ("/boot/grub/grubenv", "next_entry=no such entry\n");
    assert_eq!(words(&[cfg, gone]), first);
    let saved = MENU.replace("default=\"0\"", "default=\"${saved_entry}\"");
    let saved = [("/boot/grub/grub.cfg", saved.as_str()), ("/boot/grub/grubenv", "saved_entry=1>0\n")];
    assert_eq!(words(&saved), ["root=/dev/sda1 @16", "ro @16", "rt @16"]);
}

/// What only root may read: the choice is then not guessed, and the defaults alone are not all.
#[test]
fn files_that_may_not_be_read_are_not_guessed() {
    let mut tree = sysroot::Tree::whole([("/boot/grub/grub.cfg".to_owned(), MENU.as_bytes().to_vec())]);
    tree.files.insert("/boot/grub/grubenv".into(), Fact::Unreadable(13));
    assert_eq!(find(&SysRoot::of(tree.clone())), Fact::Unreadable(13));
    tree.files.insert("/boot/grub/grubenv".into(), Fact::Absent);
    tree.files.insert("/boot/grub/grub.cfg".into(), Fact::Unreadable(13));
    assert_eq!(find(&SysRoot::of(tree.clone())), Fact::Unreadable(13));
    let defaults = b"GRUB_CMDLINE_LINUX=isolcpus=3\n".to_vec();
    tree.files.insert("/etc/default/grub".into(), Fact::Value(defaults));
    let Fact::Value(request) = find(&SysRoot::of(tree)) else { panic!() };
    assert_eq!((shown(&request.words), request.is_whole), (vec!["isolcpus=3 @1".to_owned()], false));
}

#[test]
fn what_waits_for_update_grub_is_distinguished() {
    let files = [
        ("/boot/grub/grub.cfg", MENU),
        ("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n"),
        (
            "/etc/default/grub.d/90-rt.cfg",
            "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT nohlt\"\n",
        ),
        ("/etc/default/grub.d/README", "GRUB_CMDLINE_LINUX=no\n"),
    ];
    let Fact::Value(request) = found(&files) else { panic!() };
    assert_eq!(shown(&request.sources), ["quiet @1", "nohlt @1"]);
    assert_eq!(request.sources[1].place.path, "/etc/default/grub.d/90-rt.cfg");
    assert_eq!((request.loader, request.generator, request.is_whole), ("grub", "update-grub", true));
}

#[test]
fn grub_left_behind_on_a_disk_does_not_speak_for_another_loader() {
    let line = |text| [("/boot/grub/grub.cfg", MENU), ("/proc/cmdline", text)];
    assert_eq!(found(&line("console=ttyS0 root=/dev/vda")), Fact::Absent);
    assert!(matches!(found(&line("BOOT_IMAGE=/boot/vmlinuz-6.1 quiet")), Fact::Value(_)));
}

#[test]
fn entries_of_the_specification_are_grubs_where_it_asks_for_them() {
    let files = [
        ("/boot/grub2/grub.cfg", "set default=\"${saved_entry}\"\ninsmod blscfg\nblscfg\n"),
        ("/boot/grub2/grubenv", "saved_entry=abc-5.14.0-70\nkernelopts=root=/dev/sda1 ro\n"),
        ("/boot/loader/entries/abc-5.14.0-9.conf", "title RHEL\nlinux /v\noptions root=/dev/sda1 old\n"),
        (
            "/boot/loader/entries/abc-5.14.0-70.conf",
            "linux /v\noptions $kernelopts isolcpus=1 $tuned_params\n",
        ),
        ("/boot/loader/entries/abc-5.14.0-427.conf", "linux /v\noptions newest\n"),
    ];
    assert_eq!(words(&files), ["root=/dev/sda1 @2", "ro @2", "isolcpus=1 @2"]);
    let unsaved = [&files[..1], &files[2..]].concat();
    assert_eq!(words(&unsaved), ["newest @2"]);
}

#[test]
fn systemd_boot_takes_its_default_or_the_newest() {
    let entries = [
        ("/boot/loader/entries/deb-6.9.conf", "sort-key debian\nversion 6.9\noptions quiet old\nlinux /l\n"),
        (
            "/boot/loader/entries/deb-6.10+0-3.conf",
            "sort-key debian\nversion 6.10\noptions failed\nlinux /l\n",
        ),
        (
            "/boot/loader/entries/deb-6.9.1.conf",
            "sort-key debian\nversion 6.9.1\noptions quiet\noptions rt\nlinux /l\n",
        ),
        ("/boot/loader/entries/deb-6.11.conf", "sort-key debian\nversion 6.11\noptions nothing to load\n"),
        ("/etc/kernel/cmdline", "quiet\nnohlt\n"),
    ];
    let with = |settings| [entries.as_slice(), &[("/efi/loader/loader.conf", settings)]].concat();
    assert_eq!(words(&with("timeout 3\n")), ["quiet @3", "rt @4"]);
    assert_eq!(words(&with("default deb-6.9.conf\n")), ["quiet @3", "old @3"]);
    assert_eq!(found(&with("default @saved\n")), Fact::Unsupported);
    let image = [with("").as_slice(), &[("/efi/EFI/Linux/a.efi", "MZ")]].concat();
    assert_eq!(found(&image), Fact::Unsupported);
    let Fact::Value(request) = found(&with("")) else { panic!() };
    assert_eq!(shown(&request.sources), ["quiet @1", "nohlt @2"]);
}

const LOADER_ENTRY_DEFAULT: &str =
    "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// What systemd-boot 252 boots of some entries, with some settings, each seen: the names and their sort keys are all that
/// differs.
fn booted(settings: &str, entries: &[(&str, &str)], variable: Option<&str>) -> Fact<Vec<String>> {
    let entry = |(name, key): &(&str, &str)| {
        (format!("/boot/loader/entries/{name}"), format!("options {name}\nlinux /l\n{key}"))
    };
    let files: Vec<(String, String)> = entries.iter().map(entry).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    files.push(("/boot/loader/loader.conf", settings));
    let variable =
        variable.map(|value| format!("\x06\0\0\0{}\0\0", value.replace("", "\0").trim_start_matches('\0')));
    files.extend(variable.as_deref().map(|value| (LOADER_ENTRY_DEFAULT, value)));
    found(&files).map(|request| shown(&request.words))
}

#[test]
fn systemd_boot_sorts_as_it_was_seen_to() {
    let keyed = "version 6.1\nsort-key debian\n";
    for (entries, first) in [
        ([("debian.conf", ""), ("debian-rt.conf", "")], "debian.conf @1"),
        ([("debian-10.conf", ""), ("debian-10~rc1.conf", "")], "debian-10.conf @1"),
        ([("debian+1.conf", ""), ("debian-worstcase+1.conf", "")], "debian+1.conf @1"),
        ([("debian.conf", keyed), ("debian-worstcase+1.conf", keyed)], "debian.conf @1"),
        ([("debian.conf", keyed), ("zz.conf", "version 6.2\n")], "debian.conf @1"),
        ([("debian_a.conf", ""), ("debianb.conf", "")], "debianb.conf @1"),
        ([("6.1.0-9-amd64.conf", ""), ("6.1.0-10-amd64.conf", "")], "6.1.0-10-amd64.conf @1"),
    ] {
        assert_eq!(booted("", &entries, None), Fact::Value(vec![first.to_owned()]), "{entries:?}");
    }
}

#[test]
fn systemd_boot_finds_its_default_as_it_was_seen_to() {
    let three = [("aaa.conf", ""), ("bbb.conf", ""), ("ccc.conf", "")];
    for (settings, first) in [
        ("", "ccc"),
        ("default aaa.conf\n", "aaa"),
        ("default a*\n", "aaa"),
        ("default AAA.CONF\n", "aaa"),
        ("default ?aa.conf\n", "aaa"),
        ("default [a-b]*\n", "bbb"),
        ("default aaa.conf\ndefault bbb.conf\n", "bbb"),
        ("default nosuch*\n", "ccc"),
    ] {
        let first = Fact::Value(vec![format!("{first}.conf @1")]);
        assert_eq!(booted(settings, &three, None), first, "{settings}");
    }
    assert_eq!(booted("default aaa\n", &three, None), Fact::Unsupported, "once it was found, and is not now");
    let of_firmware = booted("default aaa.conf\n", &three, Some("bbb.conf"));
    assert_eq!(of_firmware, Fact::Value(vec!["bbb.conf @1".to_owned()]));
    let unreadable = format!("{LOADER_ENTRY_DEFAULT}/a directory");
    let files = [
        ("/boot/loader/loader.conf", "timeout 3\n"),
        ("/boot/loader/entries/a.conf", "linux /l\noptions a\n"),
        (&*unreadable, ""),
    ];
    assert_eq!(words(&files[..2]), ["a @2"]);
    assert!(!matches!(found(&files), Fact::Value(_)), "no guess where the variable cannot be read");
}

#[test]
fn extlinux_boots_its_default_label() {
    let text = "default l1\nmenu title U-Boot\nlabel l0\n\tlinux /v\n\tappend root=/dev/sda quiet\n\
                LABEL l1\n  APPEND root=/dev/sda isolcpus=3\n";
    let path = "/boot/extlinux/extlinux.conf";
    assert_eq!(words(&[(path, text)]), ["root=/dev/sda @7", "isolcpus=3 @7"]);
    let common = "append a\nlabel x\nlabel y\nappend -\nmenu default\n";
    assert_eq!(labels(path, common)[0].append.as_ref().unwrap().text, "a");
    assert_eq!(words(&[(path, common)]), Vec::<String>::new());
}

#[test]
fn extlinux_boots_what_is_named_whatever_the_menu_marks_and_wherever_it_stands() {
    let path = "/boot/extlinux/extlinux.conf";
    let booted = |text: &str| words(&[(path, text)]).join(" ");
    let two = "label a\nappend a\nlabel b\nappend b\nmenu default\n";
    assert_eq!(booted(&format!("default a\n{two}")), "a @3");
    assert_eq!(booted(&format!("{two}DEFAULT a\n")), "a @2");
    assert_eq!(booted(&format!("ui menu.c32\n{two}")), "b @5");
    assert_eq!(booted(&format!("DEFAULT menu.c32\n{two}")), "b @5");
    assert_eq!(booted(&format!("default b\ndefault a\n{two}")), "a @4");
    assert_eq!(booted(&format!("default b\nprompt 1\nontimeout a\n{two}")), "a @5");
    assert_eq!(booted(&format!("default b\nprompt 0\nontimeout a\n{two}")), "b @7");
    assert_eq!(booted(&format!("default a more=1 x\n{two}")), "a @3 more=1 @1 x @1");
    assert_eq!(booted("label x y\nappend x\nlabel a\nappend a\n"), "x @2");
}

#[test]
fn extlinux_reads_neither_a_labels_help_nor_what_a_menu_draws_as_settings() {
    let path = "/boot/extlinux/extlinux.conf";
    let help =
        "default a\nlabel a\nappend a\nTEXT HELP\ndefault b\nlabel a\nappend c\nENDTEXT\nlabel b\nappend b\n";
    assert_eq!(words(&[(path, help)]), ["a @3"]);
    assert_eq!(labels(path, help).len(), 2);
    let settings = |text: &str| labels(path, text)[0].settings.len();
    assert_eq!(settings("label a\nappend a\nMENU SEPARATOR\nappend b\nmenu title c\n"), 1);
    assert_eq!(settings("label a\nappend a\nmenu begin more\nmenu title c\n"), 1);
}

#[test]
fn extlinux_reads_what_a_file_includes_where_it_says_so_and_a_record_reads_the_same() {
    let path = "/boot/extlinux/extlinux.conf";
    let main = "default a\nprompt 1\nlabel a\nappend a\nmenu separator\nappend x\nMENU INCLUDE more.cfg\nontimeout c\n";
    let more = "default b\nlabel b\nappend b\ntext help\nontimeout b\nendtext\ninclude /boot/third\ninclude more.cfg\ninclude more.cfg\n";
    let files = [(path, main), ("/boot/extlinux/more.cfg", more), ("/boot/third", "label c\nappend c\n")];
    assert_eq!(words(&files), ["c @2"]);
    assert_eq!(words(&files[..2]), ["a @4"], "no label c is there");
    let tree = sysroot::Tree::whole(files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())));
    let remembering = SysRoot::of(tree).remembering();
    let found = super::find(&remembering);
    assert_eq!(
        super::find(&SysRoot::of(remembering.remembered())).map(|of| of.line()),
        found.map(|of| of.line())
    );
}

#[test]
fn boards_read_one_line_or_a_few_variables() {
    let pi = [("/boot/firmware/cmdline.txt", "console=serial0,115200 root=PARTUUID=1 rt\nignored\n")];
    assert_eq!(words(&pi), ["console=serial0,115200 @1", "root=PARTUUID=1 @1", "rt @1"]);
    let elsewhere =
        [pi[0], ("/boot/firmware/config.txt", "os_prefix=new/\n"), ("/boot/firmware/new/cmdline.txt", "new")];
    assert_eq!(words(&elsewhere), ["new @1"]);
    let board = [("/boot/armbianEnv.txt", "verbosity=1\nextraargs=isolcpus=2 quiet\nextraargs=isolcpus=3\n")];
    assert_eq!(words(&board), ["isolcpus=3 @3"]);
    assert!(!found(&board).value().unwrap().is_whole);
    let blanks = [("/boot/armbianEnv.txt", "  extraargs=quiet\nextraargs =isolcpus=3\n")];
    assert_eq!(words(&blanks), ["quiet @1"]);
    assert_eq!(found(&[("/etc/hostname", "x")]), Fact::Absent);
}

#[test]
fn lines_below_a_filter_that_the_firmware_alone_can_judge_are_unknown() {
    const DIRECTORY: &str = "/boot/firmware";
    let with = |settings: &str| {
        let files = [
            ("cmdline.txt", "usual"),
            ("other.txt", "other"),
            ("new/cmdline.txt", "new"),
            ("more.txt", "[pi5]\ncmdline=other.txt\n"),
            ("round.txt", "include round.txt\ninclude round.txt\n"),
            ("config.txt", settings),
        ];
        let files = files.map(|(name, text)| (format!("{DIRECTORY}/{name}"), text.as_bytes().to_vec()));
        SysRoot::of(sysroot::Tree::whole(files))
    };
    for (settings, expected) in [
        ("[pi3]\narm_freq=1\n", Some("usual")),
        ("[pi3]\ncmdline=other.txt\n", None),
        ("[EDID=VSC-TD2220]\nos_prefix=new/\n", None),
        ("[gpio4=1]\ncmdline=other.txt\n[all]\narm_freq=1\n", None),
        ("[none]\ncmdline=other.txt\n[all]\n", Some("usual")),
        ("[none]\n[pi4]\ncmdline=other.txt\n", None),
        ("[pi3]\ncmdline=other.txt\n[ALL]\ncmdline=other.txt\n", Some("other")),
        ("[pi3]\ncmdline=cmdline.txt\n", None),
        ("cmdline=other.txt\n[pi3]\ncmdline=other.txt\n", Some("other")),
        ("[pi4]\n#os_prefix=new/\n", Some("usual")),
        ("include more.txt\n", None),
        ("include more.txt\n[all]\ncmdline=cmdline.txt\n", Some("usual")),
        ("include round.txt\n", Some("usual")),
        ("os_prefix=new/\n", Some("new")),
    ] {
        let root = with(settings);
        let found = super::find(&root);
        let first = found.value().map(|request| request.words[0].word.name.clone());
        assert_eq!(first.as_deref(), expected, "{settings}");
        assert_eq!(super::firmware_filter(&root).is_some(), expected.is_none(), "{settings}");
        if expected.is_none() {
            assert_eq!(found, Fact::Unsupported, "{settings}");
        }
    }
    let turbo = |settings: &str| FirmwareSettings::read(&with(settings), DIRECTORY).get("force_turbo");
    assert_eq!(turbo("force_turbo=1\n"), FirmwareSetting::Value("1".to_owned()));
    assert_eq!(turbo("[none]\nforce_turbo=1\n"), FirmwareSetting::Absent);
    assert_eq!(turbo("force_turbo=1\n[pi4]\nforce_turbo=0\n"), FirmwareSetting::Below("[pi4]".to_owned()));
}

#[test]
fn a_variable_that_doubles_itself_ends() {
    let text = "GRUB_CMDLINE_LINUX=0123456789\n".to_owned()
        + &"GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX$GRUB_CMDLINE_LINUX\"\n".repeat(64);
    assert_eq!(sourced(&text), None);
}

proptest! {
    #[test]
    fn any_text_is_answered_and_places_lie_in_it(
        text in "(([A-C]|GRUB_CMDLINE_LINUX)=|options |append |label a|default a |text\n|linux a |menuentry x \\{|[\"'$`{}\\\\\n#; ]|[a-z]{1,3}){0,20}|.{0,60}"
    ) {
        let mut variables = Variables::default();
        source("a", &text, &mut variables);
        let chosen = match menu("a", &text, &variables) {
            Choice::Entry(entry) => entry.words.unwrap_or_default(),
            _ => Vec::new(),
        };
        let appended = labels("a", &text).into_iter().flat_map(|label| [label.append, label.more]).flatten();
        let all = [
            defaults(&variables).unwrap_or_default(),
            chosen,
            entry("a", &text).words(&variables).unwrap_or_default(),
            cmdline_txt("a", &text),
            environment_text("a", &text),
            appended.flat_map(|piece| words_of(&[piece])).collect(),
        ];
        for requested in all.iter().flatten() {
            let place = &requested.place;
            prop_assert!(place.span.start <= place.span.end && place.span.end <= text.len(), "{place:?}");
            prop_assert!(place.line >= 1 && place.line <= text.matches('\n').count() + 1);
        }
    }

    /// A word that is quoted for the shell and for GRUB is read as itself, from where it stands.
    #[test]
    fn a_quoted_word_is_read_as_itself(word in "[a-z]{1,5}=[a-z0-9,.$\"`\\\\-]{0,9}") {
        let protect = |c: char| if "\\\"$`".contains(c) { format!("\\{c}") } else { c.to_string() };
        let protected: String = word.chars().map(protect).collect();
        let quoted = format!("X=1\nGRUB_CMDLINE_LINUX=\"'{protected}'\"\n");
        let mut variables = Variables::default();
        source("a", &quoted, &mut variables);
        let words = defaults(&variables).unwrap();
        let line = CommandLine::parse(&word);
        prop_assert_eq!(&words[0].word, &line.words[0]);
        prop_assert_eq!(words[0].place.line, 2);
    }
}
