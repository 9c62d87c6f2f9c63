#!/bin/sh
# Writes the formula for Homebrew on Linux, from the checksums of a release:
#   deploy/homebrew/formula.sh v0.2.0 dist/checksums.txt > coxswain.rb
set -eu
[ $# -eq 2 ] || { echo "$0 VERSION CHECKSUMS" >&2; exit 2; }
version=${1#v}
sum() {
	awk -v name="coxswain_${version}_linux_$1.tar.gz" '$2 == name { print $1; found = 1 } END { exit !found }' "$2" ||
		{ echo "$2 has no coxswain_${version}_linux_$1.tar.gz" >&2; exit 1; }
}
intel=$(sum amd64 "$2")
arm=$(sum arm64 "$2")
from="https://github.com/coxswain-mesh/coxswain/releases/download/v$version"
cat <<END
class Coxswain < Formula
  desc "Control plane for Envoy and every other xDS client, made of plugins"
  homepage "https://github.com/coxswain-mesh/coxswain"
  version "$version"
  license "Apache-2.0"

  depends_on :linux

  on_intel do
    url "$from/coxswain_${version}_linux_amd64.tar.gz"
    sha256 "$intel"
  end

  on_arm do
    url "$from/coxswain_${version}_linux_arm64.tar.gz"
    sha256 "$arm"
  end

  def install
    bin.install "coxswain"
    man1.install Dir["man1/*"]
    bash_completion.install "completions/coxswain.bash" => "coxswain"
    zsh_completion.install "completions/_coxswain"
    fish_completion.install "completions/coxswain.fish"
  end

  test do
    assert_match "v#{version}", shell_output("#{bin}/coxswain version")
  end
end
END
