"""Reads a file of books and says how many there are."""

import logging
import sys

from importer import read_books
from shelf import Shelf

log = logging.getLogger("bookshelf")


def main(path: str) -> int:
    shelf = Shelf()
    for book in read_books(path):
        shelf.add(book)
    log.info("imported books=%d", len(shelf))
    print(f"{len(shelf)} books, {shelf.average_pages():.0f} pages on average")
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    sys.exit(main(sys.argv[1]))
