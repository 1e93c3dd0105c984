//! Deterministic CBOR (RFC 8949, section 4.2.1), as far as payloads need it: integers, text, lists, and maps with rising
//! unsigned keys.
//!
//! There is one spelling of everything: what is read is written again and compared, so that a longer integer, an indefinite
//! length, keys out of order or bytes after the end are refused. Depth and sizes are bounded. Must not know payloads.
//! Clause: HUM-4.

/// Levels of lists and maps.
const DEPTH_MAX: usize = 4;
/// Items of one list or map.
const ITEMS_MAX: u64 = 512;

/// A piece of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Item>),
    /// A map with rising unsigned keys.
    Map(Vec<(u64, Item)>),
    /// Nothing.
    Null,
}

/// Writes the one spelling of an item.
pub fn encode(item: &Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(item, &mut bytes);
    bytes
}

fn head(major: u8, value: u64, bytes: &mut Vec<u8>) {
    let major = major << 5;
    match value {
        0..=23 => bytes.push(major | value as u8),
        24..=0xff => bytes.extend([major | 24, value as u8]),
        0x100..=0xffff => {
            bytes.push(major | 25);
            bytes.extend((value as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            bytes.push(major | 26);
            bytes.extend((value as u32).to_be_bytes());
        }
        _ => {
            bytes.push(major | 27);
            bytes.extend(value.to_be_bytes());
        }
    }
}

fn write(item: &Item, bytes: &mut Vec<u8>) {
    match item {
        Item::Int(value) if *value < 0 => head(1, !(*value) as u64, bytes),
        Item::Int(value) => head(0, *value as u64, bytes),
        Item::Text(text) => {
            head(3, text.len() as u64, bytes);
            bytes.extend(text.as_bytes());
        }
        Item::List(items) => {
            head(4, items.len() as u64, bytes);
            items.iter().for_each(|item| write(item, bytes));
        }
        Item::Map(fields) => {
            head(5, fields.len() as u64, bytes);
            for (key, value) in fields {
                head(0, *key, bytes);
                write(value, bytes);
            }
        }
        Item::Null => bytes.push(0xf6),
    }
}

/// Reads an item that fills these bytes; nothing where they are not its one spelling.
pub fn decode(bytes: &[u8]) -> Option<Item> {
    let mut rest = bytes;
    let item = read(&mut rest, 0)?;
    (rest.is_empty() && encode(&item) == bytes).then_some(item)
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn read_head(rest: &mut &[u8]) -> Option<(u8, u64)> {
    let first = *take(rest, 1)?.first()?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let value = match first & 31 {
        small @ 0..=23 => u64::from(small),
        size @ 24..=27 => number(take(rest, 1 << (size - 24))?),
        _ => return None,
    };
    Some((first >> 5, value))
}

fn read(rest: &mut &[u8], depth: usize) -> Option<Item> {
    if DEPTH_MAX < depth {
        return None;
    }
    let (major, value) = read_head(rest)?;
    Some(match major {
        0 => Item::Int(i64::try_from(value).ok()?),
        1 => Item::Int(!i64::try_from(value).ok()?),
        3 => {
            let text = take(rest, usize::try_from(value).ok()?)?;
            Item::Text(core::str::from_utf8(text).ok()?.to_string())
        }
        4 if value <= ITEMS_MAX => {
            Item::List((0..value).map(|_| read(rest, depth + 1)).collect::<Option<_>>()?)
        }
        5 if value <= ITEMS_MAX => {
            let mut fields: Vec<(u64, Item)> = Vec::new();
            for _ in 0..value {
                let (major, key) = read_head(rest)?;
                if major != 0 || fields.last().is_some_and(|(last, _)| key <= *last) {
                    return None;
                }
                fields.push((key, read(rest, depth + 1)?));
            }
            Item::Map(fields)
        }
        7 if value == 22 => Item::Null,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    fn item(prng: &mut Prng, depth: usize) -> Item {
        match prng.below(if depth < 3 { 5 } else { 3 }) {
            0 => Item::Int(prng.next_u64() as i64 >> prng.below(64)),
            1 => Item::Text("ä".repeat(prng.below(30) as usize)),
            2 => Item::Null,
            3 => Item::List((0..prng.below(30)).map(|_| item(prng, depth + 1)).collect()),
            _ => Item::Map((0..prng.below(30)).map(|key| (key * 7, item(prng, depth + 1))).collect()),
        }
    }

    #[test]
    fn items_come_back_and_damaged_bytes_are_refused_or_the_one_spelling_of_others() {
        let mut prng = Prng::stream(1, "cbor");
        let mut refused = 0;
        for _ in 0..400 {
            let made = item(&mut prng, 0);
            let bytes = encode(&made);
            assert_eq!(decode(&bytes), Some(made));
            for _ in 0..20 {
                let mut damaged = bytes.clone();
                let place = prng.below(damaged.len() as u64) as usize;
                damaged[place] ^= 1 << prng.below(8);
                match decode(&damaged) {
                    None => refused += 1,
                    Some(other) => assert_eq!(encode(&other), damaged),
                }
            }
        }
        assert!(500 < refused, "{refused}");
    }

    #[test]
    fn other_spellings_are_refused() {
        // A longer integer, a byte after the end, an indefinite list, keys out of order, a text key, no UTF-8, too deep.
        let long: [&[u8]; 7] = [
            &[0x18, 5],
            &[0, 0],
            &[0x9f, 0xff],
            &[0xa2, 1, 0, 0, 0],
            &[0xa1, 0x61, 65, 0],
            &[0x61, 0xff],
            &[0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0],
        ];
        long.iter().for_each(|bytes| assert_eq!(decode(bytes), None, "{bytes:?}"));
        assert_eq!(decode(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(decode(&[0x38, 0x63]), Some(Item::Int(-100)));
    }
}
