"""What all pages share: the store, who looks, and how a page is made of a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .event_stream import Bell, Lookout
from .templating import render_page
from .viewers import current_viewer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from .changes import StoreChanges
    from .pulling import Puller, PullNote
    from .store_view import StoreView


_LOOK_SECONDS = 0.08
"""Between two looks at the files of sessions that somebody watches."""


class PageLink(NamedTuple):
    """A page that every page leads to."""

    name: str
    path: str


class Site:
    """The pages of a store."""

    def __init__(
        self,
        view: StoreView,
        changes: StoreChanges | None = None,
        puller: Puller | None = None,
    ) -> None:
        self.view = view
        self.changes = changes
        """None where nothing may be changed."""
        self._puller = puller
        self.bell = Bell()
        """Closed when the server ends, so that readers of streams end."""
        self.lookout = Lookout(self.bell, _LOOK_SECONDS)
        self.links: tuple[PageLink, ...] = ()
        """In the order of the bar; `application` sets them."""

    def find_pull_note(self) -> PullNote | None:
        """Return what is to be said of the last pull; None for a store that is here."""
        return self._puller.note if self._puller else None

    def render(
        self, request: Request, name: str, values: dict[str, Any], status: int = 200
    ) -> Response:
        """Return the page of a template."""
        viewer = current_viewer.get(None)
        shared = {
            "links": self.links,
            "path": request.url.path,
            "pulled": self.find_pull_note(),
            "viewer": viewer.name if viewer else "",
        }
        return render_page(name, {**shared, **values}, status)
