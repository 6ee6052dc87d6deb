"""HTTP as a client: requests and responses without I/O, and what carries them out.

- `exchange`: generators that yield requests and receive responses, and why one failed.
- `transport`: carries out the requests.
"""

from disksla.clouds.http_client.exchange import (
    LINK_LOCAL,
    ExchangeError,
    Exchanges,
    Explanations,
    Request,
    Response,
    Source,
    authorized,
    check_clock,
    convert,
    decode,
    failure,
    get_by_token,
    get_response,
    items_of,
    pages,
    plain_text,
    plain_token,
    query_string,
    reason_of,
    token_in,
    whole_number,
)
