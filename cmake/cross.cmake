# Toolchain file: builds for another processor with Debian's cross compiler, and runs the tests under
# qemu's user mode. tests/install/emulated.sh provides what it needs:
#     SLABYARD_PROCESSOR   the processor, as CMake names it
#     SLABYARD_TRIPLE      the prefix of the compiler's name
#     SLABYARD_HOST        a folder with the compiler, and the headers and libraries to link with
#     SLABYARD_ROOT        a folder with the C and C++ libraries and cmocka for this processor
#     SLABYARD_MULTIARCH   the folder of the libraries below SLABYARD_ROOT/usr/lib
#     SLABYARD_LOADER      the dynamic loader, below SLABYARD_ROOT. The programs name it, so that they
#                          run without an emulator; empty: they are started by one,
#     SLABYARD_QEMU        the emulator and its options
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${SLABYARD_PROCESSOR})
set(CMAKE_C_COMPILER ${SLABYARD_HOST}/usr/bin/${SLABYARD_TRIPLE}-gcc-12)
set(CMAKE_CXX_COMPILER ${SLABYARD_HOST}/usr/bin/${SLABYARD_TRIPLE}-g++-12)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLABYARD_PROCESSOR SLABYARD_TRIPLE SLABYARD_HOST
    SLABYARD_ROOT SLABYARD_MULTIARCH SLABYARD_LOADER SLABYARD_QEMU)
set(libraries ${SLABYARD_ROOT}/lib/${SLABYARD_MULTIARCH} ${SLABYARD_ROOT}/usr/lib/${SLABYARD_MULTIARCH})
list(JOIN libraries : libraries)
set(CMAKE_C_FLAGS_INIT "--sysroot=${SLABYARD_HOST} -Wno-psabi")
set(CMAKE_CXX_FLAGS_INIT "--sysroot=${SLABYARD_HOST} -Wno-psabi")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libraries}")
if(SLABYARD_LOADER)
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
        " -Wl,--dynamic-linker=${SLABYARD_ROOT}/${SLABYARD_LOADER} -Wl,--disable-new-dtags,-rpath,${libraries}")
else()
    set(CMAKE_CROSSCOMPILING_EMULATOR ${SLABYARD_QEMU} -L ${SLABYARD_ROOT})
endif()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SLABYARD_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${SLABYARD_ROOT}/usr/lib/${SLABYARD_MULTIARCH}/pkgconfig)
