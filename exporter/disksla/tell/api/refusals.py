"""What the daemon means when it answers with something other than the page."""

OK, BAD_REQUEST, UNAUTHORIZED, NOT_FOUND = 200, 400, 401, 404
TOO_MANY, UNAVAILABLE = 429, 503
REFUSALS = {
    BAD_REQUEST: "it requires HTTPS",
    UNAUTHORIZED: "it requires a password",
    NOT_FOUND: "there is no such page",
    TOO_MANY: "too many requests: its rate limit is used up",
    UNAVAILABLE: "too many scrapes or requests at once",
}
"""By the status of the answer."""
