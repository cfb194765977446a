"""The dashboard: three HTML pages and their files. It shows nothing by itself; the pages ask the HTTP API under /v1."""

from __future__ import annotations

from flask import Blueprint, Flask, Response, render_template

# No inline script or style anywhere, nothing from other hosts; a run's name or message can never become code.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)

_dashboard = Blueprint(
    "dashboard", __name__, template_folder="templates", static_folder="static", static_url_path="/assets"
)


@_dashboard.get("/")
def runs() -> str:
    """All runs, newest first."""
    return render_template("runs.html")


@_dashboard.get("/runs/<job_id>")
def run(job_id: str) -> str:
    """One run: curves, spec, timings, precision report. Whether it exists is for the API to say."""
    return render_template("run.html", job_id=job_id)


@_dashboard.get("/login")
def login() -> str:
    """Where a key is exchanged for a session."""
    return render_template("login.html")


@_dashboard.after_request
def _harden(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    # Modules import each other by plain names: let browsers ask whether a file changed, rather than guess.
    response.headers["Cache-Control"] = "no-cache"
    return response


def register(app: Flask) -> None:
    """Add the dashboard at `/`, `/runs/<id>` and `/login`, its files under `/assets`."""
    app.register_blueprint(_dashboard)
