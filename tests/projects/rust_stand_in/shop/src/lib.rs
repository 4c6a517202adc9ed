pub fn total(price: u32, tax: u32) -> u32 {
    price + tax // caught
}

pub fn cheap(price: u32) -> bool {
    let mark = "🍎 é"; price < 9 + mark.len() as u32 // unviable
}

#[cfg(test)]
mod tests {
    #[test]
    fn add() {
        assert_eq!(super::total(1 + 1, 3), 5);
    }
}
