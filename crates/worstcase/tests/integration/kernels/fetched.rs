//! Fetching, with an archive of the test's own: packages are files below `system` and `archive`.

use std::fs;
use std::time::Duration;

use super::house::{House, OWN, await_file, bzimage};

/// Knows the packages below `system`, or with the cache's own lists those below `archive` once they were updated.
const APT_CACHE: &str = r#"
lists="$HOUSE/system"
if [ "$1" = -c ]; then
    own=$(sed -n 's/^Dir::State::lists "\(.*\)";/\1/p' "$2")
    [ -e "$own/archive_Packages" ] && lists="$HOUSE/archive" || lists=/nonexistent
    shift 2
fi
for name; do :; done
case "$*" in
    *show*) [ -e "$lists/$name" ] || { echo "E: No packages found" >&2; exit 100; }; cat "$lists/$name";;
    *pkgnames*) ls "$lists";;
esac
"#;

/// Downloads what `archive` has, while there is a file `network`; says when it begins, waits while there is `slow`.
const APT_GET: &str = r#"
echo "$*" >> "$HOUSE/calls"
own=$(sed -n 's/^Dir::State::lists "\(.*\)";/\1/p' "$2" 2>/dev/null)
for what; do :; done
if [ "$what" = update ]; then
    [ -e "$HOUSE/network" ] || { echo "W: Failed to fetch: could not resolve" >&2; exit 0; }
    touch "$own/archive_Packages"; exit 0
fi
name=${what%%=*}
[ -e "$HOUSE/network" ] && [ -e "$HOUSE/archive/$name" ] || { echo "E: Failed to fetch $name" >&2; exit 100; }
touch "$HOUSE/begun"
while [ -e "$HOUSE/slow" ]; do sleep 0.05; done
echo "$name" > "${name}_1_all.deb"
"#;

/// Unpacks an image, a configuration and a module, as `contents` says.
const DPKG_DEB: &str = r#"
name=$(cat "$2"); release=${name#linux-image-}
mkdir -p "$3/boot" "$3/lib/modules/$release/kernel"
[ -e "$HOUSE/no-image" ] || cp "$HOUSE/image" "$3/boot/vmlinuz-$release"
echo CONFIG_HZ=250 > "$3/boot/config-$release"
echo kernel/a.ko.xz > "$3/lib/modules/$release/modules.order"
echo module > "$3/lib/modules/$release/kernel/a.ko.xz"
"#;

const META: &str = "linux-image-rt";
const NEWEST: &str = "linux-image-6.1.0-56-rt";

/// Debian 12 in small: a meta package and the image that it stands for, in the system's lists and in the archive.
fn debian() -> House {
    let house = House::new();
    house.tool("apt-cache", APT_CACHE);
    house.tool("apt-get", APT_GET);
    house.tool("dpkg-deb", DPKG_DEB);
    house.file("image", bzimage("6.1.0-56-rt-amd64", true));
    house.file("network", "");
    for lists in ["system", "archive"] {
        package(&house, lists, &format!("{META}-{OWN}"), &format!("Depends: {NEWEST}-{OWN} (= 6.1.192-2)\n"));
        package(&house, lists, &format!("{NEWEST}-{OWN}"), "Depends: kmod\nSize: 70000000\n");
    }
    house
}

fn package(house: &House, lists: &str, name: &str, fields: &str) {
    house.file(&format!("{lists}/{name}"), format!("Package: {name}\nVersion: 6.1.192-2\n{fields}"));
}

fn name() -> String {
    format!("debian-6.1-rt-{OWN}")
}

const FETCH: [&str; 4] = ["fetch", "debian", "--flavour", "rt"];

#[test]
fn the_newest_kernel_is_found_through_its_meta_package() {
    let house = debian();
    let fetched = house.run(&FETCH);
    fetched.is_done();
    assert_eq!(
        fetched.out,
        format!("{}: 6.1.0-56-rt-{OWN} (Debian package {NEWEST}-{OWN} 6.1.192-2)\n", name())
    );
    assert!(fetched.said.contains("(70 MB)"), "{fetched:?}");
    let kernel = &house.listed()[0];
    let file = |field: &str| fs::read(kernel[field].as_str().unwrap()).unwrap();
    assert_eq!(file("image"), bzimage("6.1.0-56-rt-amd64", true));
    assert_eq!(file("config"), b"CONFIG_HZ=250\n");
    let modules = house.path("cache").join(name()).join("modules");
    assert_eq!(kernel["modules"].as_str().unwrap(), modules.to_str().unwrap());
    assert!(modules.join("kernel/a.ko.xz").is_file() && house.left().is_empty());
    let files = fs::read_dir(house.path("cache").join(name())).unwrap().count();
    assert_eq!(files, 4, "the package and what is not needed of it are gone");
}

#[test]
fn a_kernel_that_is_there_is_not_fetched_again_until_there_is_a_newer_one() {
    let house = debian();
    house.run(&FETCH).is_done();
    house.run(&["fetch", "debian", "--flavour", "rt", "--version", "6.1"]).is_done();
    assert_eq!(house.count("calls", "download"), 1);
    for lists in ["system", "archive"] {
        let newer = format!("linux-image-6.1.0-57-rt-{OWN}");
        package(&house, lists, &format!("{META}-{OWN}"), &format!("Depends: {newer}\n"));
        package(&house, lists, &newer, "");
    }
    let fetched = house.run(&FETCH);
    assert!(fetched.out.starts_with(&format!("{}: 6.1.0-57-rt-{OWN} ", name())), "{fetched:?}");
    assert_eq!((house.count("calls", "download"), house.listed().len()), (2, 1));
}

#[test]
fn lists_of_the_caches_own_are_read_where_the_systems_do_not_do() {
    // The system's are empty, as in a container; name a package that is gone; or are of another architecture.
    let empty = debian();
    fs::remove_dir_all(empty.path("system")).unwrap();
    empty.run(&FETCH).is_done();
    let stale = debian();
    package(&stale, "system", &format!("{META}-{OWN}"), &format!("Depends: linux-image-6.1.0-50-rt-{OWN}\n"));
    package(&stale, "system", &format!("linux-image-6.1.0-50-rt-{OWN}"), "");
    let fetched = stale.run(&FETCH);
    assert!(fetched.out.contains(NEWEST), "{fetched:?}");
    let foreign = debian();
    let other = if OWN == "amd64" { "arm64" } else { "amd64" };
    package(
        &foreign,
        "archive",
        &format!("linux-image-{other}"),
        &format!("Depends: linux-image-6.1.0-56-{other}\n"),
    );
    package(&foreign, "archive", &format!("linux-image-6.1.0-56-{other}"), "");
    let fetched = foreign.run(&["fetch", "debian", "--arch", other]);
    assert!(fetched.out.starts_with(&format!("debian-6.1-{other}: ")), "{fetched:?}");
    for house in [empty, stale, foreign] {
        assert_eq!(house.count("calls", "update"), 1, "once");
    }
    let current = debian();
    current.run(&FETCH).is_done();
    assert_eq!(current.count("calls", "update"), 0, "never without need");
}

#[test]
fn what_stops_a_fetch_is_reported_and_leaves_nothing() {
    let no_network = debian();
    fs::remove_file(no_network.path("network")).unwrap();
    no_network.run(&FETCH).is_error(&format!("E: Failed to fetch {NEWEST}-{OWN}"), "is there a network");
    fs::remove_dir_all(no_network.path("system")).unwrap();
    no_network.run(&FETCH).is_error("brought no package lists: W: Failed to fetch", "is there a network");
    let unknown = debian();
    unknown
        .run(&["fetch", "debian", "--flavour", "rt", "--version", "6.9"])
        .is_error(&format!("have no linux-image-6.9-rt-{OWN}"), "they have 6.1.0-56");
    let no_image = debian();
    no_image.file("no-image", "");
    no_image.run(&FETCH).is_error("has no boot/vmlinuz-*", "");
    let other = debian();
    other.file("image", bzimage("6.1.0-56-686-pae", false));
    other.run(&FETCH).is_error("32-bit x86", "");
    let full = debian();
    full.tool("dpkg-deb", "echo 'dpkg-deb: error: write: No space left on device' >&2; exit 2");
    full.run(&FETCH).is_error("No space left on device", "");
    let mut no_apt = debian();
    no_apt.only_tools = true;
    fs::remove_file(no_apt.path("tools/apt-cache")).unwrap();
    no_apt.run(&FETCH).is_error("start apt-cache: No such file or directory", "worstcase lab kernels add");
    for house in [no_network, unknown, no_image, other, full, no_apt] {
        assert!(house.listed().is_empty() && house.left().is_empty());
    }
}

#[test]
fn a_fetch_that_was_killed_leaves_no_kernel_and_the_next_one_goes_well() {
    let house = debian();
    house.file("slow", "");
    let mut first = house.start(&FETCH);
    await_file(&house.path("begun"));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(house.listed().is_empty());
    fs::remove_file(house.path("slow")).unwrap();
    house.run(&FETCH).is_done();
    assert!(house.listed().len() == 1 && house.left().is_empty());
}

#[test]
fn two_at_once_fetch_it_once() {
    let house = debian();
    house.file("slow", "");
    let children = [house.start(&FETCH), house.start(&FETCH)];
    await_file(&house.path("begun"));
    std::thread::sleep(Duration::from_millis(200));
    fs::remove_file(house.path("slow")).unwrap();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!((house.count("calls", "download"), house.listed().len()), (1, 1));
}
