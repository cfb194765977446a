"""Which Chromium to run, as whom, and with which flags. Starts nothing but short checks; browser.py runs it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from texelgrad.domain import Cause
from texelgrad.errors import Unavailable
from texelgrad.processes import DIE_WITH_PARENT, at_priority

_CHECK_S = 10.0
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# Distributions put a shell wrapper on PATH, which ignores signals and outlives kills: the program itself is here.
_PROGRAM_FOLDERS = (Path("/usr/lib/chromium"), Path("/usr/lib/chromium-browser"), Path("/opt/google/chrome"))
_BROWSER_USERS = ("texelgrad", "nobody")
_SMALL_SHM_BYTES = 512 << 20

INSTALL = (
    "Install Chromium (Debian: `apt-get install chromium-headless-shell`) or set CHROMIUM or TEXELGRAD_CHROMIUM "
    "to the program's path."
)


class EnvironmentFault(Unavailable):
    """This machine can't train now, whatever the job; the worker stops claiming and says why."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True)
class Recipe:
    """One way to start Chromium's GPU process."""

    name: str
    flags: tuple[str, ...]
    software: bool = False


RECIPES = (
    Recipe(
        "vulkan",
        (
            "--use-angle=vulkan",
            "--enable-features=Vulkan",
            "--disable-vulkan-surface",
            "--ignore-gpu-blocklist",
        ),
    ),
    Recipe("gl-egl", ("--use-gl=angle", "--use-angle=gl-egl", "--ignore-gpu-blocklist")),
    Recipe("default", ("--ignore-gpu-blocklist",)),
    Recipe(
        "swiftshader",
        ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
        software=True,
    ),
)

_FLAGS = (
    "--remote-debugging-port=0",  # a random one, on the loopback address
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    # WebGL2 otherwise stays dead after the second or third loss of the GPU process
    "--disable-domain-blocking-for-3d-apis",
    "--disable-gpu-process-crash-limit",
    # a busy machine is no hung GPU; the supervisor's stall limit catches the real thing
    "--disable-gpu-watchdog",
    # CSP and Fetch interception stop named and literal addresses in the page; this stops them in the network stack
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


@dataclass(frozen=True)
class Identity:
    """Who runs Chromium, and whether its own sandbox works for that user."""

    user: str
    prefix: tuple[str, ...]  # command that becomes this user
    uid: int
    gid: int
    sandbox: bool


@dataclass(frozen=True)
class Chromium:
    """A program that has been seen to run."""

    program: Path
    version: str  # such as "156.0.8078.108"
    identity: Identity
    nice: int = 0  # how far it yields to other processes

    def command(self, recipe: Recipe, profile: Path) -> list[str]:
        """The whole command line; the process dies with the thread that starts it."""
        flags = [*_FLAGS, *recipe.flags, f"--user-data-dir={profile}"]
        if "headless" not in self.program.name:
            flags.append("--headless=new")
        if not self.identity.sandbox:
            flags.append("--no-sandbox")
        if _shm_bytes() < _SMALL_SHM_BYTES:
            flags.append("--disable-dev-shm-usage")
        # in this order: only we may write what belongs to the session, and changing the user clears the death signal
        prefixes = (*at_priority(self.nice), *self.identity.prefix, *DIE_WITH_PARENT)
        return [*prefixes, str(self.program), *flags, "about:blank"]


def find_chromium(
    configured: str, user: str, environment: Mapping[str, str] = os.environ, *, nice: int = 0
) -> Chromium:
    """The first program that exists, checked by asking for its version.

    Args:
        configured: path from the settings; empty: $CHROMIUM, then the usual names.
        user: account to run as where we are root; empty: `texelgrad` if there is one, else `nobody`.
        environment: where CHROMIUM and PATH are looked up.
        nice: how far it is to yield to other processes, 0 to 19.

    Raises:
        EnvironmentFault: nothing was found, or what was found does not run; says what was tried.
    """
    chosen = configured or environment.get("CHROMIUM", "")
    candidates = [chosen] if chosen else [shutil.which(name, path=environment.get("PATH")) for name in _NAMES]
    tried: list[str] = []
    for candidate in candidates:
        if candidate is None:
            continue
        program = _program(Path(candidate))
        problem = _not_runnable(program)
        if problem is None:
            identity, version = _identity_for(program, user)
            if version is not None:
                return Chromium(program, version, identity, nice)
            problem = "`--version` failed"
        tried.append(f"{program}: {problem}")
    found = "; ".join(tried) or f"none of {', '.join(_NAMES)} is on PATH"
    raise EnvironmentFault(Cause.NO_BROWSER, f"No Chromium that runs: {found}. {INSTALL}")


def recipes_for(*, pinned: str, allow_software: bool, gpu: bool) -> Sequence[Recipe]:
    """The launch recipes worth trying, in order.

    Raises:
        EnvironmentFault: none is left; says why.
    """
    if pinned:
        named = [recipe for recipe in RECIPES if recipe.name == pinned]
        if not named:
            legal = ", ".join(recipe.name for recipe in RECIPES)
            raise EnvironmentFault(
                Cause.NO_RENDERER, f"TEXELGRAD_GPU_RECIPE={pinned!r} is unknown; legal: {legal}."
            )
        return named
    chosen = [recipe for recipe in RECIPES if (allow_software if recipe.software else gpu)]
    if not chosen:
        raise EnvironmentFault(
            Cause.NO_RENDERER,
            "No GPU device (/dev/dri/renderD*, /dev/nvidia*, /dev/dxg), and software rendering is not allowed. "
            "Give this machine or container a GPU, or set TEXELGRAD_ALLOW_SOFTWARE=true.",
        )
    return chosen


def gpu_devices(dev: Path = Path("/dev")) -> list[Path]:
    """Device files of GPUs that Chromium could use."""
    patterns = ("dri/renderD*", "nvidia[0-9]*", "dxg")
    return [path for pattern in patterns for path in sorted(dev.glob(pattern))]


def browser_environment(profile: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What Chromium may see of our environment: where drivers are, and no secret of the service."""
    names = ("PATH", "LANG", "TZ", "LD_LIBRARY_PATH")
    prefixes = (
        "LC_",
        "VK_",
        "EGL_",
        "__EGL_",
        "__GLX_",
        "LIBGL_",
        "MESA_",
        "GALLIUM_",
        "NVIDIA_",
        "FONTCONFIG",
    )
    kept = {name: value for name, value in environment.items() if name in names or name.startswith(prefixes)}
    # temporary files go where they are removed with the profile
    return {**kept, "HOME": str(profile), "TMPDIR": str(profile), "XDG_RUNTIME_DIR": str(profile)}


def _program(path: Path) -> Path:
    """What a wrapper script starts, as far as the usual places tell; otherwise `path` itself."""
    path = path.resolve()
    try:
        with path.open("rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return path
    if is_script:
        for folder in _PROGRAM_FOLDERS:
            if (folder / path.name).is_file():
                return folder / path.name
    return path


def _not_runnable(program: Path) -> str | None:
    if not program.is_file():
        return "no such file"
    if not os.access(program, os.X_OK):
        return "not executable"
    return None


def _identity_for(program: Path, user: str) -> tuple[Identity, str | None]:
    """The least privileged identity under which the program runs, and its version; None where none does."""
    own = Identity(pwd.getpwuid(os.geteuid()).pw_name, (), os.geteuid(), os.getegid(), sandbox=False)
    identities = [own]
    if os.geteuid() == 0:
        accounts = [_account(name) for name in ((user,) if user else _BROWSER_USERS)]
        identities = [*filter(None, accounts), own]
    for identity in identities:
        version = _version((*identity.prefix, str(program)))
        if version is not None:
            # Chromium refuses to run sandboxed as root, and where user namespaces are closed to it
            sandbox = identity.uid != 0 and _succeeds((*identity.prefix, *_NAMESPACE_TEST))
            return Identity(identity.user, identity.prefix, identity.uid, identity.gid, sandbox), version
    return own, None


_NAMESPACE_TEST = ("unshare", "--user", "--map-root-user", "--pid", "--net", "--fork", "true")


def _account(name: str) -> Identity | None:
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return None
    # render nodes belong to a group of their own
    groups = sorted({path.stat().st_gid for path in gpu_devices()} - {0})
    keep = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    become = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", keep, "--inh-caps=-all")
    prefix = ("setpriv", *become, "--")
    return Identity(name, prefix, account.pw_uid, account.pw_gid, sandbox=False)


def _version(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=_CHECK_S, cwd="/", check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = [word for word in done.stdout.split() if word[:1].isdigit()]
    return words[0] if words else None


def _succeeds(command: tuple[str, ...]) -> bool:
    try:
        subprocess.run(command, capture_output=True, timeout=_CHECK_S, cwd="/", check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _shm_bytes() -> int:
    try:
        shm = os.statvfs("/dev/shm")  # noqa: S108 - its size is read, nothing is written
    except OSError:
        return 0
    return shm.f_blocks * shm.f_frsize
