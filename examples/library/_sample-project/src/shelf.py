"""The books that we hold, by their number."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Book:
    isbn: str
    title: str
    pages: int


class Shelf:
    def __init__(self) -> None:
        self._books: dict[str, Book] = {}

    def __len__(self) -> int:
        return len(self._books)

    def add(self, book: Book) -> None:
        self._books[book.isbn] = book

    def find(self, isbn: str) -> Book:
        return self._books[isbn]

    def average_pages(self) -> float:
        return sum(book.pages for book in self._books.values()) / len(self._books)
