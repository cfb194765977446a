# Set-up shared by scripts/demo, scripts/test and .ci/run; sourced, not run.
#
# Everything here is idempotent: a step whose lock file has not changed since it last succeeded costs a few
# milliseconds. Needs bash and python3 >= 3.11. System packages are installed on Debian 12 and 13 only; anywhere else
# the missing ones are named and the script stops.

set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
VENV="$ROOT/.venv"
TORCH="torch==2.13.0" # outside the hashed locks: elsewhere its wheel is 527 MB and pulls CUDA packages

say() { printf '%s\n' "$*" >&2; }
step() { say "==> $*"; }
die() {
  say "error: $*"
  exit 1
}

# ---- stamps: a step is done when its stamp holds the hash of what it was made from --------------------------------

digest() { cat "$@" | python3 -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'; }
is_stamped() { [[ -f $1 && $(<"$1") == "$2" ]]; }

# ---- system packages ----------------------------------------------------------------------------------------------

is_debian() { [[ -r /etc/debian_version ]] && command -v apt-get >/dev/null; }
has_chromium() { [[ -n ${CHROMIUM:-} ]] || command -v chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome >/dev/null; }
# The tests' folders are too deep for the sockets of a full Chromium: "Socket path too long". The headless shell has none.
has_headless_shell() {
  if is_debian; then [[ -n ${CHROMIUM:-} ]] || command -v chromium-headless-shell >/dev/null; else has_chromium; fi
}
has_postgres() { command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }

# Print the Debian package of every listed need that this machine lacks.
missing_packages() {
  local need
  for need in "$@"; do
    case $need in
      chromium) has_chromium || echo chromium-headless-shell ;;
      headless-shell) has_headless_shell || echo chromium-headless-shell ;;
      redis) command -v redis-server >/dev/null || echo redis-server ;;
      venv) python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv ;;
      postgres) has_postgres || echo postgresql ;;
      glslang) command -v glslangValidator >/dev/null || echo glslang-tools ;;
      *) die "setup_system: unknown need '$need'" ;;
    esac
  done
}

# setup_system NEED...   needs: chromium headless-shell redis venv postgres glslang
setup_system() {
  if [[ -n ${CHROMIUM:-} ]]; then
    [[ -x $CHROMIUM ]] || die "CHROMIUM is '$CHROMIUM', which is not an executable file"
    export TEXELGRAD_CHROMIUM="$CHROMIUM"
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  local command="apt-get install --yes --no-install-recommends ${missing[*]}"
  if ! is_debian; then
    die "missing on this machine, by the names of their Debian packages: ${missing[*]}
  Install them with your package manager. Redis must be on PATH as redis-server;
  set CHROMIUM to the path of a Chromium or Chrome (headless shell or full browser)."
  fi
  if ((EUID)); then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      as_root=(sudo)
    else
      die "system packages are missing and this user can neither be root nor use sudo. Run as root, then start again:
  $command"
    fi
  fi
  step "installing system packages: ${missing[*]}"
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c '
    # We need the programs, not system-wide services of them: forbid their start while apt runs, then disable them.
    if [[ ! -e /usr/sbin/policy-rc.d ]]; then
      printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d
      chmod 755 /usr/sbin/policy-rc.d
      trap "rm -f /usr/sbin/policy-rc.d" EXIT
    fi
    apt-get update -qq || true # a broken source of something else need not matter
    apt-get install --yes --no-install-recommends -qq "$@" >/dev/null
    if [[ -d /run/systemd/system ]]; then
      for package; do
        case $package in redis-server | postgresql) systemctl --quiet disable "$package" || true ;; esac
      done
    fi' setup "${missing[@]}" >&2 </dev/null || die "apt-get failed; try it by hand:
  $command"
}

# ---- Python -------------------------------------------------------------------------------------------------------

# pip_install ARGUMENT...   quiet but not blind: what pip says goes into a log, which is shown where it fails
pip_install() {
  local log="$VENV/pip.log"
  PIP_ROOT_USER_ACTION=ignore "$VENV/bin/python" -m pip install --disable-pip-version-check "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "pip failed; all that it said is in $log"
  }
}

# setup_python LOCK   installs requirements/LOCK.txt and this checkout (editable) into .venv
setup_python() {
  local lock="$ROOT/requirements/$1.txt" python="$VENV/bin/python" hash
  python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
    die "Python 3.11, 3.12 or 3.13 is needed as python3; this one is $(python3 --version 2>&1)"
  [[ -x $python ]] || {
    step "creating .venv"
    python3 -m venv "$VENV" || die "python3 -m venv failed. On Debian: apt-get install python3-venv, then remove .venv"
  }
  hash=$(digest "$lock")
  is_stamped "$VENV/.stamp-$1" "$hash" || {
    step "installing requirements/$1.txt"
    pip_install --require-hashes -r "$lock"
    echo "$hash" >"$VENV/.stamp-$1"
  }
  hash="$ROOT $(digest "$ROOT/pyproject.toml")"
  is_stamped "$VENV/.stamp-checkout" "$hash" || {
    # The build backend is in the lock: no isolation, nothing unlocked is fetched.
    pip_install --no-deps --no-build-isolation --editable "$ROOT"
    echo "$hash" >"$VENV/.stamp-checkout"
  }
}

# PyTorch, the independent implementation that the parity tests compare with.
setup_torch() {
  "$VENV/bin/python" -c "
from importlib.metadata import PackageNotFoundError, version
try: found = version('torch').split('+')[0]
except PackageNotFoundError: found = None
raise SystemExit(found != '${TORCH#torch==}')" && return
  step "installing $TORCH (the --goldens option does without)"
  pip_install "$TORCH"
}

# ---- Node and the browser libraries -------------------------------------------------------------------------------

# Put a Node >= 20 first on PATH: the machine's own, else the one from the package index.
setup_node() {
  local is_recent='process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'
  if command -v npm >/dev/null && node -e "$is_recent" 2>/dev/null; then return; fi
  [[ -x $VENV/bin/node ]] || {
    step "installing Node into .venv (none >= 20 on PATH)"
    pip_install --require-hashes -r "$ROOT/requirements/node.txt"
  }
  PATH="$VENV/bin:$PATH"
}

# The peers that the bench measures; TensorFlow.js among them also loads what is exported for it.
setup_peers() {
  local stamp="$ROOT/bench/node_modules/.stamp" hash
  hash=$(digest "$ROOT/bench/package-lock.json")
  is_stamped "$stamp" "$hash" && return
  setup_node
  step "installing the peers into bench/node_modules"
  (cd "$ROOT/bench" && npm ci --silent --ignore-scripts)
  echo "$hash" >"$stamp"
}

# setup_browser_libraries [--omit=dev]   npm packages, and the dashboard's copy of uPlot
setup_browser_libraries() {
  local stamp="$ROOT/node_modules/.stamp" vendor="$ROOT/api/static/vendor/uplot" hash
  hash=$(digest "$ROOT/package-lock.json")
  if ! is_stamped "$stamp" "$hash all" && ! is_stamped "$stamp" "$hash ${1:-all}"; then
    setup_node
    step "installing browser libraries"
    (cd "$ROOT" && npm ci --silent --ignore-scripts "$@")
    echo "$hash ${1:-all}" >"$stamp"
  fi
  [[ -f $vendor/uPlot.esm.js && ! $stamp -nt $vendor/uPlot.esm.js ]] || {
    mkdir -p "$vendor"
    cp "$ROOT"/node_modules/uplot/{dist/uPlot.esm.js,dist/uPlot.min.css,LICENSE} "$vendor/"
    cp "$ROOT/node_modules/uplot/dist/uPlot.d.ts" "$vendor/uPlot.esm.d.ts" # where the type checker looks
  }
}
