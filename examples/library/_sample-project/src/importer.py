"""Reads books from a file of comma-separated values."""

import csv
import logging
from collections.abc import Iterator

from shelf import Book

log = logging.getLogger("bookshelf.importer")


def read_books(path: str) -> Iterator[Book]:
    with open(path, newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            try:
                yield Book(row["isbn"], row["title"], int(row["pages"]))
            except ValueError as error:
                log.warning("line=%d left out: %s", number, error)
