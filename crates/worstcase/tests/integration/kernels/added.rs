//! Kernels of one's own, and the cache as one meets it.

use std::fs;
use std::process::Command;

use super::house::{House, answer, bzimage};

#[test]
fn a_kernel_is_added_and_listed() {
    let house = House::new();
    let image = house.file("bzImage", bzimage("6.12.1-mine", true)).display().to_string();
    let added = house.run(&["add", "mine", "--image", &image]);
    added.is_done();
    assert_eq!(added.out, format!("mine: 6.12.1-mine (added from {image})\n"));
    let listed = house.run(&["list"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(lines[0], "name  arch   release      from");
    assert!(lines[1].starts_with("mine  amd64  6.12.1-mine  added from /"), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    let kernels = house.listed();
    let path = kernels[0]["image"].as_str().unwrap();
    assert_eq!(fs::read(path).unwrap(), bzimage("6.12.1-mine", true));
}

#[test]
fn an_empty_cache_says_what_to_do() {
    let house = House::new();
    let listed = house.run(&["list"]);
    listed.is_done();
    assert!(listed.out.is_empty() && listed.said.contains("hint: worstcase lab kernels fetch"), "{listed:?}");
    assert_eq!(house.run(&["list", "--json"]).out, "[]\n");
    assert!(!house.path("cache").exists(), "looking makes nothing");
}

#[test]
fn what_no_guest_boots_is_refused() {
    let house = House::new();
    let path = |name: &str| house.path(name).display().to_string();
    house.file("old", bzimage("3.12.19", false));
    house.file("cut", &bzimage("6.12.1", true)[..1050]);
    house.file("text", "#!/bin/sh\n");
    let add = |name: &str, image: &str| house.run(&["add", name, "--image", &path(image)]);
    add("mine", "old").is_error("is a kernel for 32-bit x86", "amd64 or arm64");
    add("mine", "cut").is_error("is a bzImage that is cut off", "");
    add("mine", "text").is_error("is no kernel image", "vmlinuz");
    add("mine", "none").is_error("No such file or directory", "");
    add("../mine", "old").is_error("", "");
    assert!(house.listed().is_empty() && house.left().is_empty());
}

#[test]
fn a_broken_kernel_is_a_warning_and_others_are_listed() {
    let house = House::new();
    let image = house.file("bzImage", bzimage("6.12.1", true)).display().to_string();
    house.run(&["add", "good", "--image", &image]).is_done();
    house.file("cache/broken/kernel.json", "{");
    let listed = house.run(&["list"]);
    listed.is_done();
    assert!(listed.out.contains("good") && !listed.out.contains("broken"), "{listed:?}");
    assert!(listed.said.starts_with("warning: broken is no kernel: "), "{listed:?}");
}

#[test]
fn a_cache_that_cannot_be_made_is_an_error() {
    let house = House::new();
    let image = house.file("bzImage", bzimage("6.12.1", true)).display().to_string();
    house.file("file", "");
    let mut add = house.command(&["add", "mine", "--image", &image]);
    let added = answer(&add.env("WORSTCASE_CACHE", house.path("file/cache")).output().unwrap());
    added.is_error("Not a directory", "");
    let mut homeless = Command::new(super::house::BINARY);
    let listed = homeless.args(["lab", "kernels", "list"]).env_clear().output().unwrap();
    answer(&listed).is_error("nor HOME is set", "WORSTCASE_CACHE");
}

/// A file system of 1 MB is full before the image is copied.
#[test]
fn a_full_disk_leaves_the_cache_as_it_was() {
    let house = House::new();
    let mut image = bzimage("6.12.1", true);
    house.file("small", &image);
    image.resize(2 << 20, 0);
    house.file("large", &image);
    fs::create_dir(house.path("cache")).unwrap();
    let script = r#"mount -t tmpfs -o size=1m,mode=0755 none "$WORSTCASE_CACHE" || exit 99
        "$0" lab kernels add mine --image "$HOUSE/small" >/dev/null || exit 98
        "$0" lab kernels add mine --image "$HOUSE/large"; code=$?
        ls -A "$WORSTCASE_CACHE" | tr '\n' ' '
        "$0" lab kernels list --json
        exit $code"#;
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, super::house::BINARY]);
    unshare.env("HOUSE", house.path("")).env("WORSTCASE_CACHE", house.path("cache"));
    let ended = answer(&unshare.output().unwrap());
    if matches!(ended.code, Some(1 | 99)) {
        println!("skipped: no file system may be mounted here, which depends on the kernel: {}", ended.said);
        return;
    }
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.said.contains("No space left on device") && ended.said.contains("hint: "), "{ended:?}");
    assert!(ended.out.starts_with(".locks mine [{") && ended.out.contains("6.12.1"), "{ended:?}");
}
