"""The Conan recipe: `conan create packaging/conan` builds the package from this checkout.

The static or the shared library (the option `shared`) is `slabyard::slabyard` in CMake and `slabyard` for
pkg-config.
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Slabyard(ConanFile):
    name = "slabyard"
    description = "Memory allocator for programs with many objects of the same kind"
    license = "MIT"
    topics = ("allocator", "malloc", "slab", "memory")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "reports": [True, False]}
    default_options = {"shared": False, "reports": True}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "../../CMakeLists.txt"))
        self.version = re.search(r"project\(slabyard VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "../..")
        for file in ("CMakeLists.txt", "LICENSE"):
            copy(self, file, root, self.export_sources_folder)
        for folder in ("cmake", "compat", "include", "src"):
            copy(self, folder + "/*", root, self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["SLABYARD_INSTALL"] = False
        toolchain.cache_variables["SLABYARD_TESTS"] = False
        toolchain.cache_variables["SLABYARD_WERROR"] = False
        toolchain.cache_variables["SLABYARD_DLOPEN"] = False
        toolchain.cache_variables["SLABYARD_MALLOC"] = False
        toolchain.cache_variables["SLABYARD_REPORTS"] = bool(self.options.reports)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="slabyard" if self.options.shared else "slabyard_static")

    def package(self):
        include = os.path.join(self.package_folder, "include")
        copy(self, "slabyard/*.h*", os.path.join(self.source_folder, "include"), include)
        copy(self, "*.h", os.path.join(self.source_folder, "compat"), os.path.join(include, "slabyard/compat"))
        library = "libslabyard.so*" if self.options.shared else "libslabyard.a"
        copy(self, library, self.build_folder, os.path.join(self.package_folder, "lib"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["slabyard"]
        self.cpp_info.set_property("cmake_target_name", "slabyard::slabyard")
        self.cpp_info.set_property("pkg_config_name", "slabyard")
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread"]
