#!/usr/bin/env bash
# Sets up and runs everything that CI runs: lint, types, tests, examples in source and docs.
# The full run uses $PYTHON (default: python3). Each other supported Python that is installed runs the tests that
# take no long time, with nothing but the hard dependencies and pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
own=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

setup() { # setup VENV PYTHON EXTRA
  [ -x "$1/bin/python" ] || "$2" -m venv "$1"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$3]"
}

find_python() { # find_python VERSION: on the PATH, or among pyenv's
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1"*/bin/"python$1"; do
    if "$candidate" -c '' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

# The browser that tests drive: $CHROMIUM, or one on the PATH; a Debian machine that is ours to set up gets its own.
find_chromium() {
  local name
  for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
    command -v "$name" && return
  done
  return 1
}

ensure_chromium() {
  find_chromium >/dev/null && return
  if [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq || true  # the lists that are there may do
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null
  fi
  find_chromium >/dev/null && return
  echo "no Chromium for the browser tests: install it, or name its program in CHROMIUM" >&2
  return 1
}

# Test files are spread over the cores; each process keeps to one thread of linear algebra.
spread=(-n auto --dist loadfile)
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# Elsewhere the quick tests with the hard dependencies; here all but those that need a GPU.
core="not slow and not inspect_library and not engines and not libraries and not tuning and not notebooks and not app and not browser and not gpu"

step() { printf '\n== %s\n' "$*"; }

step "set up (Python $own)"
setup .venv "$python" dev
bin=.venv/bin
ensure_chromium

step "lint"
"$bin/ruff" check .
"$bin/ruff" format --check .

step "types"
"$bin/mypy"

step "documentation site"
NO_MKDOCS_2_WARNING=1 "$bin/mkdocs" build --strict --quiet --clean --site-dir site

for version in 3.11 3.12 3.13; do
  [ "$version" = "$own" ] && continue
  other=$(find_python "$version")
  if [ -z "$other" ]; then
    echo "Python $version is not installed: its run is left out"
    continue
  fi
  step "tests, Python $version, hard dependencies only"
  setup ".venv-$version" "$other" test
  ".venv-$version/bin/python" -m pytest -q -p no:cacheprovider "${spread[@]}" -m "$core"
done

step "tests and examples, Python $own"
"$bin/python" -m pytest -q "${spread[@]}" -m "not gpu"
