//! The library for Zig: the module `slabyard` has the allocator, and the artifact `slabyard` is the
//! static library with its header. The folder has the two files of the amalgamation.
const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});

    const core = b.createModule(.{ .target = target, .optimize = optimize, .link_libc = true });
    core.addCSourceFile(.{
        .file = b.path("slabyard.c"),
        .flags = &.{ "-std=gnu11", "-fexceptions", "-fno-sanitize=undefined" },
    });
    core.linkSystemLibrary("unwind", .{});
    const library = b.addLibrary(.{ .name = "slabyard", .root_module = core });
    library.installHeader(b.path("slabyard.h"), "slabyard.h");
    b.installArtifact(library);

    const module = b.addModule("slabyard", .{
        .root_source_file = b.path("allocator.zig"),
        .target = target,
        .optimize = optimize,
    });
    module.linkLibrary(library);
}
