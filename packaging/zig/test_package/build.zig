const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const slabyard = b.dependency("slabyard", .{ .target = target, .optimize = optimize });
    const module = b.createModule(.{ .root_source_file = b.path("main.zig"), .target = target, .optimize = optimize });
    module.addImport("slabyard", slabyard.module("slabyard"));
    b.installArtifact(b.addExecutable(.{ .name = "program", .root_module = module }));
}
