"""The server of the desk: Streamlit in this process, on the loopback address, asking nothing of the network."""

from __future__ import annotations

import errno
import importlib.util
import ipaddress
import socket
from pathlib import Path
from typing import Any

from benchwright.app.desk import Desk
from benchwright.errors import UsageError

ADDRESS, PORT, PORTS = "127.0.0.1", 8501, 20
SCRIPT = Path(__file__).parent / "pages" / "main.py"
BLUE = "#0072b2"
_OPEN: list[Desk] = []


def set_desk(desk: Desk) -> None:
    """Set what the pages of this process show."""
    _OPEN[:] = [desk]


def current_desk() -> Desk:
    """Return what the pages of this process show.

    Raises
    ------
    UsageError
        The pages were started by hand.
    """
    if not _OPEN:
        raise UsageError("no desk is open", hint="start it with: benchwright serve SOURCE")
    return _OPEN[0]


def check_streamlit() -> None:
    """Raise where Streamlit is not installed."""
    if importlib.util.find_spec("streamlit") is None:
        raise UsageError("the desk needs Streamlit", hint="pip install 'benchwright[app]'")


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def free_port(address: str, port: int | None) -> int:
    """Return the port to use: the one that is named, else the first free one from 8501 on.

    Raises
    ------
    UsageError
        The port is in use or not ours to take, or the address is none of this machine.
    """
    wanted = [port] if port is not None else range(PORT, PORT + PORTS)
    for one in wanted:
        fault = _fault(address, one)
        if fault is None:
            return one
        if fault.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise UsageError(f"{address} cannot be listened on: {fault.strerror}", hint=f"--address {ADDRESS}")
        if port is not None:
            why = "is in use" if fault.errno == errno.EADDRINUSE else "is not ours to take"
            raise UsageError(f"port {port} of {address} {why}", hint="name another with --port, or leave --port out")
    raise UsageError(f"ports {PORT} to {PORT + PORTS - 1} of {address} are in use", hint="name another with --port")


def _fault(address: str, port: int) -> OSError | None:
    """Return why a port cannot be listened on, None where it can."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(where)
    except socket.gaierror as error:
        return OSError(errno.EADDRNOTAVAIL, error.strerror or "no such address")
    except OSError as error:
        return error
    return None


def options(address: str, port: int) -> dict[str, Any]:
    """Return the settings of the server; they go before those of a user's own Streamlit."""
    return {
        "server.address": address,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.runOnSave": False,
        "server.enableStaticServing": False,
        "browser.gatherUsageStats": False,
        "browser.serverAddress": address,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showSidebarNavigation": False,
        "global.developmentMode": False,
        "global.showWarningOnDirectExecution": False,
        "global.disableWidgetStateDuplicationWarning": True,
        "logger.level": "error",
        "logger.hideWelcomeMessage": True,
        "theme.light.primaryColor": BLUE,
        "theme.light.textColor": "#0d1218",  # captions are this at 60 %: contrast 4.9
        "theme.dark.primaryColor": "#56b4e9",
    }


def serve(desk: Desk, *, address: str = ADDRESS, port: int) -> None:
    """Serve a desk until the process is interrupted."""
    from streamlit import net_util
    from streamlit.web import bootstrap

    # asked of a server in the web where a page of another origin knocks
    vars(net_util)["get_external_ip"] = lambda: None
    set_desk(desk)
    flags = {name.replace(".", "_"): value for name, value in options(address, port).items()}
    bootstrap.load_config_options(flags)
    bootstrap.run(str(SCRIPT), False, [], flags)
