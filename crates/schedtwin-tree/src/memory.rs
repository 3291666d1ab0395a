// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a governor's C keeps its state: arenas and images.
//!
//! **Terms.** *Arena*: a loaded copy of the object, with a heap of its own. *Image*: the contents of all that the C can
//! write, that is the object's writable pages (less what is sealed after relocation) and the used part of the heap.
//! *Resident*: the image whose contents lie in the arena now.
//!
//! **Algorithm.** 1. An image that is asked becomes resident: the contents of the one before are saved in it, its own
//! are written back. 2. A clone is a saved copy. 3. A new kernel gets an arena that no living image belongs to, loading
//! another copy of the object if there is none, so kernels that run at the same time do not wait for each other.
//!
//! The swap is rare: of the images of an arena usually one is in use, since runs have arenas of their own and clones
//! are made to be compared.

use crate::Fault;
use crate::confine;
use crate::object::{Elf, Loaded};
use crate::watch::{Label, Watched, refuse_here};
use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The memory that a governor may allocate.
const HEAP_BYTES: usize = 16 << 20;
/// Most copies of one object that are loaded; further kernels share them.
const ARENAS_MAX: usize = 128;

type ToRefuse = unsafe extern "C" fn(*const c_char, c_long);
type ToWarn = unsafe extern "C" fn(*const c_char, c_int, *const c_char);

/// The object of a governor and the copies of it that are loaded.
pub(crate) struct Code {
    pub(crate) label: &'static Label,
    /// The object's file as it was compiled; nothing is read from the cache later.
    object: Arc<[u8]>,
    elf: Elf,
    arenas: Mutex<Vec<Arc<Arena>>>,
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Code").field(&self.label.name).finish()
    }
}

impl Code {
    pub(crate) fn new(object: Arc<[u8]>, elf: Elf, label: &'static Label) -> Code {
        Code { label, object, elf, arenas: Mutex::default() }
    }

    /// The object's file.
    pub(crate) fn object(&self) -> &[u8] {
        &self.object
    }

    /// The object's memory as it would lie at address 0, without its being loaded.
    pub(crate) fn data(&self) -> Vec<u8> {
        self.elf.data(&self.object)
    }

    /// A new image, as the object is after it has been loaded. It is resident.
    pub(crate) fn image(&self) -> Result<Image, Fault> {
        confine::before_asking();
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = arenas.iter().find(|arena| Arc::strong_count(arena) == 1);
        let arena = match unused {
            Some(arena) => arena.clone(),
            None if arenas.len() < ARENAS_MAX => {
                let arena = Arc::new(Arena::load(self)?);
                arenas.push(arena.clone());
                arena
            }
            None => {
                let least = arenas.iter().min_by_key(|arena| Arc::strong_count(arena));
                least.expect("there are some").clone()
            }
        };
        let image = Image { store: Arc::default(), arena };
        let mut resident = image.arena.lock();
        image.arena.evict(&mut resident);
        image.arena.restore(&image.arena.pristine);
        *resident = Arc::downgrade(&image.store);
        drop(resident);
        Ok(image)
    }
}

/// A range of bytes that the C may write.
#[derive(Clone, Copy)]
struct Range {
    from: *mut u8,
    bytes: usize,
}

/// A loaded copy.
pub(crate) struct Arena {
    /// Functions and ranges point into it.
    object: Loaded,
    writable: Vec<Range>,
    heap: *mut u8,
    heap_used: unsafe extern "C" fn() -> usize,
    pristine: Vec<u8>,
    /// The store whose contents lie here; held while anyone asks the C.
    resident: Mutex<Weak<Store>>,
}

// SAFETY: the pointers lead to memory that belongs to this arena alone, and it is read and written only by who holds the
// lock `resident`, or, in `load` and `drop`, by the only owner. The C keeps no state outside of it: it has no
// thread-local variables (no such section is linked) and calls nobody but the two functions of `watch`.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    fn load(code: &Code) -> Result<Arena, Fault> {
        let object = Loaded::new(&code.elf, &code.object, page());
        let object = object.map_err(|error| Fault {
            message: format!("no memory for a governor: {error}"),
            help: None,
        })?;
        // SAFETY: an anonymous mapping that nobody else knows; the pages in front of and behind the heap are never
        // made accessible, so that what runs over its ends crashes.
        let heap = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let bytes = HEAP_BYTES + 2 * page();
            let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
            let heap = start.cast::<u8>().wrapping_add(page());
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            let failed =
                start == libc::MAP_FAILED || libc::mprotect(heap.cast(), HEAP_BYTES, writable) != 0;
            if failed {
                let error = std::io::Error::last_os_error();
                return Err(Fault {
                    message: format!("no memory for a governor: {error}"),
                    help: None,
                });
            }
            heap
        };
        let mut arena = Arena {
            // SAFETY: the function of runtime.c by that name, with these parameters.
            heap_used: unsafe { symbol(&object, c"schedtwin_heap_used") },
            writable: Vec::new(),
            heap,
            pristine: Vec::new(),
            resident: Mutex::default(),
            object,
        };
        // SAFETY: these are the functions of runtime.c by those names, with these parameters.
        unsafe {
            type Connect = unsafe extern "C" fn(ToRefuse, ToWarn, *mut u8, usize);
            let connect: Connect = arena.function(c"schedtwin_connect");
            connect(crate::watch::refuse, crate::watch::warn, heap, HEAP_BYTES);
            type Writable = unsafe extern "C" fn(c_int, u64, *mut *mut u8, *mut *mut u8) -> bool;
            let writable: Writable = arena.function(c"schedtwin_writable");
            let (mut from, mut to) = (std::ptr::null_mut::<u8>(), std::ptr::null_mut::<u8>());
            while writable(arena.writable.len() as c_int, page() as u64, &mut from, &mut to) {
                arena.writable.push(Range { from, bytes: to as usize - from as usize });
            }
            type Base = unsafe extern "C" fn() -> *const c_void;
            let base: Base = arena.function(c"schedtwin_base");
            code.label.loaded_at(base() as usize);
        }
        arena.pristine = arena.contents();
        Ok(arena)
    }

    /// A function of the object, or its address in the type that the caller knows it to have.
    ///
    /// # Safety
    /// `F` is the type of that function in `c/`.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &std::ffi::CStr) -> F {
        // SAFETY: as the caller promises.
        unsafe { symbol(&self.object, name) }
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Store>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the resident image, if anyone still has it.
    fn evict(&self, resident: &mut MutexGuard<'_, Weak<Store>>) {
        if let Some(store) = resident.upgrade() {
            *store.saved() = self.contents();
        }
        **resident = Weak::new();
    }

    fn ranges(&self) -> impl Iterator<Item = Range> {
        self.writable.iter().copied()
    }

    /// Returns the contents that lie here. The caller holds the lock.
    fn contents(&self) -> Vec<u8> {
        // SAFETY: heap_used() only reads two pointers of the object.
        let used = unsafe { (self.heap_used)() };
        let heap = Range { from: self.heap, bytes: used.min(HEAP_BYTES) };
        let mut contents = Vec::new();
        for Range { from, bytes } in self.ranges().chain([heap]) {
            // SAFETY: the ranges are mapped and readable as long as the library is loaded and the heap mapped, which
            // the arena sees to; nobody writes to them while the lock is held.
            contents.extend_from_slice(unsafe { std::slice::from_raw_parts(from, bytes) });
        }
        contents
    }

    /// Puts back what [`Arena::contents`] gave. The caller holds the lock.
    fn restore(&self, contents: &[u8]) {
        let mut rest = contents;
        for Range { from, bytes } in self.ranges() {
            let (here, behind) = rest.split_at(bytes);
            // SAFETY: the range is mapped and writable, belongs to the C alone, and `here` lies elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(here.as_ptr(), from, bytes) };
            rest = behind;
        }
        assert!(rest.len() <= HEAP_BYTES, "a heap that was saved fits");
        // SAFETY: as above, for the heap.
        unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), self.heap, rest.len()) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping of `load`, which only this arena knows; no image is left to ask it.
        unsafe { libc::munmap(self.heap.wrapping_sub(page()).cast(), HEAP_BYTES + 2 * page()) };
    }
}

fn page() -> usize {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Every object has the functions of `runtime.c`, and those of the glue that it was compiled with.
///
/// # Safety
/// `F` is the type of that function in `c/`, a pointer; it is not called once the object is gone.
unsafe fn symbol<F: Copy>(object: &Loaded, name: &std::ffi::CStr) -> F {
    let text = name.to_str().expect("names are ASCII");
    let found = object.symbol(text);
    // It is compiled into every governor: this one has spoilt its own tables.
    let found = found.unwrap_or_else(|| refuse_here(&format!("error: the object has no {text}()")));
    const { assert!(size_of::<F>() == size_of::<*mut u8>()) };
    // SAFETY: both have the size of a pointer, and the caller names the function's type.
    unsafe { std::mem::transmute_copy(&found) }
}

/// The saved contents of an image that is not resident.
#[derive(Default)]
struct Store {
    saved: Mutex<Vec<u8>>,
}

impl Store {
    fn saved(&self) -> MutexGuard<'_, Vec<u8>> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of one governor of one kernel.
pub(crate) struct Image {
    store: Arc<Store>,
    arena: Arc<Arena>,
}

impl Image {
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Asks the C, which finds this image where it looks. Nobody else asks this arena meanwhile.
    #[inline]
    pub(crate) fn ask<R>(&self, watched: Watched, call: impl FnOnce() -> R) -> R {
        let mut resident = self.arena.lock();
        if !std::ptr::eq(resident.as_ptr(), Arc::as_ptr(&self.store)) {
            self.arena.evict(&mut resident);
            self.arena.restore(&self.store.saved());
            *resident = Arc::downgrade(&self.store);
        }
        watched.during(call)
    }
}

impl Clone for Image {
    fn clone(&self) -> Image {
        let resident = self.arena.lock();
        let here = std::ptr::eq(resident.as_ptr(), Arc::as_ptr(&self.store));
        let saved = if here { self.arena.contents() } else { self.store.saved().clone() };
        Image { store: Arc::new(Store { saved: Mutex::new(saved) }), arena: self.arena.clone() }
    }
}
