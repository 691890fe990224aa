//! try
fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let e = audit::recipe::examine(&text, Default::default());
    println!("{} {} {} {}", e.boot_words, e.symbols, e.sysctls, e.commands);
    for r in e.remarks {
        println!("{:4} {:?} {:?} `{}` {} => {:?}", r.line, r.severity, r.id, r.excerpt, r.message, r.instead);
    }
}
