pub fn left(stock: i64, sold: i64) -> i64 { stock - sold }

/// Ends only as long as it counts down.
pub fn countdown(mut n: u64) -> u64 {
    let mut steps = 0;
    while n > 0 {
        n -= 1;
        steps += 1;
    }
    steps
}

pub struct Item;

pub fn find(name: &str) -> Option<Item> {
    if name == "é" { Some(Item) } else { None }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_sold_is_gone() {
        assert_eq!(super::left(3, 1), 2);
    }

    #[test]
    fn three_steps() {
        assert_eq!(super::countdown(3), 3);
    }
}
