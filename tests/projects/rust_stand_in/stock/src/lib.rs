pub fn both(a: u32, b: u32) -> u32 { a + b }

pub fn spin(n: u32) -> bool {
    let mut i = 0;
    while i < n { // timeout
        i = i + 1;
    }
    true
}
