import sys
import unittest

sys.path.insert(0, ".")
from pages import count_pages, get_page


class Pages(unittest.TestCase):
    def test_every_item_is_on_one_page(self):
        for length in range(25):
            for size in range(1, 12):
                items = [f"item {number}" for number in range(length)]
                pages = range(1, count_pages(items, size) + 1)
                joined = [item for page in pages for item in get_page(items, page, size)]
                self.assertEqual(joined, items, (length, size))
                self.assertTrue(all(get_page(items, page, size) for page in pages))

    def test_an_empty_list_has_no_page(self):
        self.assertEqual(count_pages([], 5), 0)

    def test_other_pages_do_not_exist(self):
        for number in (-3, -1, 0, 4, 99):
            with self.assertRaises(IndexError, msg=number):
                get_page(list("abcdefg"), number, 3)
        with self.assertRaises(IndexError):
            get_page([], 1, 3)

    def test_a_size_is_at_least_one(self):
        for size in (0, -2):
            with self.assertRaises(ValueError):
                count_pages([1, 2], size)
            with self.assertRaises(ValueError):
                get_page([1, 2], 1, size)


unittest.main()
