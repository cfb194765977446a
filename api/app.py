"""The Flask application: what it consists of, wired in one place."""

from __future__ import annotations

import atexit

from flask import Flask, Response
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI

from api import (
    auth,
    contents,
    dashboard,
    datasets,
    files,
    inspection,
    jobs,
    monitoring,
    predictions,
    problems,
    security,
    service,
    sessions,
    streams,
    unread,
    webhooks,
)
from api.context import Services, install
from api.hints import Hints
from api.limits import RateLimit
from api.models import Problem
from api.openapi import describe
from api.responses import json_response
from texelgrad import __version__
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.hints import Publisher


def create_app(settings: Settings | None = None) -> Flask:
    """The application with its own connections; made after a fork, once in each process."""
    settings = settings or Settings.load()
    app = OpenAPI(
        "api",
        info=Info(title="texelgrad", version=__version__, description="Trains neural networks in Chromium."),
        validation_error_model=Problem,
        validation_error_callback=problems.invalid_request,
        doc_ui=False,  # it would serve scripts of its own at "/"
    )
    app.config["MAX_CONTENT_LENGTH"] = settings.max_upload_bytes
    services = Services(
        settings=settings,
        db=Database(settings.database),
        hints=Hints(Publisher(settings.broker), settings.max_hints),
        streams=streams.Limit(settings.max_streams),
        rates=RateLimit(),
    )
    install(app, services)
    atexit.register(services.close)

    problems.register(app)
    unread.register(app)
    security.register(app, settings)
    auth.register(app, settings, services.db, services.rates)
    for part in (
        jobs,
        predictions,
        inspection,
        files,
        streams,
        datasets,
        contents,
        service,
        sessions,
        webhooks,
    ):
        app.register_api(part.routes.blueprint)
    service.register_health(app)
    monitoring.register(app)
    describe(app)

    @app.route("/openapi.json")
    def openapi() -> Response:  # pyright: ignore[reportUnusedFunction]
        """The description of this API."""
        return json_response(app.api_doc)

    dashboard.register(app)
    return app
