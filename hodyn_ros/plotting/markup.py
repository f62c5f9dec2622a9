"""Small pieces of HTML; every text that is not HTML itself is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Markup(str):
    """Text that is HTML already."""


def text(value: object) -> Markup:
    """Text as HTML: escaped unless it is HTML already."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=True))


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """HTML element.

    Parameters
    ----------
    tag : str
    *content : object
        What stands in it, escaped.
    **attributes : object
        Escaped too; ``class_`` and ``aria_label`` stand for ``class`` and ``aria-label``, and None
        leaves an attribute out.
    """
    written = ''.join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f'<{tag}{written}>{joined(content)}</{tag}>')


def joined(parts: Iterable[object], separator: str = '') -> Markup:
    """Join parts, each escaped unless it is HTML already."""
    return Markup(text(separator).join(text(part) for part in parts))


def table(
    caption: str,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    words: Sequence[int] = (),
) -> Markup:
    """Table whose first column names the rows; it scrolls by itself where it is too wide.

    Cells that are HTML elements ``td`` already stay as they are. The columns `words` hold words,
    the others numbers.
    """
    head = joined(
        element('th', cell, scope='col', class_='words' if i in words else None)
        for i, cell in enumerate(header)
    )
    body = joined(
        element(
            'tr',
            element('th', row[0], scope='row'),
            *(_cell(cell, i in words) for i, cell in enumerate(row[1:], start=1)),
        )
        for row in rows
    )
    content = element(
        'table',
        element('caption', element('span', caption)),
        element('thead', element('tr', head)),
        element('tbody', body),
    )
    return element(
        'div', content, class_='table', role='region', tabindex=0, aria_label=caption
    )


def _cell(content: object, is_words: bool) -> Markup:
    if isinstance(content, Markup) and content.startswith('<td'):
        return content
    if not is_words:
        return element('td', content)
    return element('td', content, class_='words long' if len(text(content)) > 60 else 'words')
