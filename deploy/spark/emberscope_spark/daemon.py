"""Asks a daemon, or `emberscope serve`, over its Unix socket or HTTP.

In: an address as the command line takes it (`unix:/PATH`, `http://HOST:PORT`, `https://HOST:PORT`) and a token for the latter.
Out: answers as dicts, FlameGraphs. A token goes to the address that was named with it and nowhere else: no proxy is asked and no
redirect followed. Limits: ANSWER bytes of an answer, SECONDS of waiting for one.
"""

import grp
import http.client
import json
import os
import socket
import ssl
from urllib.parse import urlencode, urlsplit

from .drawing import UNITS
from .flame import MOST_NODES, NODES, FlameGraph
from .selection import texts

SOCKET = "/run/emberscope/emberscope.sock"
#: Most bytes of an answer: a graph of MOST_NODES nodes has some MB.
ANSWER = 64 << 20
#: Longest wait: the daemon gives up a question after 30 s, and may let one wait 20 s for its turn.
SECONDS = 60
#: Bytes of a token file.
_TOKEN = 4096


class DaemonError(Exception):
    """No answer: nobody there, not allowed to ask, or refused. `code` is the daemon's word for it, where it said one."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


class _OverSocket(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def token_of(path):
    """The token in a file."""
    with open(os.path.expanduser(path), encoding="ascii", errors="replace") as file:
        token = file.read(_TOKEN + 1).strip()
    if not token or len(token) > _TOKEN or not token.isprintable() or " " in token:
        raise DaemonError("%s holds no token: one word of at most %d characters" % (path, _TOKEN))
    return token


def _group_of(path):
    """The group that may use a socket, where it is not root's."""
    for place in (path, os.path.dirname(path)):
        try:
            number = os.stat(place).st_gid
            return grp.getgrgid(number).gr_name if number else None
        except (OSError, KeyError):
            continue
    return None


def _stranger(path):
    group = _group_of(path)
    who = "for root, its user and the group %s" % group if group else "for root alone"
    mend = "sudo usermod -aG %s $USER, and log in again; or ask" % group if group else "Ask"
    return (
        "you may not ask the daemon at %s: it is %s. %s over TCP with a token that its operator gives you "
        "(EMBERSCOPE_URL=http://127.0.0.1:4099 and EMBERSCOPE_TOKEN, or --url and --token-file)" % (path, who, mend)
    )


_NO_DAEMON = "is it running (systemctl status emberscope)? Another one is named by --url or EMBERSCOPE_URL"


class Daemon:
    """Who is asked: `url`, else the variable EMBERSCOPE_URL, else this machine's socket. `token`, else EMBERSCOPE_TOKEN."""

    def __init__(self, url=None, token=None):
        self.url = url or os.environ.get("EMBERSCOPE_URL") or "unix:" + SOCKET
        self._token = token or os.environ.get("EMBERSCOPE_TOKEN") or None
        self._parts = urlsplit(self.url)
        if self._parts.scheme not in ("unix", "http", "https") or not (self._parts.netloc or self._parts.path):
            raise DaemonError("%r is no address of a daemon: unix:/PATH, http://HOST:PORT or https://HOST:PORT" % self.url)

    def _connection(self):
        parts = self._parts
        if parts.scheme == "unix":
            return _OverSocket(parts.path)
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=SECONDS, context=ssl.create_default_context())

    def _asked(self, target):
        headers = {"Accept": "application/json"}
        if self._token and self._parts.scheme != "unix":
            headers["Authorization"] = "Bearer " + self._token
        connection = self._connection()
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(ANSWER + 1)
        finally:
            connection.close()

    def get(self, path, params=()):
        """The answer of a route of the HTTP API, as a dict. `params` are pairs."""
        pairs = [(name, str(value)) for name, value in params]
        try:
            status, body = self._asked(path + ("?" + urlencode(pairs) if pairs else ""))
        except PermissionError as error:
            raise DaemonError(_stranger(self._parts.path)) from error
        except (OSError, http.client.HTTPException) as error:
            raise DaemonError("no daemon answers at %s (%s): %s" % (self.url, error, _NO_DAEMON)) from error
        if len(body) > ANSWER:
            raise DaemonError("the answer of %s is larger than %d MiB: ask for less" % (self.url, ANSWER >> 20))
        try:
            said = json.loads(body)
            refused = said.get("error") if status != 200 else None
        except (ValueError, AttributeError, RecursionError) as error:
            raise DaemonError("what answers at %s is no Emberscope daemon (status %d)" % (self.url, status)) from error
        if status != 200:
            raise self._refused(status, refused if isinstance(refused, dict) else {})
        return said

    def _refused(self, status, error):
        text, code = str(error.get("message") or "it said no more"), error.get("code")
        if status == 401:
            text += " Set EMBERSCOPE_TOKEN, or name a file with --token-file; docs/deploy.md says which tokens there are."
        elif code == "forbidden_peer" and self._parts.scheme == "unix":
            text = _stranger(self._parts.path)
        elif code == "unknown_parameter":
            text += " The daemon may be older than this package."
        return DaemonError("%s answered %d: %s" % (self.url, status, text), code)

    def flamegraph(self, since=None, until=None, kind="cpu", group=(), max_nodes=NODES, title="", lines=(), **labels):
        """The FlameGraph of a selection: labels as by HTTP, times as the API takes them (RFC 3339, Unix seconds, `-15m`)."""
        if not 1 <= max_nodes <= MOST_NODES:
            raise ValueError("max_nodes is from 1 to %d, not %r" % (MOST_NODES, max_nodes))
        group = (group,) if isinstance(group, str) else tuple(group)
        params = [("columns", 1), ("type", kind), ("max_nodes", max_nodes)]
        if kind in UNITS:
            params.append(("unit", UNITS[kind]))
        params += [("from", since)] if since is not None else []
        params += [("until", until)] if until is not None else []
        params += [("group", ",".join(group))] if group else []
        for label, values in labels.items():
            params += [(label, value) for value in texts(values)]
        answer = self.get("/api/v1/flamegraph", params)
        named = " · ".join("%s %s" % pair for pair in params if pair[0] in labels)
        return FlameGraph(answer, title or named or "whole node", lines)
