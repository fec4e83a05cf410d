# An overlay port that builds the checkout in which it lies: vcpkg install slabyard
# --overlay-ports=packaging/vcpkg. A port for a registry replaces the first line by vcpkg_from_git.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS -DSLABYARD_TESTS=OFF -DSLABYARD_WERROR=OFF -DSLABYARD_DLOPEN=OFF -DSLABYARD_MALLOC=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/slabyard)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/gdb"
    "${CURRENT_PACKAGES_DIR}/share/man")
file(REMOVE "${CURRENT_PACKAGES_DIR}/share/slabyard/installed.txt")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
