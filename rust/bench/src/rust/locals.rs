//! Makers that are types with static state: thread-local pools, and static caches. There is one of
//! each for each measured size.

use super::makers::{Maker, Object};
use core::marker::PhantomData;
use core::ops::DerefMut;

/// The types of owners for a size.
pub trait Named: 'static {
    type Bounded: DerefMut<Target = Self>;
    type Unbounded: DerefMut<Target = Self>;
    type Static: DerefMut<Target = Self>;
    type Nexus: DerefMut<Target = Self>;

    fn open_bounded(capacity: usize);
    fn open_unbounded();
    fn open_nexus(capacity: usize);
    fn make_fixed() -> bool;
    fn bounded(self) -> Self::Bounded;
    fn unbounded(self) -> Self::Unbounded;
    fn fixed(self) -> Self::Static;
    fn nexus(self) -> Self::Nexus;
}

macro_rules! sizes {
    ($($module:ident $words:literal;)+) => {$(
        mod $module {
            use super::*;

            mod bounded {
                slabyard::bounded_allocator!(pub super::Object<$words>);
            }
            mod unbounded {
                slabyard::unbounded_allocator!(pub super::Object<$words>);
            }
            mod nexus {
                nexus_slab_011::bounded_allocator!(super::Object<$words>);
            }
            slabyard::static_cache! {
                pub struct Fixed: Object<$words>;
            }

            fn full<E>(_: E) -> ! {
                panic!("no room")
            }

            impl Named for Object<$words> {
                type Bounded = bounded::BoxSlot;
                type Unbounded = unbounded::BoxSlot;
                type Static = slabyard::StaticBox<Fixed>;
                type Nexus = nexus::BoxSlot;

                fn open_bounded(capacity: usize) {
                    bounded::Allocator::builder().capacity(capacity).build().expect("a pool");
                }

                fn open_unbounded() {
                    unbounded::Allocator::builder().build().expect("a pool");
                }

                fn make_fixed() -> bool {
                    Fixed::make()
                }

                fn open_nexus(capacity: usize) {
                    nexus::Allocator::builder().capacity(capacity).build().expect("a slab");
                }

                #[inline(always)]
                fn bounded(self) -> Self::Bounded {
                    bounded::BoxSlot::try_new(self).unwrap_or_else(|value| full(value))
                }

                #[inline(always)]
                fn unbounded(self) -> Self::Unbounded {
                    unbounded::BoxSlot::new(self)
                }

                #[inline(always)]
                fn fixed(self) -> Self::Static {
                    Fixed::insert(self)
                }

                #[inline(always)]
                fn nexus(self) -> Self::Nexus {
                    nexus::BoxSlot::try_new(self).unwrap_or_else(|value| full(value))
                }
            }
        }
    )+};
}

sizes! {
    bytes_32 4;
    bytes_64 8;
    bytes_128 16;
    bytes_512 64;
    bytes_1024 128;
    bytes_4096 512;
}

macro_rules! makers {
    ($($(#[$doc:meta])* $name:ident: $held:ident $make:ident, |$capacity:ident| $open:expr;)+) => {$(
        $(#[$doc])*
        pub struct $name<N>(PhantomData<N>);

        impl<const WORDS: usize> Maker<WORDS> for $name<Object<WORDS>>
        where
            Object<WORDS>: Named,
        {
            type Held = <Object<WORDS> as Named>::$held;

            fn open($capacity: usize) -> Self {
                $open;
                $name(PhantomData)
            }

            #[inline(always)]
            fn make(&'static self, value: Object<WORDS>) -> Self::Held {
                value.$make()
            }
        }
    )+};
}

makers! {
    /// `BoxSlot` of `bounded_allocator!`.
    Bounded: Bounded bounded, |capacity| <Object<WORDS> as Named>::open_bounded(capacity);
    /// `BoxSlot` of `unbounded_allocator!`.
    Unbounded: Unbounded unbounded, |_capacity| <Object<WORDS> as Named>::open_unbounded();
    /// `StaticBox` of `static_cache!`.
    Static: Static fixed, |_capacity| assert!(<Object<WORDS> as Named>::make_fixed(), "a cache");
    /// `BoxSlot` of nexus-slab 0.11.2.
    Nexus011: Nexus nexus, |capacity| <Object<WORDS> as Named>::open_nexus(capacity);
}
