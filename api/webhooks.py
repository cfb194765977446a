"""Webhooks over HTTP: addresses that hear when jobs end, their secret, and what became of each message."""

from __future__ import annotations

from typing import Any, cast

from flask import Response

from api.bodies import read_json
from api.context import services
from api.models import DeliveriesQuery, WebhookPath
from api.paging import checked_cursor, page
from api.responses import json_response, no_content
from api.routing import Routes
from api.views import delivery_view, webhook_view
from texelgrad.domain import IdPrefix
from texelgrad.errors import Fault, Invalid
from texelgrad.outbound import Refused, check_url
from texelgrad.repository import outbox
from texelgrad.times import time_text

routes = Routes("webhooks")
_MAX_BYTES = 8192


@routes.post("/webhooks", "Hear when jobs end")
def post_webhook() -> Response:
    """201 for `{"url": "https://..."}`; the first one's answer has the secret, which is shown only then."""
    own = services()
    url = _url(read_json(_MAX_BYTES))
    try:
        check_url(url, own.settings.webhook_hosts)
    except Refused as refused:
        raise Invalid([Fault("url", str(refused), url[:200], "https:// and a public host")]) from refused
    with own.db.write() as session:
        webhook = outbox.create_webhook(session, own.owner_id, url)
        secret = None
        if not outbox.has_secret(session, own.owner_id):
            secret = outbox.rotate_secret(session, own.owner_id).secret
    view = webhook_view(webhook) | ({"secret": secret} if secret else {})
    return json_response(view, 201, Location=f"/v1/webhooks/{webhook.id}")


@routes.get("/webhooks", "List webhooks")
def list_webhooks() -> Response:
    """All of the owner's; there are few."""
    own = services()
    with own.db.read() as session:
        items = [webhook_view(webhook) for webhook in outbox.list_webhooks(session, own.owner_id)]
    return json_response({"items": items, "next_cursor": None})


@routes.post("/webhooks/secret", "Replace the secret")
def rotate_secret() -> Response:
    """The new secret, shown only here; the one before signs besides it for a day."""
    own = services()
    with own.db.write() as session:
        secret = outbox.rotate_secret(session, own.owner_id)
    return json_response({"secret": secret.secret, "created_at": time_text(secret.created_at)}, 201)


@routes.get("/webhooks/<webhook_id>", "Read a webhook")
def get_webhook(path: WebhookPath) -> Response:
    """Its address."""
    own = services()
    with own.db.read() as session:
        return json_response(webhook_view(outbox.get_webhook(session, own.owner_id, path.webhook_id)))


@routes.delete("/webhooks/<webhook_id>", "Delete a webhook")
def delete_webhook(path: WebhookPath) -> Response:
    """204, with its messages; what is under way may still arrive."""
    own = services()
    with own.db.write() as session:
        session.delete(outbox.get_webhook(session, own.owner_id, path.webhook_id))
    return no_content()


@routes.post("/webhooks/<webhook_id>/test", "Send a test message")
def post_test(path: WebhookPath) -> Response:
    """202 and the message, of type `webhook.test`; its delivery can be followed in the list."""
    own = services()
    with own.db.write() as session:
        webhook = outbox.get_webhook(session, own.owner_id, path.webhook_id)
        delivery = outbox.add_delivery(session, webhook.id, "webhook.test", "", {"webhook_id": webhook.id})
    return json_response(delivery_view(delivery), 202)


@routes.get("/webhooks/<webhook_id>/deliveries", "Messages to a webhook")
def list_deliveries(path: WebhookPath, query: DeliveriesQuery) -> Response:
    """What was sent in the last month and what came back, the newest first."""
    own = services()
    cursor = checked_cursor(query.cursor, IdPrefix.DELIVERY)
    with own.db.read() as session:
        webhook = outbox.get_webhook(session, own.owner_id, path.webhook_id)
        found = outbox.list_deliveries(session, webhook.id, query.limit + 1, cursor)
    return json_response(page(found, query.limit, delivery_view, lambda delivery: delivery.id))


def _url(body: Any) -> str:
    fields = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    unknown = [Fault(name[:100], "is not a field here", None, "url") for name in fields if name != "url"]
    if not isinstance(fields.get("url"), str):
        unknown.append(Fault("url", "is missing", None, "https:// and a public host"))
    if unknown:
        raise Invalid(unknown)
    return fields["url"]
