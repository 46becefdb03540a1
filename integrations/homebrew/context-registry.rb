# Template for the owner's tap; a release fills in OWNER and DIGEST: docs/releasing.md
class ContextRegistry < Formula
  desc "One memory for all AI clients"
  homepage "https://github.com/OWNER/context-registry"
  url "https://github.com/OWNER/context-registry/releases/download/v0.1.0/context_registry-0.1.0.tar.gz"
  sha256 "DIGEST"
  license "Apache-2.0"

  depends_on "uv" => :build
  depends_on "python@3.13"

  def install
    python = libexec/"bin/python"
    system "uv", "venv", "--python", Formula["python@3.13"].opt_bin/"python3.13", libexec
    system "uv", "pip", "install", "--python", python, "--require-hashes", "--requirement", "requirements.lock"
    system "uv", "pip", "install", "--python", python, "--no-deps", "."
    bin.install_symlink libexec/"bin/ctxr", libexec/"bin/context-registry"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ctxr --version")
  end
end
