# Nix: `nix-build packaging/nix` in a checkout.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "slabyard";
  version = "0.3.0";
  src = ../..;
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];
  cmakeFlags = [ "-DSLABYARD_TESTS=OFF" "-DSLABYARD_WERROR=OFF" ];
  meta = {
    description = "Memory allocator for programs with many objects of the same kind";
    license = pkgs.lib.licenses.mit;
    platforms = pkgs.lib.platforms.linux;
  };
}
