use proptest::prelude::*;

use super::*;
use crate::Order;
use crate::made_up::{MACHINES, SWITCH};
use crate::value::Value;

/// A format with a field of each sort.
const ALL: &str = "name: all
ID: 9
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;
\tfield:__rel_loc u8[] raw;\toffset:12;\tsize:4;\tsigned:0;
\tfield:u8 small;\toffset:16;\tsize:1;\tsigned:0;
\tfield:s16 negative;\toffset:18;\tsize:2;\tsigned:1;
\tfield:void * callback;\toffset:20;\tsize:4;\tsigned:0;
\tfield:unsigned char mac[6];\toffset:24;\tsize:6;\tsigned:0;
\tfield:struct pair both;\toffset:30;\tsize:3;\tsigned:0;
\tfield:const char *where;\toffset:36;\tsize:4;\tsigned:0;
\tfield:char rest[];\toffset:40;\tsize:0;\tsigned:0;

print fmt: \"%s\", __get_str(name)
";

fn data() -> Vec<u8> {
    let mut data = vec![0; 40];
    data[8..12].copy_from_slice(&(44_u32 | 3 << 16).to_le_bytes());
    data[12..16].copy_from_slice(&(31_u32 | 2 << 16).to_le_bytes());
    data[16] = 200;
    data[18..20].copy_from_slice(&(-3_i16).to_le_bytes());
    data[20..24].copy_from_slice(&[1, 2, 3, 4]);
    data[24..33].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    data.extend(b"end\0ab\0\x07\x08");
    data
}

#[test]
fn each_sort_of_field_has_its_value() {
    let (format, data) = (Format::parse(ALL).unwrap(), data());
    let value = |name: &str| format.field(name).unwrap().value(Order::Little, &data).unwrap();
    assert_eq!((format.name.as_str(), format.id, format.fields().len()), ("all", 9, 9));
    assert_eq!(value("name"), Value::Text("ab".into()));
    assert_eq!(value("raw"), Value::Bytes(&[7, 8][..]), "counted from the end of its field");
    assert_eq!((value("small"), value("negative")), (Value::Unsigned(200), Value::Signed(-3)));
    assert_eq!(value("callback"), Value::Unsigned(0x0403_0201));
    assert_eq!(value("mac"), Value::Bytes(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(value("both"), Value::Bytes(&[7, 8, 9]));
    assert_eq!(value("where"), Value::Unsigned(0), "a pointer, whose text is not here");
    assert_eq!(value("rest"), Value::Text("end".into()));
    assert_eq!(value("common_pid"), Value::Signed(0));
}

#[test]
fn a_record_that_is_too_short_has_fewer_values() {
    let (format, data) = (Format::parse(ALL).unwrap(), data());
    let known = |length: usize| {
        let data = &data[..length];
        format.fields().iter().filter(|field| field.value(Order::Little, data).is_some()).count()
    };
    assert_eq!((known(0), known(17), known(data.len())), (0, 1, 9));
}

#[test]
fn formats_are_found_by_number_and_name() {
    let formats = MACHINES[0].formats();
    assert_eq!(formats.get(372).unwrap().name, "sched_switch");
    assert_eq!(formats.named("print").map(|format| format.id).collect::<Vec<_>>(), [5]);
    assert!(formats.get(6).is_none() && formats.get(u16::MAX).is_none());
}

#[test]
fn a_format_without_name_or_number_is_refused() {
    assert!(Format::parse("").unwrap_err().to_string().contains("no number after `ID:`"));
    assert!(Format::parse("ID: 7\n").unwrap_err().to_string().contains("no text after `name:`"));
    assert!(Format::parse("name: x\nID: 70000\n").is_err());
}

#[test]
fn a_task_and_its_name_are_a_pair() {
    let format = Format::parse(SWITCH).unwrap();
    let pairs: Vec<_> = format.tasks().map(|(id, name)| (id.name.as_str(), name.name.as_str())).collect();
    assert_eq!(pairs, [("next_pid", "next_comm")]);
}

/// Whether a part of a format file is one of its lines.
fn line() -> impl Strategy<Value = String> {
    let field = "\tfield:(__data_loc |__rel_loc )?(unsigned )?(char|int|long|u8|void \\*)(\\[\\])? ?[a-z_]{0,6}(\\[[0-9]{0,2}\\])?;\toffset:[0-9]{1,3};\tsize:[0-9]{1,2};\tsigned:[01];";
    prop_oneof![
        field.prop_map(String::from),
        Just("name: x".to_owned()),
        Just("ID: 7".to_owned()),
        "print fmt: [{}\",()<0-9A-Z_> -]{0,20}".prop_map(String::from),
        "__print_symbolic\\(REC->[a-z]{1,2},( \\{ [0-9(<) ]{1,6}, \"[A-Z]\" \\},?){0,3}\\)"
            .prop_map(String::from),
        ".{0,20}".prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn any_format_reads_any_record(lines in prop::collection::vec(line(), 0..12), data in prop::collection::vec(any::<u8>(), 0..64)) {
        let text = format!("name: x\nID: 7\n{}", lines.join("\n"));
        let Ok(format) = Format::parse(&text) else { return Ok(()) };
        for field in format.fields() {
            for order in [Order::Little, Order::Big] {
                if let Some(Value::Bytes(bytes)) = field.value(order, &data) {
                    prop_assert!(bytes.len() <= data.len());
                }
            }
            let _ = format.label(&field.name, 1);
        }
    }
}
