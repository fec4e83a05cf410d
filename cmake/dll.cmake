# The shared library on Windows: a DLL, which exports what the public headers declare, and its import
# library. Programs that link to it get SY_DLL (slabyard/base.h).
slabyard_compile(slabyard_dll_objects)
target_compile_definitions(slabyard_dll_objects PRIVATE "SY_API=__declspec(dllexport)")
add_library(slabyard SHARED $<TARGET_OBJECTS:slabyard_dll_objects>)
target_compile_definitions(slabyard INTERFACE SY_DLL)
set_target_properties(slabyard PROPERTIES PREFIX "" OUTPUT_NAME slabyard-${SLABYARD_ABI}
    ARCHIVE_OUTPUT_NAME slabyard)
slabyard_public(slabyard)
