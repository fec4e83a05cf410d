# Homebrew on Linux: brew install --HEAD packaging/homebrew/slabyard.rb, in a checkout.
class Slabyard < Formula
  desc "Memory allocator for programs with many objects of the same kind"
  license "MIT"
  head "file://#{File.expand_path("../..", __dir__)}", using: :git

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on :linux

  def install
    system "cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DSLABYARD_TESTS=OFF", "-DSLABYARD_WERROR=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"program.c").write <<~C
      #include <slabyard/slabyard.h>
      int main(void) { void *object = sy_malloc(100); sy_free(object); return object == NULL; }
    C
    system ENV.cc, "program.c", "-I#{include}", "-L#{lib}", "-lslabyard", "-o", "program"
    system "./program"
  end
end
