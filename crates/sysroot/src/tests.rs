use proptest::prelude::*;
use rustix::fs::{FileType, Mode};

use super::*;
use crate::FakeTree;

fn tree() -> Tree {
    let mut tree = Tree::whole([
        ("/proc/cmdline".to_owned(), b"quiet\n".to_vec()),
        ("/proc/empty".to_owned(), Vec::new()),
        ("/dev/cpu_dma_latency".to_owned(), vec![0, 0x94, 0x35, 0x77]),
        ("/sys/text".to_owned(), b"=== not a mark\n\\x41 \\040 \xff\x01\tend".to_vec()),
        ("/sys/with space".to_owned(), "\u{e9}\n".into()),
    ]);
    tree.files.insert("/proc/config.gz".into(), Fact::Absent);
    tree.files.insert("/sys/kernel/debug/sched/preempt".into(), Fact::Unreadable(1));
    let name = |text: &str, is_directory| Name { text: text.into(), is_directory };
    let names = vec![name("a b", false), name("eth0", true)];
    tree.directories.insert("/sys/class/net".into(), Fact::Value(names));
    tree.directories.insert("/boot".into(), Fact::Unreadable(13));
    tree.links.insert("/sys/class/net/eth0/device/driver".into(), Fact::Value("../../drivers/igb".into()));
    tree.present.insert("/.dockerenv".into(), Fact::Absent);
    tree.is_capture = true;
    tree
}

#[test]
fn a_tree_survives_its_text_and_its_archive() {
    let tree = tree();
    assert_eq!(Tree::of_text(&tree.text()).unwrap(), tree, "{}", tree.text());
    assert_eq!(Tree::of_archive(&tree.archive().unwrap()).unwrap(), tree);
}

#[test]
fn a_capture_tells_what_it_was_not_asked() {
    let root = SysRoot::of(tree());
    assert_eq!(root.read("/proc/cmdline"), Fact::Value("quiet".into()));
    assert_eq!(root.read("/proc/config.gz"), Fact::Absent);
    assert_eq!(root.read("/sys/kernel/debug/sched/preempt"), Fact::Unreadable(1));
    assert_eq!(root.read("/proc/other"), Fact::Unsupported);
    assert_eq!(root.list("/sys/class/net"), Fact::Value(vec!["a b".into(), "eth0".into()]));
    assert_eq!(root.directories("/sys/class/net"), Fact::Value(vec!["eth0".into()]));
    assert_eq!(root.list("/boot"), Fact::Unreadable(13));
    assert_eq!(root.list("/proc"), Fact::Unsupported);
    assert_eq!(root.exists("/.dockerenv"), Fact::Absent);
    assert_eq!(root.link("/sys/class/net/eth0/device/driver"), Fact::Value("../../drivers/igb".into()));
    assert!(root.open("/proc/cmdline").is_err());
}

#[test]
fn a_whole_tree_is_listed_and_its_links_are_followed() {
    let text = "=== /sys/devices/pci0/net/eth0/mtu\n1500\n=== link value /sys/class/net/eth0 ../../devices/pci0/net/eth0\n\
                === link value /loop /loop\n=== present value /sys/kernel/debug\n=== file 13 /sys/kernel/secret\n";
    let root = SysRoot::of(Tree::of_text(text).unwrap());
    assert_eq!(root.read("/sys/class/net/eth0/mtu"), Fact::Value("1500".into()));
    assert_eq!(root.list("/sys/class/net"), Fact::Value(vec!["eth0".into()]));
    assert_eq!(root.list("/sys/class/net/eth0"), Fact::Value(vec!["mtu".into()]));
    assert_eq!(root.directories("/sys/class/net"), Fact::Value(vec![]));
    assert_eq!(
        root.directories("/sys"),
        Fact::Value(vec!["class".into(), "devices".into(), "kernel".into()])
    );
    assert_eq!(root.list("/sys/kernel/debug"), Fact::Value(vec![]));
    assert_eq!(root.list("/sys/kernel"), Fact::Value(vec!["debug".into(), "secret".into()]));
    assert_eq!(root.directories("/sys/kernel"), Fact::Value(vec!["debug".into()]));
    assert_eq!(root.read("/loop"), Fact::Absent);
    assert_eq!(root.read("/sys"), Fact::Unreadable(Errno::ISDIR.raw_os_error()));
    assert_eq!(root.exists("/sys/kernel/none"), Fact::Absent);
}

#[test]
fn what_was_read_is_remembered_and_read_once() {
    let tree = FakeTree::new(&[("/proc/a", "1"), ("/sys/d/e", "2")]);
    let root = tree.root.remembering();
    let before = (root.read("/proc/a"), root.read("/proc/none"), root.list("/sys/d"), root.exists("/sys/d"));
    tree.write("/proc/a", "2");
    tree.write("/proc/none", "2");
    tree.write("/sys/d/f", "2");
    let after = |root: &SysRoot| {
        (root.read("/proc/a"), root.read("/proc/none"), root.list("/sys/d"), root.exists("/sys/d"))
    };
    assert_eq!(after(&root), before);
    assert_eq!(after(&root.remembering()), before);
    assert_eq!(after(&SysRoot::of(root.remembered())), before);
    assert_eq!(tree.root.read("/proc/a"), Fact::Value("2".into()));
    assert_eq!(tree.root.remembered(), Tree::captured());
}

#[test]
fn places_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let shown = |path: &Path| {
        SysRoot::open_tree(path)
            .map(|root| root.read("/proc/cmdline"))
            .map_err(|error| error.to_string().replace(&directory.path().display().to_string(), ""))
    };
    let quiet = Ok(Fact::Value("quiet".into()));
    assert_eq!(shown(&write("a.tar.gz", &tree().archive().unwrap())), quiet);
    assert_eq!(shown(&write("a.txt", tree().text().as_bytes())), quiet);
    assert_eq!(shown(directory.path()), Ok(Fact::Absent));
    assert_eq!(
        shown(&write("notes", b"hello")),
        Err("/notes is not a snapshot: it is neither compressed nor a text with `=== ` lines".into())
    );
    assert_eq!(
        shown(&write("bad", b"=== file\n")),
        Err("/bad is not a snapshot: line 1 of the list is `file`: it has no kind, state and path".into())
    );
    let cut = tree().archive().unwrap();
    assert!(shown(&write("cut", &cut[..cut.len() / 2])).unwrap_err().contains("cannot be decompressed"));
    assert!(shown(&directory.path().join("none")).unwrap_err().starts_with("read /none: No such file"));
}

/// A text that gzip has whole may have been made of an archive that was not.
#[test]
fn an_archive_that_was_cut_off_between_two_members_is_none() {
    let mut plain = Vec::new();
    let archive = tree().archive().unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(archive.as_slice()), &mut plain).unwrap();
    assert_eq!(Tree::of_archive(&plain).unwrap(), tree(), "an archive that is not compressed");
    let end = plain.len() - 1024;
    assert!(Tree::of_archive(&plain[..plain.len() - 512]).is_ok(), "other programs write one block of zeros");
    for blocks in 1..=end / 512 {
        let error = Tree::of_archive(&plain[..512 * blocks]).unwrap_err().to_string();
        assert!(error.contains("cut off"), "{blocks} of {}: {error}", end / 512);
    }
}

#[test]
fn nothing_stands_behind_the_end_of_a_text() {
    let text = tree().text();
    assert!(Tree::of_text(&format!("{text}\n\n")).is_ok());
    let error = Tree::of_text(&format!("{text}=== /proc/cmdline\nisolcpus=1\n")).unwrap_err();
    assert!(error.to_string().contains("behind `=== end`"), "{error}");
}

/// A header as other programs write it.
fn header(name: &str, kind: u8, size: &str, target: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..124 + size.len()].copy_from_slice(size.as_bytes());
    block[156] = kind;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

fn compressed(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &[blocks.concat(), vec![0; 1024]].concat()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_hostile_archive_reaches_nothing() {
    let shown = |blocks: &[Vec<u8>]| Tree::of_archive(&compressed(blocks)).map_err(|error| error.to_string());
    let escaping = shown(&[header("proc/../../etc/passwd", b'0', "0", "")]);
    assert_eq!(escaping, Err("its member `proc/../../etc/passwd` reaches out of the archive".into()));
    let devices =
        [header("dev/sda", b'4', "0", ""), header("dev/null", b'3', "0", ""), header("pipe", b'6', "7", "")];
    assert_eq!(shown(&devices), Ok(Tree::default()));
    let link = SysRoot::of(shown(&[header("proc/cmdline", b'2', "0", "/etc/hostname")]).unwrap());
    assert_eq!(link.read("/proc/cmdline"), Fact::Absent);
    assert_eq!(
        shown(&[header("a", b'0', "777777777777", "")]),
        Err("it is not a tar archive, or is cut off, at byte 512".into())
    );
    assert_eq!(shown(&[vec![b'x'; 512]]), Err("it is not a tar archive, or is cut off, at byte 0".into()));
    assert_eq!(shown(&[vec![b'x'; 100]]), Err("it is not a tar archive, or is cut off, at byte 0".into()));
    let bomb = vec![0; 512 << 10];
    assert_eq!(shown(&vec![bomb; 130]), Err("it holds more than 64 MiB".into()));
}

#[test]
fn archives_of_other_programs_are_read() {
    let long = format!("sys/{}/name", "directory/".repeat(12));
    let pax = format!("{} path={long}\n", long.len() + 10);
    let pax = format!("{} path={long}\n", pax.len());
    let padded = |text: &str| [text.as_bytes(), &vec![0; 512 - text.len()]].concat();
    let blocks = [
        header("./proc/", b'5', "0", ""),
        header("./proc/cmdline", b'0', "5", ""),
        padded("quiet"),
        header("PaxHeaders/name", b'x', &format!("{:o}", pax.len()), ""),
        padded(&pax),
        header("cut", b'0', "1", ""),
        padded("7"),
    ];
    let root = SysRoot::of(Tree::of_archive(&compressed(&blocks)).unwrap());
    assert_eq!(root.read("/proc/cmdline"), Fact::Value("quiet".into()));
    assert_eq!(root.read(&format!("/{long}")), Fact::Value("7".into()));
    assert_eq!(root.read("/proc/none"), Fact::Absent);
}

#[test]
fn a_text_that_was_cut_off_anywhere_or_changed_is_none() {
    let text = tree().text();
    let end = text.rfind("=== end").unwrap() + "=== end".len();
    for at in ("=== begin".len()..text.len() - 1).filter(|at| text.is_char_boundary(*at)) {
        // With the word and without its number it says no more than that somebody edited it.
        let is_whole = at == end || at == end + 1;
        assert_eq!(Tree::of_text(&text[..at]).is_ok(), is_whole, "{at}: {}", &text[..at]);
    }
    let edited = text.replacen("value", "absent", 1);
    assert!(Tree::of_text(&edited).unwrap_err().to_string().contains("another checksum"));
    let (before, _) = edited.rsplit_once(' ').unwrap();
    assert!(Tree::of_text(&format!("{before}\n")).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_answered_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Tree::of_archive(&bytes);
        let _ = Tree::of_archive(&compressed(std::slice::from_ref(&bytes)));
        if let Ok(tree) = Tree::of_text(&String::from_utf8_lossy(&bytes)) {
            prop_assert_eq!(Tree::of_text(&tree.text()).unwrap().text(), tree.text());
        }
    }

    #[test]
    fn any_file_survives(name in "[a-z \n=\u{e9}\\\\]{1,9}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let tree = Tree::whole([(format!("/{name}"), bytes)]);
        prop_assert_eq!(&Tree::of_text(&tree.text()).unwrap(), &tree);
        prop_assert_eq!(&Tree::of_archive(&tree.archive().unwrap()).unwrap(), &tree);
    }
}

#[test]
fn a_file_is_read_without_its_newline_and_nuls() {
    let tree = FakeTree::new::<&[u8]>(&[
        ("/sys/a", b" 42 \n"),
        ("/sys/model", b"P2041 RDB\0"),
        ("/sys/b", b"a\xffb"),
    ]);
    let root = &tree.root;
    assert_eq!(root.read("/sys/a"), Fact::Value("42".into()));
    assert_eq!(root.read("/sys/model"), Fact::Value("P2041 RDB".into()));
    assert_eq!(root.read("/sys/b"), Fact::Value("a\u{fffd}b".into()));
    assert_eq!(root.number("/sys/a"), Fact::Value(42_u32));
}

#[test]
fn absent_is_distinguished_from_unreadable() {
    let tree = FakeTree::new::<&[u8]>(&[("/sys/a", b"n/a")]);
    let root = &tree.root;
    assert_eq!(root.read("/sys/none"), Fact::Absent);
    assert_eq!(root.read("/sys/a/below-a-file"), Fact::Absent);
    assert_eq!(root.read("/sys"), Fact::Unreadable(Errno::ISDIR.raw_os_error()));
    assert_eq!(root.number::<u32>("/sys/a"), Fact::Unreadable(Errno::BADMSG.raw_os_error()));
    assert_eq!(root.list("/none"), Fact::Absent);
}

#[test]
fn an_endless_file_is_refused() {
    let tree = FakeTree::empty();
    let root = &tree.root;
    std::fs::File::create(root.path("/endless")).unwrap().set_len(LONGEST_FILE + 1).unwrap();
    assert_eq!(root.read("/endless"), Fact::Unreadable(Errno::FBIG.raw_os_error()));
}

#[test]
fn a_cpu_list_that_the_kernel_never_made_is_empty() {
    let tree = FakeTree::new::<&[u8]>(&[("/null", b"  (null)\n"), ("/empty", b"\n"), ("/some", b"2-3\n")]);
    let root = &tree.root;
    assert_eq!(root.cpu_list("/null"), Fact::Value(CpuList::new()));
    assert_eq!(root.cpu_list("/empty"), Fact::Value(CpuList::new()));
    assert_eq!(root.cpu_list("/some"), Fact::Value([2_u32, 3].into_iter().collect()));
}

#[test]
fn nothing_above_the_tree_is_reached() {
    let root = SysRoot::at("/tree");
    assert_eq!(root.path("/../../etc/passwd"), Path::new("/tree/etc/passwd"));
    assert_eq!(SysRoot::live().path("/proc/stat"), Path::new("/proc/stat"));
}

#[test]
fn names_come_in_order() {
    let tree =
        FakeTree::new::<&[u8]>(&[("/c/state10/name", b""), ("/c/state2/name", b""), ("/c/other", b"")]);
    let root = &tree.root;
    assert_eq!(root.list("/c"), Fact::Value(vec!["other".into(), "state10".into(), "state2".into()]));
    assert_eq!(root.directories("/c"), Fact::Value(vec!["state10".into(), "state2".into()]));
    assert_eq!(root.numbered("/c", "state"), [2, 10]);
}

#[test]
fn a_variable_of_the_firmware_is_remembered_without_the_machines_id() {
    let path = "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    let spread = |text: &str| text.chars().flat_map(|c| [c, '\0']).collect::<String>();
    let with = |id: &str| format!("\x06\0\0\0{}\0\0", spread(&format!("{id}-6.1.conf")));
    let tree = FakeTree::new(&[(path, &with("0123456789abcdef0123456789abcdef"))]);
    let kept = tree.root.remembering().bytes(path);
    assert_eq!(kept, Fact::Value(with(&"x".repeat(32)).into_bytes()));
}

/// Entries of the boot loader specification have the machine's id in their names.
#[test]
fn what_is_remembered_names_no_machine() {
    let id = "0123456789abcdef0123456789abcdef";
    let path = format!("/boot/loader/entries/{id}-6.1.conf");
    let tree = FakeTree::new(&[(path.as_str(), "options root=UUID=6a quiet\n")]);
    let root = tree.root.remembering();
    assert_eq!(root.list("/boot/loader/entries").value().unwrap(), &[format!("{id}-6.1.conf")]);
    assert!(root.read(&path).value().is_some());
    let text = root.remembered().text();
    assert!(!text.contains(id) && !text.contains("6a"), "{text}");
    let taken = SysRoot::of(Tree::of_text(&text).unwrap());
    let names = taken.list("/boot/loader/entries");
    let name = &names.value().unwrap()[0];
    assert_eq!(
        taken.read(&format!("/boot/loader/entries/{name}")),
        Fact::Value("options root=xxxxxxx quiet".into())
    );
}

#[test]
fn links_of_a_tree_lead_nowhere_out_of_it() {
    use std::os::unix::fs::symlink;
    let (tree, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| tree.path().join(name);
    std::fs::write(outside.path().join("secret"), "the host's").unwrap();
    std::fs::create_dir_all(at("etc/real")).unwrap();
    std::fs::write(at("etc/real/file"), "inside").unwrap();
    symlink("/etc/real", at("etc/absolute")).unwrap();
    symlink("../etc/real/file", at("etc/relative")).unwrap();
    symlink(outside.path().join("secret"), at("etc/secret")).unwrap();
    symlink(outside.path(), at("etc/away")).unwrap();
    symlink(format!("../../../../../../../../{}", outside.path().display()), at("etc/up")).unwrap();
    symlink("round", at("etc/round")).unwrap();
    let root = SysRoot::at(tree.path());
    for path in ["/etc/absolute/file", "/etc/relative", "/etc/real/file"] {
        assert_eq!(root.read(path), Fact::Value("inside".to_owned()), "{path}");
    }
    assert_eq!(root.list("/etc/absolute"), Fact::Value(vec!["file".to_owned()]));
    assert_eq!(root.link("/etc/absolute"), Fact::Value("/etc/real".to_owned()));
    for path in ["/etc/secret", "/etc/away/secret", "/etc/up/secret"] {
        assert_eq!(root.read(path), Fact::Absent, "{path}");
        assert_eq!(root.exists(path), Fact::Absent, "{path}");
    }
    assert!(root.read("/etc/round").value().is_none());
}

#[test]
fn what_is_no_regular_file_of_a_tree_is_not_read() {
    let tree = tempfile::tempdir().unwrap();
    let at = |name: &str| tree.path().join(name);
    let kinds = [("pipe", FileType::Fifo, 0), ("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3))];
    let mut made = vec!["socket"];
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (name, kind, device) in kinds {
        // Devices are root's to make.
        let mode = Mode::RUSR | Mode::WUSR;
        if rustix::fs::mknodat(rustix::fs::CWD, at(name), kind, mode, device).is_ok() {
            made.push(name);
        }
    }
    std::os::unix::fs::symlink("pipe", at("link")).unwrap();
    made.push("link");
    let root = SysRoot::at(tree.path());
    for name in made {
        assert_eq!(
            root.read(&format!("/{name}")),
            Fact::Unreadable(Errno::OPNOTSUPP.raw_os_error()),
            "{name}"
        );
    }
}
