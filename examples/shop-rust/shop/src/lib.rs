//! What things cost in a shop.

pub fn total(price: u32, count: u32) -> u32 {
    price + price * (count - 1)
}

pub fn label(price: u32, limit: u32) -> String {
    let mark = if "🍎é".len() < 9 && price < limit { "🍏 cheap" } else { "dear" };
    match price {
        0 => "free".to_string(),
        n if n > 1000 => "ask".to_string(),
        _ => format!("{mark}: {price}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn three_cost_thrice_as_much() {
        assert_eq!(super::total(2, 3), 6);
    }

    #[test]
    fn an_apple_is_cheap() {
        assert_eq!(super::label(2, 5), "🍏 cheap: 2");
    }
}
