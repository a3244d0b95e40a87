#!/usr/bin/env bash
# The action: installs promptshelf, checks and tests a library, and comments what a pull request changes for callers.
# Inputs are variables, never parts of a command line: titles and paths of a pull request are foreign text.

set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
library=${INPUT_LIBRARY:-.}
# A word that begins with a dash would be an option.
case $library in -*) library=./$library ;; esac
version=${INPUT_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml" | head -n 1)}
bin=${RUNNER_TEMP:-$(mktemp -d)}/promptshelf

case $(uname -s) in
  MINGW* | MSYS* | CYGWIN*)
    PROMPTSHELF_VERSION=$version PROMPTSHELF_BIN=$(cygpath -w "$bin") pwsh -NoProfile -File "$here/install.ps1"
    ;;
  *) PROMPTSHELF_VERSION=$version PROMPTSHELF_BIN=$bin sh "$here/install.sh" ;;
esac
PATH=$bin:$PATH
unset PROMPTSHELF_RELEASES
[ -z "${GITHUB_PATH:-}" ] || echo "$bin" >>"$GITHUB_PATH"

check=(check "$library")
[ -z "${INPUT_DENY:-}" ] || check+=("--deny=$INPUT_DENY")
[ -z "${INPUT_CLIENT:-}" ] || check+=("--client=$INPUT_CLIENT")
failed=0
if [ -n "${INPUT_SARIF:-}" ]; then
  # A file that says what was found is the point of it, whatever was found.
  promptshelf "${check[@]}" --format sarif >"$INPUT_SARIF" || true
fi
promptshelf "${check[@]}" --format github || failed=1
promptshelf test "$library" || failed=1

# The difference, as a model receives it: one comment, which later pushes replace.
comment() {
  local before mark='<!-- promptshelf -->' text
  # The checkout of a pull request has no history.
  git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE" || return 0
  before=$(mktemp -d)
  git archive "$BASE" -- "$library" 2>/dev/null | tar -x -C "$before" || return 0
  text=$(promptshelf diff "$before/$library" "./$library" --rendered 2>/dev/null) || return 0
  rm -rf "$before"
  [ -n "$text" ] || return 0
  # GitHub accepts 65,536 characters. Longer fences than any in the text cannot be closed by it.
  if [ ${#text} -gt 60000 ]; then text="${text:0:60000}"$'\n… the difference is longer'; fi
  # shellcheck disable=SC2016
  printf '%s\nWhat this changes for the callers of prompts, rendered with sample arguments:\n\n``````````diff\n%s\n``````````\n' \
    "$mark" "${text//\`\`\`\`\`\`\`\`\`\`/\`}" >"$bin/comment.md"
  local old
  old=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments" \
    --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1) || return 1
  if [ -n "$old" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" --field "body=@$bin/comment.md"
  else
    gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments" --field "body=@$bin/comment.md"
  fi
}

if [ "${INPUT_COMMENT:-true}" = true ] && [ -n "${NUMBER:-}" ] && [ -n "${BASE:-}" ]; then
  comment || echo "::notice::the difference was not commented: the workflow needs the permission pull-requests: write"
fi
exit "$failed"
