//! Names of types, for texts that users read.

/// The name of a type without the path before it.
pub(crate) fn short_name<T>() -> &'static str {
    let full = core::any::type_name::<T>();
    let end = full.find('<').unwrap_or(full.len());
    let start = full[..end].rfind("::").map_or(0, |it| it + 2);
    &full[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_left_out() {
        assert_eq!(short_name::<alloc::string::String>(), "String");
        assert_eq!(short_name::<u8>(), "u8");
        assert_eq!(short_name::<Option<u8>>(), "Option<u8>");
    }
}
