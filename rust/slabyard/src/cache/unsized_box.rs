//! [`DynBox`]: the owner of an object of a cache whose type is not named, such as a trait object.

use core::future::Future;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::{error, fmt};

use crate::raw::cache::RawCache;
use crate::{CacheHome, ObjectBox};

/// Owns an object of a cache as a `U`: a trait object, or a slice of an array. It is for lists of
/// objects that lie in different caches and have a trait in common.
///
/// [`ObjectBox::into_dyn`] makes it of a box. It takes four words. As with a box, dropping it drops
/// the object and frees its memory. A `DynBox<dyn Fn()>` is called as `(*it)()`, because only
/// `std`'s boxes can implement `Fn` on stable Rust.
///
/// ```
/// use slabyard::{Cache, CacheBox, DynBox};
///
/// trait Shape { fn area(&self) -> f64; }
/// struct Circle(f64);
/// struct Square(f64);
/// impl Shape for Circle { fn area(&self) -> f64 { self.0 * self.0 * 3.0 } }
/// impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
///
/// let (circles, squares) = (Cache::new("circle"), Cache::new("square"));
/// let shapes: [DynBox<dyn Shape>; 2] = [
///     CacheBox::into_dyn(circles.insert(Circle(1.0)), |it| it as _),
///     CacheBox::into_dyn(squares.insert(Square(2.0)), |it| it as _),
/// ];
/// assert_eq!(shapes.iter().map(|it| it.area()).sum::<f64>(), 7.0);
/// ```
pub struct DynBox<'c, U: ?Sized> {
    object: NonNull<U>,
    cache: RawCache,
    owned: PhantomData<U>,
    borrows: PhantomData<&'c ()>,
}

// SAFETY: the box is the only owner of its object, and any thread may use the cache.
unsafe impl<U: ?Sized + Send> Send for DynBox<'_, U> {}
// SAFETY: a reference to the box gives references to the object only.
unsafe impl<U: ?Sized + Sync> Sync for DynBox<'_, U> {}

/// The object of a box as a `U`.
///
/// # Panics
/// If it is not the whole object.
#[track_caller]
fn whole<T, U: ?Sized>(object: &mut T, as_dyn: impl FnOnce(&mut T) -> &mut U) -> NonNull<U> {
    let place = NonNull::from(&mut *object).cast::<u8>();
    let found = as_dyn(object);
    assert!(
        size_of_val(found) == size_of::<T>() && NonNull::from(&mut *found).cast() == place,
        "a DynBox owns a whole object, not a part of it"
    );
    NonNull::from(found)
}

impl<T, H: CacheHome<T>> ObjectBox<T, H> {
    /// Makes the box one of a type that is not sized. The function is `|it| it as _`, which converts the
    /// reference, and so chooses the type. The object does not move.
    ///
    /// # Panics
    /// If the function returns something else than the whole object.
    #[inline]
    #[track_caller]
    pub fn into_dyn<'c, U: ?Sized>(
        mut this: Self,
        as_dyn: impl FnOnce(&mut T) -> &mut U,
    ) -> DynBox<'c, U>
    where
        H: 'c,
    {
        let object = whole(&mut *this, as_dyn);
        let (_, home) = ObjectBox::into_raw(this);
        DynBox {
            object,
            cache: home.cache_of_object(),
            owned: PhantomData,
            borrows: PhantomData,
        }
    }
}

impl<U: ?Sized> DynBox<'_, U> {
    /// Pins the object for the rest of its life, as [`ObjectBox::into_pin`] does.
    #[inline]
    pub fn into_pin(this: Self) -> Pin<Self> {
        // SAFETY: the object does not move with its box, and nothing moves it out. Its memory is
        // given back after the object was dropped, or never.
        unsafe { Pin::new_unchecked(this) }
    }
}

impl<U: ?Sized> Deref for DynBox<'_, U> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: the box owns the object.
        unsafe { self.object.as_ref() }
    }
}

impl<U: ?Sized> DerefMut for DynBox<'_, U> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: the box owns the object.
        unsafe { self.object.as_mut() }
    }
}

impl<U: ?Sized> Drop for DynBox<'_, U> {
    fn drop(&mut self) {
        /// Gives memory back when it is dropped, even if the drop of the value panicked.
        struct Leaving(NonNull<u8>, RawCache);
        impl Drop for Leaving {
            fn drop(&mut self) {
                // SAFETY: the object was taken from this cache, and is gone.
                unsafe { self.1.give(self.0) }
            }
        }
        let _leaving = Leaving(self.object.cast(), self.cache);
        // SAFETY: the box owns the object, and drops it once.
        unsafe { self.object.drop_in_place() }
    }
}

// The object does not move with its box.
impl<U: ?Sized> Unpin for DynBox<'_, U> {}

impl<U: ?Sized + fmt::Debug> fmt::Debug for DynBox<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<U: ?Sized + fmt::Display> fmt::Display for DynBox<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<U: ?Sized> AsRef<U> for DynBox<'_, U> {
    fn as_ref(&self) -> &U {
        self
    }
}

impl<U: ?Sized> AsMut<U> for DynBox<'_, U> {
    fn as_mut(&mut self) -> &mut U {
        self
    }
}

impl<U: ?Sized + Future + Unpin> Future for DynBox<'_, U> {
    type Output = U::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<U::Output> {
        Pin::new(&mut **self).poll(context)
    }
}

impl<U: ?Sized + Iterator> Iterator for DynBox<'_, U> {
    type Item = U::Item;

    fn next(&mut self) -> Option<U::Item> {
        (**self).next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (**self).size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<U::Item> {
        (**self).nth(n)
    }
}

impl<U: ?Sized + error::Error> error::Error for DynBox<'_, U> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        (**self).source()
    }
}

#[cfg(feature = "std")]
impl<U: ?Sized + std::io::Write> std::io::Write for DynBox<'_, U> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (**self).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        (**self).flush()
    }
}
