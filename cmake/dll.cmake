# The shared library on Windows: a DLL, which exports what the public headers declare, and its import
# library. Programs that link to it get SY_DLL (slabyard/base.h).
slabyard_compile(slabyard_dll_objects)
target_compile_definitions(slabyard_dll_objects PRIVATE "SY_API=__declspec(dllexport)")
add_library(slabyard SHARED $<TARGET_OBJECTS:slabyard_dll_objects>)
target_compile_definitions(slabyard INTERFACE SY_DLL)
set_target_properties(slabyard PROPERTIES PREFIX "" OUTPUT_NAME slabyard-${SLABYARD_ABI}
    ARCHIVE_OUTPUT_NAME slabyard)
slabyard_public(slabyard)

# The drop-in malloc: two objects, to link into a program with the static library. One replaces the
# functions of C, the other the operators of C++ (docs/platforms.md).
option(SLABYARD_DROP_IN "Build the objects of the drop-in malloc for Windows"
    ${SLABYARD_ALONE})
if(SLABYARD_DROP_IN)
    enable_language(CXX)
    foreach(part malloc.c operators.cpp)
        get_filename_component(name ${part} NAME_WE)
        add_library(slabyard_drop_in_${name} OBJECT shim/windows/${part})
        target_include_directories(slabyard_drop_in_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} src include)
        target_compile_features(slabyard_drop_in_${name} PRIVATE c_std_11 cxx_std_17)
        target_compile_options(slabyard_drop_in_${name} PRIVATE -Wall -Wextra -fno-builtin
            $<$<BOOL:${SLABYARD_WERROR}>:-Werror>)
        set(object ${CMAKE_CURRENT_BINARY_DIR}/slabyard-${name}.o)
        add_custom_command(OUTPUT ${object}
            COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:slabyard_drop_in_${name}> ${object}
            DEPENDS $<TARGET_OBJECTS:slabyard_drop_in_${name}> VERBATIM)
        list(APPEND drop_in ${object})
    endforeach()
    add_custom_target(slabyard_drop_in ALL DEPENDS ${drop_in})
    if(SLABYARD_INSTALL)
        install(FILES ${drop_in} DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endif()
