# Toolchain file: builds for 64-bit Arm with a cross compiler, and runs the tests under qemu's user
# mode. SLABYARD_ROOT is a folder with the C and C++ libraries and cmocka for this processor, and
# SLABYARD_QEMU is the emulator. tests/install/aarch64.sh provides both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLABYARD_ROOT SLABYARD_QEMU)
set(CMAKE_CROSSCOMPILING_EMULATOR ${SLABYARD_QEMU} -L ${SLABYARD_ROOT})
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SLABYARD_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${SLABYARD_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
