# Defines the target slabyard_house: the compiler and linker flags of the project's own code
# (warnings, sanitizers, hidden symbols, SY_DEBUG). Programs that use the library do not get these
# flags.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/warnings.txt SLABYARD_WARNINGS)
if(SLABYARD_WERROR)
    list(APPEND SLABYARD_WARNINGS -Werror)
endif()

set(SLABYARD_SANITIZE_FLAGS "")
if(SLABYARD_SANITIZE)
    set(SLABYARD_SANITIZE_FLAGS -fsanitize=${SLABYARD_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
endif()

# The library records stacks by frame pointers if it can follow them to the program's functions
# (src/watch/stack.c). CMakeLists.txt names the folders that are compiled with these flags. src/heap
# and src/vmem are not: their fast paths are functions, which would be slower with some compilers.
include(CheckCCompilerFlag)
check_c_compiler_flag(-momit-leaf-frame-pointer SLABYARD_CAN_OMIT_LEAVES)
set(SLABYARD_FRAME_FLAGS -fno-omit-frame-pointer)
if(SLABYARD_CAN_OMIT_LEAVES)
    list(APPEND SLABYARD_FRAME_FLAGS -momit-leaf-frame-pointer)
endif()

# What a small program has of the shared libraries in memory.
#
# SLABYARD_SELDOM: the sources in src/ whose code a program without options, handles and misuse
# hardly runs. It lies behind the other code.
# -fdata-sections, --sort-section: the variables lie in the order of their alignment, so that most
# small ones lie together, not between large tables.
#
# libgcc_s, which is loaded too, is 100 KiB of a small program. -static-libgcc would avoid it, but
# then an exception that a callback throws would pass through two unwinders, perhaps of different
# versions (GCC's manual, "Link Options").
include(CheckLinkerFlag)
set(SLABYARD_SELDOM
    cache/account.c cache/calls.c cache/count.c cache/directory.c cache/epoch.c cache/handle.c
    cache/passed.c cache/recover.c cache/watched.c cache/zeroed.c chunk/large.c chunk/pressure.c
    heap/checked.c heap/instance.c heap/named.c keep/parts.c keep/reach.c keep/verify.c
    magazine/one_way.c magazine/reserve.c magazine/sample.c os/linux_child.c os/linux_limits.c
    os/linux_maps.c os/linux_places.c pool/calls.c pool/checked.c vmem/look.c vmem/quantum.c
    vmem/recover.c watch/callback.c watch/cxx_name.c watch/dwarf.c watch/explain.c watch/fault.c
    watch/history.c watch/lookup.c watch/report.c watch/rust_name.c watch/symbols.c watch/tags.c
    watch/whose.c)
set(SLABYARD_SHARED_FLAGS "")
check_linker_flag(C -Wl,--sort-section=alignment SLABYARD_CAN_SORT)
if(SLABYARD_CAN_SORT)
    list(APPEND SLABYARD_SHARED_FLAGS -Wl,--sort-section=alignment)
endif()

add_library(slabyard_house INTERFACE)
target_compile_features(slabyard_house INTERFACE c_std_11)
target_compile_options(slabyard_house INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${SLABYARD_WARNINGS}> -fvisibility=hidden -fexceptions -fdata-sections
    ${SLABYARD_SANITIZE_FLAGS})
target_link_options(slabyard_house INTERFACE ${SLABYARD_SANITIZE_FLAGS})
if(SLABYARD_DEBUG)
    target_compile_definitions(slabyard_house INTERFACE SY_DEBUG=1)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
