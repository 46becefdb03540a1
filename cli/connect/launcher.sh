#!/bin/sh
# Starts Context Registry, wherever it is installed now. `ctxr install` writes this file.
run() {
  first=$1; shift
  [ -x "$first" ] && [ "$first" != "$0" ] && exec "$first" "$@"
}
run @PROGRAM@ "$@"
run "$HOME/.local/bin/ctxr" "$@"
run "$(command -v ctxr)" "$@"
for uvx in @UVX@ "$(command -v uvx)" "$HOME/.local/bin/uvx"; do
  # some clients stop their user's prompt if a hook fails, as uvx does without a network
  [ "$1" = hook ] && [ -x "$uvx" ] && { "$uvx" --from context-registry==@VERSION@ ctxr "$@"; exit 0; }
  run "$uvx" --from context-registry==@VERSION@ ctxr "$@"
done
echo "error: Context Registry is not installed any more." >&2
echo "Install it (uv tool install context-registry), or remove its entry from this client's settings." >&2
[ "$1" = hook ] && exit 0
exit 127
