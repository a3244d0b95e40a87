#!/bin/sh
# Installs promptshelf for one user, without root:
#
#   curl -fsSL https://github.com/promptshelf/promptshelf/releases/latest/download/install.sh | sh
#
# PROMPTSHELF_VERSION   the version [default: the latest]
# PROMPTSHELF_BIN       the folder of the program [default: ~/.local/bin]
# PROMPTSHELF_RELEASES  the base address of releases: ADDRESS/vVERSION/FILE, and ADDRESS/latest with the latest version

set -eu

fail() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf 'help: %s\n' "$2" >&2
  exit 1
}

# Writes what an address has to a file.
fetch() {
  if command -v curl >/dev/null 2>&1; then
    curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is installed" "install one of them and start again"
  fi
}

digest() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail "no program computes SHA-256 sums: sha256sum, shasum or openssl" "install one of them and start again"
  fi
}

# A download that ends early has no call of it, and does nothing.
main() {
  releases=${PROMPTSHELF_RELEASES:-}
  network="check the network, and the variable https_proxy if there is a proxy"
  system=$(uname -s)
  machine=$(uname -m)
  case "$system/$machine" in
    Linux/x86_64 | Linux/amd64) target=x86_64-unknown-linux-musl ;;
    Linux/aarch64 | Linux/arm64) target=aarch64-unknown-linux-musl ;;
    Darwin/arm64) target=aarch64-apple-darwin ;;
    Darwin/x86_64) target=x86_64-apple-darwin ;;
    *) fail "there is no program for $system on $machine" \
      "with Rust, build it from source: https://github.com/promptshelf/promptshelf#build-from-source" ;;
  esac

  bin=${PROMPTSHELF_BIN:-}
  if [ -z "$bin" ]; then
    [ -n "${HOME:-}" ] || fail "the home folder is unknown" "set HOME, or PROMPTSHELF_BIN to the folder of the program"
    bin=$HOME/.local/bin
  fi
  mkdir -p "$bin" 2>/dev/null || fail "the folder $bin cannot be created" "set PROMPTSHELF_BIN to a folder that you may write to"
  # Next to the program, so that the last step replaces it at once.
  work=$(mktemp -d "$bin/.promptshelf-XXXXXX" 2>/dev/null) ||
    fail "the folder $bin cannot be written to" "set PROMPTSHELF_BIN to a folder that you may write to"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  version=${PROMPTSHELF_VERSION:-}
  if [ -n "$releases" ]; then
    releases=${releases%/}
    if [ -z "$version" ]; then
      fetch "$releases/latest" "$work/latest" || fail "the latest version cannot be read from $releases/latest" "$network"
      version=$(tr -d '[:space:]' <"$work/latest")
    fi
    version=${version#v}
    files=$releases/v$version
  else
    pages=https://github.com/promptshelf/promptshelf/releases
    if [ -n "$version" ]; then
      version=${version#v}
      files=$pages/download/v$version
    else
      # The sums of the latest release name its files, and so its version.
      files=$pages/latest/download
    fi
  fi

  fetch "$files/SHA256SUMS" "$work/sums" || fail "the checksums cannot be read from $files/SHA256SUMS" "$network"
  # A line is a sum, two spaces and a file, which may have a folder in front.
  line=$(tr -d '\r' <"$work/sums" | sed -n "s|^\([0-9a-f]\{64\}\)  \(.*/\)\{0,1\}\(promptshelf-${version:-[0-9][^/]*}-$target\.tar\.gz\)\$|\1 \3|p" | head -n 1)
  [ -n "$line" ] || fail "$files/SHA256SUMS has no file for $target" "choose another version with PROMPTSHELF_VERSION"
  expected=${line%% *}
  file=${line#* }

  fetch "$files/$file" "$work/$file" || fail "the archive cannot be read from $files/$file" "$network"
  actual=$(digest "$work/$file")
  [ "$actual" = "$expected" ] || fail "the archive $file does not have the expected SHA-256 sum, so nothing was installed" \
    "start again; if that does not help, report it: it may have been changed on the way"
  tar -xzf "$work/$file" -C "$work" || fail "the archive $file cannot be unpacked"
  program=$work/${file%.tar.gz}/promptshelf
  printed=$("$program" --version 2>&1) || fail "the program does not run on this machine: $printed"
  mv -f "$program" "$bin/promptshelf" || fail "$bin/promptshelf cannot be written" "set PROMPTSHELF_BIN to another folder"

  printf '%s is installed: %s\n' "$printed" "$bin/promptshelf"
  case ":${PATH:-}:" in
    *":$bin:"*) printf 'next: promptshelf init my-prompts\n' ;;
    *)
      printf 'next: %s init my-prompts\n' "$bin/promptshelf"
      # shellcheck disable=SC2016
      printf 'To run it as `promptshelf`, add this line to the file of your shell (~/.profile): export PATH="%s:$PATH"\n' "$bin"
      ;;
  esac
}

main
